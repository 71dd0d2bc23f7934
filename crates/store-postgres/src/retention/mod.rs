//! What ends. Reads find what may go, on a reading connection; the writer looks again at each of it, and deletes.

pub(crate) mod place;
mod tree;

use surefoot_kernel_core::StoreError;

pub(crate) use self::tree::is_doomed;
use crate::error::Said;

/// Why nothing moves in a tree of which a part is deleted.
pub(crate) fn gone_there() -> StoreError {
    StoreError::Refused(Box::new(Said("its tree is being deleted: nothing in it moves any more")))
}

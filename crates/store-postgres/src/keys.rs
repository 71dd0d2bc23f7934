//! Ids as the database keeps them.

use uuid::Uuid;

use surefoot_kernel_core::{EventId, RunId, SessionId, VersionId};

/// An id of the kernel that is a key of rows.
pub(crate) trait Key: Copy {
    fn key(self) -> Uuid;
    fn of_key(key: Uuid) -> Self;
}

macro_rules! keys {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn key(self) -> Uuid {
                Uuid::from_bytes(self.to_bytes())
            }

            fn of_key(key: Uuid) -> Self {
                Self::from_bytes(key.into_bytes())
            }
        }
    )*};
}

keys!(RunId, EventId, VersionId, SessionId);

/// Ids for `= ANY(…)`, in order, so that locks are taken in one order everywhere.
pub(crate) fn sorted_keys<K: Key>(ids: impl IntoIterator<Item = K>) -> Vec<Uuid> {
    let mut keys: Vec<Uuid> = ids.into_iter().map(Key::key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

//! The interpreter: given plan, inputs and recorded outcomes, it yields the next thing to do.
//!
//! A [`Cursor`] is a plain value. It is rebuilt by folding the journal and moved by facts only, so a resumed run
//! stands exactly where the first one did. What one step costs does not grow with the number of steps before it.

mod cursor;
mod env;
mod inputs;
mod position;

pub(crate) use cursor::json_len;
pub use cursor::{Cursor, Next, RestoreInvalid};
pub(crate) use cursor::{Unchosen, choose_by, failure_of, name_of};
pub(crate) use env::Env;
pub(crate) use inputs::compute_inputs;
pub(crate) use position::{Branch, KeyPath, branch_of, branches_of};

/// Bytes of JSON of a list that a loop rebuilds from its iterations' outputs.
pub const LOOP_VALUE_MAX_BYTES: usize = 16 * 1024 * 1024;

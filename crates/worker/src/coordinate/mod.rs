//! Drivers of the coordination primitives: what needs tasks and time, over the ports of `sync-core`.

mod handler;
mod lock;
mod process;

pub use handler::{JobCx, JobEnd, WorkStop};
pub use lock::{LockCx, LockError, Tries, acquire, with_lock};
pub use process::{Counts, ProcessOptions, Processing, process_jobs, process_queue};

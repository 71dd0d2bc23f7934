//! Drivers of the coordination primitives: what needs tasks and time, over the ports of `sync-core`.

mod follow;
mod handler;
mod hub;
mod lifecycle;
mod lock;
mod process;
mod retry;
mod schedule;

pub use follow::Follow;
pub use handler::{JobCx, JobEnd, WorkStop};
pub use hub::{Hub, Listener};
pub use lifecycle::{Lifecycle, StartError, Started};
pub use lock::{LockCx, LockError, Tries, acquire, with_lock};
pub use process::{Counts, ProcessOptions, Processing, process_jobs, process_queue, process_work};
pub use retry::Retry;
pub use schedule::{ScheduleCx, Scheduler, Scheduling};

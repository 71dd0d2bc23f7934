//! The store in memory keeps the rules that it is the measure for, and the rules bite.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that fails panics")]

mod bench;
mod certify;
mod children;
mod differential;
mod faulty;
mod list;
mod matrix;
mod simulation;
mod sqlite;
mod wrong;

surefoot_testkit::store_suite!(memory, surefoot_testkit::MemoryFactory);
surefoot_testkit::task_suite!(memory_tasks, surefoot_testkit::MemoryFactory);

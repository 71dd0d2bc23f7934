//! The decorator around the stores of this project, below workers and operators.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod at_rest;
mod crash;
mod encoded;
mod keys;
mod lost_key;
mod shop;
mod tasks;
mod vault;
mod views;

surefoot_testkit::store_suite!(memory, crate::encoded::InMemory);
surefoot_testkit::store_suite!(sqlite, crate::encoded::OnSqlite);
surefoot_testkit::task_suite!(tasks_in_memory, crate::encoded::InMemory);
surefoot_testkit::task_suite!(tasks_on_sqlite, crate::encoded::OnSqlite);

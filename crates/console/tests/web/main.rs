//! The web console: its pages as text, quickly; and in a real browser, as people use it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod acts;
mod browser;
mod chrome;
mod hostile;
mod looks;
mod shots;
mod stage;
#[expect(dead_code, reason = "the operator's tests use all of it")]
#[path = "../../../operator/tests/it/world.rs"]
mod world;

//! The operator's use cases on the store in memory.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod authoring;
mod children;
mod faults;
mod health;
mod inspect;
mod looking;
mod outage;
mod places;
mod verbs;
mod versions;
mod world;

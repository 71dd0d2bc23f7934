//! The actions one by one, the provider, and both workflows as a whole.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a helper of tests fails the test by panicking"
)]

mod certificates;
mod dry_run;
mod mail;
mod place;
mod provider;
mod quote;
mod shop;
mod stock;
mod workflow;

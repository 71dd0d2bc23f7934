//! The compiler from the outside: sources in, findings or plans out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests fails the test by panicking"
)]

mod catch;
mod configs;
mod evaluated;
mod expressions;
mod findings;
mod hostile;
mod limits;
mod manifests;
mod plans;
mod schedules;
mod scopes;
mod shape;
mod support;
mod yaml;

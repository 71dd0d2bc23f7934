//! The actions one by one, the provider, and both workflows as a whole.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test by panicking")]

mod provider;
mod stock;

//! The actions one by one, the provider, and both workflows as a whole.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test by panicking")]

mod mail;
mod provider;
mod shop;
mod stock;

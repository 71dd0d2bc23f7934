//! The application's own tests, on PostgreSQL. They need a server: `DATABASE_URL` names a database of it, whose user may
//! create others. `cargo xtask test` starts one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a helper of tests fails the test by panicking"
)]

// The files of the tests are shared, and know the application by one name.
extern crate surefoot_inventory_postgres as surefoot_inventory;

#[path = "../../../inventory/tests/it/certificates.rs"]
mod certificates;
#[path = "../../../inventory/tests/it/dry_run.rs"]
mod dry_run;
#[path = "../../../inventory/tests/it/mail.rs"]
mod mail;
mod place;
#[path = "../../../inventory/tests/it/provider.rs"]
mod provider;
#[path = "../../../inventory/tests/it/quote.rs"]
mod quote;
#[path = "../../../inventory/tests/it/shop.rs"]
mod shop;
#[path = "../../../inventory/tests/it/workflow.rs"]
mod workflow;

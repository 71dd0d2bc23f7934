//! Real servers for tests: PostgreSQL, NATS, Valkey and PgBouncer, from programs that are on the machine already.
//!
//! Tests that only need a server share the one that `cargo xtask test` starts: [`given`] reads where it is. Tests that
//! kill servers start their own, with a folder and a port of its own:
//!
//! ```no_run
//! use surefoot_test_servers::{Error, Postgres};
//!
//! # fn main() -> Result<(), Error> {
//! let mut server = Postgres::given()?.start()?;
//! println!("{}", server.url());
//! server.kill()?; // SIGKILL
//! server.restart()?; // the same folder, the same port
//! # Ok(())
//! # }
//! ```
//!
//! What a network does to a connection with PostgreSQL, a [`PostgresProxy`] does: it loses and delays what it is told to.
//!
//! Nothing here is async: a start blocks the thread until the server answers, a second or so. A server ends when its
//! [`Server`] is dropped, and its folder goes with it.

mod account;
mod error;
mod folder;
mod given;
mod nats;
mod pgbouncer;
mod port;
mod postgres;
mod proxy;
mod ready;
mod server;
mod valkey;

pub use error::Error;
pub use folder::{Folder, services_folder, sweep};
pub use given::{
    BROWSER_PROGRAM, DATABASE_URL, DATABASE_URL_15, NATS_PROGRAM, NATS_URL, PGBOUNCER_PROGRAM,
    POSTGRES_15_PROGRAMS, POSTGRES_PROGRAMS, SERVICES_FOLDER, VALKEY_PROGRAM, VALKEY_URL, given,
    programs,
};
pub use nats::Nats;
pub use pgbouncer::{PgBouncer, Pooling};
pub use postgres::Postgres;
pub use proxy::{Fate, PostgresProxy, Trap};
pub use server::Server;
pub use valkey::Valkey;

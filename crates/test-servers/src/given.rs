//! What the environment says about servers. `cargo xtask test` sets all of it; `cargo xtask services` prints it.

use std::path::PathBuf;

use crate::Error;

/// Where PostgreSQL is.
pub const DATABASE_URL: &str = "DATABASE_URL";
/// Where the oldest PostgreSQL that is supported is.
pub const DATABASE_URL_15: &str = "DATABASE_URL_15";
/// Where NATS is, a single server with JetStream.
pub const NATS_URL: &str = "NATS_URL";
/// Where Valkey is.
pub const VALKEY_URL: &str = "VALKEY_URL";

/// The folder with `initdb` and `postgres`.
pub const POSTGRES_PROGRAMS: &str = "SUREFOOT_POSTGRES_PROGRAMS";
/// The folder with `initdb` and `postgres` of PostgreSQL 15.
pub const POSTGRES_15_PROGRAMS: &str = "SUREFOOT_POSTGRES_15_PROGRAMS";
/// The program `nats-server`.
pub const NATS_PROGRAM: &str = "SUREFOOT_NATS_PROGRAM";
/// The program `valkey-server`.
pub const VALKEY_PROGRAM: &str = "SUREFOOT_VALKEY_PROGRAM";

/// The program `pgbouncer`: tests start their own.
pub const PGBOUNCER_PROGRAM: &str = "SUREFOOT_PGBOUNCER_PROGRAM";

/// The program of a Chromium: no server, but a program that is found in the same way.
pub const BROWSER_PROGRAM: &str = "SUREFOOT_BROWSER_PROGRAM";

/// The folder that servers have their folders in; if it is not set, one in the system's folder for temporary files.
pub const SERVICES_FOLDER: &str = "SUREFOOT_SERVICES";

/// The value of a variable, one of the URLs for instance.
///
/// # Errors
/// [`Error::NotGiven`] if it is not set, or empty.
pub fn given(variable: &'static str) -> Result<String, Error> {
    std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())
        .ok_or(Error::NotGiven { variable })
}

/// The path that a variable holds.
///
/// # Errors
/// [`Error::NotGiven`] if it is not set, or empty.
pub fn programs(variable: &'static str) -> Result<PathBuf, Error> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .ok_or(Error::NotGiven { variable })
}

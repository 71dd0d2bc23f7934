//! The PostgreSQL that everybody is measured on.

use std::path::Path;

use surefoot_test_servers::{Postgres, Server};

use super::realtime::RealTime;
use crate::failure::Failure;
use crate::services;

/// A running server with default durability.
#[derive(Debug)]
pub(super) struct Database {
    /// As somebody who may create databases.
    pub(super) url: String,
    /// Its first process.
    pub(super) pid: Option<u32>,
    /// One of our own ends with this value.
    _server: Option<Server>,
}

impl Database {
    /// Starts one of our own.
    pub(super) fn start(target: &Path, real_time: RealTime) -> Result<Self, Failure> {
        let failed = |error: surefoot_test_servers::Error| Failure::new(error.to_string());
        let (programs, place) = services::postgres(target)?;
        let server = Postgres::new(programs).tied().inside(place).set("shared_buffers=1GB");
        let server = server.set("max_wal_size=4GB").start().map_err(failed)?;
        let pid = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).ok();
        let pid = pid.and_then(|text| text.lines().next()?.trim().parse().ok());
        if let Some(pid) = pid {
            real_time.give(pid);
        }
        Ok(Self { url: server.url().to_owned(), pid, _server: Some(server) })
    }

    /// One that others started and will stop.
    pub(super) fn of_others(url: String, pid: u32) -> Self {
        Self { url, pid: Some(pid), _server: None }
    }
}

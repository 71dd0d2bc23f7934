//! The embedded store of Surefoot: durable, on SQLite, no server.

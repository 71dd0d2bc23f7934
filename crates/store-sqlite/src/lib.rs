//! The embedded store of Surefoot: durable, on SQLite, no server.

pub use sqlx;
/// What statements of a transactional action run on.
pub type SqliteTx = sqlx::SqliteConnection;

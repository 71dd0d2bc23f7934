//! The only place that chooses a store.

use std::path::PathBuf;
use std::sync::Arc;

use surefoot_operator::Store;
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};

use crate::error::CliError;

/// What a command needs of the place that a URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It must be there: whoever only looks creates nothing.
    Existing,
    /// It is created if it is not there.
    Created,
}

/// Opens the store that a URL names.
pub(crate) async fn open(url: &str, need: Need) -> Result<Arc<dyn Store>, CliError> {
    Ok(Arc::new(embedded(url, need).await?))
}

/// Opens the embedded store that a URL names.
pub(crate) async fn embedded(url: &str, need: Need) -> Result<SqliteStore, CliError> {
    if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        return Err(CliError::NoPostgres);
    }
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Err(CliError::NotAStore(url.to_owned()));
    };
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    if path.as_os_str().is_empty() {
        return Err(CliError::NotAStore(url.to_owned()));
    }
    // An empty file is as little a store as none: opening it would make it one.
    let is_there = std::fs::metadata(&path).is_ok_and(|it| it.is_dir() || it.len() > 0);
    if need == Need::Existing && !is_there {
        return Err(CliError::NoStore(path));
    }
    let options = SqliteOptions::new(&path).create_if_missing(need == Need::Created);
    let opened = SqliteStore::open_with(options).await;
    opened.map_err(|source| CliError::Store { url: url.to_owned(), source })
}

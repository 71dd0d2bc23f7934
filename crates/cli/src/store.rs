//! The only place that chooses a store.

use std::path::PathBuf;
use std::sync::Arc;

use surefoot_operator::Store;
use surefoot_store_postgres::{PostgresOptions, PostgresStore};
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
    if is_embedded(url) {
        Ok(Arc::new(embedded(url, need).await?))
    } else {
        Ok(Arc::new(shared(url, need).await?))
    }
}

/// Whether a URL names an embedded store, or nothing that is known.
pub(crate) fn is_embedded(url: &str) -> bool {
    !(url.starts_with("postgres:") || url.starts_with("postgresql:"))
}

/// Opens the embedded store that a URL names.
pub(crate) async fn embedded(url: &str, need: Need) -> Result<SqliteStore, CliError> {
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Err(CliError::NotAStore(without_password(url)));
    };
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    if path.as_os_str().is_empty() {
        return Err(CliError::NotAStore(without_password(url)));
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

/// Opens the shared store that a URL names.
pub(crate) async fn shared(url: &str, need: Need) -> Result<PostgresStore, CliError> {
    let failed = |source| CliError::Store { url: without_password(url), source };
    let options = PostgresOptions::new(url).map_err(failed)?;
    let options = options.create_if_missing(need == Need::Created);
    PostgresStore::open_with(options).await.map_err(failed)
}

/// The same URL as it may be shown, and used where no password is needed: of what stands before the host only the user's
/// name is left, and none of a broker's, where a name alone is a token; what is behind the database's name is left out.
pub(crate) fn without_password(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let Some((who, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    let user = who.split_once(':').map_or(who, |(user, _)| user);
    if is_embedded(url) || user.contains('@') {
        return format!("{scheme}{place}");
    }
    format!("{scheme}{user}@{place}")
}

/// The same of a list of servers.
pub(crate) fn without_passwords(urls: &str) -> String {
    let parts: Vec<&str> = urls.split(',').collect();
    // A comma inside of a password separates nothing.
    let is_torn = |part: &&str| part.contains('@') && !part.contains("://");
    if parts.iter().skip(1).any(is_torn) {
        return without_password(urls);
    }
    parts.into_iter().map(|url| without_password(url.trim())).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_a_list_is_named_without_its_password() {
        for (urls, shown) in [
            ("nats://a:s3cret@one,nats://b:s3cret@two", "nats://one,nats://two"),
            ("nats://one:4222, nats://s3cret@two", "nats://one:4222,nats://two"),
            ("nats://a:s3,cret@one", "nats://one"),
            ("nats://one:4222", "nats://one:4222"),
        ] {
            assert_eq!(without_passwords(urls), shown);
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgres://shop:s3cret@db/shop", "postgres://shop@db/shop"),
            ("postgres://shop:p@ss:word@db:5433/shop", "postgres://shop@db:5433/shop"),
            ("postgres://shop@db/shop?password=s3cret", "postgres://shop@db/shop"),
            ("nats://s3cret@one:4222", "nats://one:4222"),
            ("nats://a:s3cret@one,nats://b:s3cret@two", "nats://two"),
            ("a:s3cret@one:4222", "one:4222"),
            ("nats:a:s3cret@one:4222", "one:4222"),
            ("Postgres://shop:s3cret@db/shop", "Postgres://db/shop"),
            ("postgres://db/shop", "postgres://db/shop"),
            ("postgres:shop", "postgres:shop"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}

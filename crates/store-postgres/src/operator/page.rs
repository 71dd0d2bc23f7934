//! Pages that stay in their place while rows are inserted.

use std::fmt::Display;
use std::str::FromStr;

use sqlx::PgConnection;

use surefoot_kernel_core::{App, Page, StoreError, Timestamp};

use crate::error::Fault;
use crate::store::not_a_cursor;

/// A place in a list that is sorted by time and id, newest first.
pub(crate) type Place<Id> = (Timestamp, Id);

/// A place between rows, not a number of rows: what is inserted meanwhile moves nothing.
pub(crate) fn read_cursor<Id: FromStr>(
    text: Option<&str>,
) -> Result<Option<Place<Id>>, StoreError> {
    let Some(text) = text else { return Ok(None) };
    let place = text
        .split_once('.')
        .and_then(|(at, id)| Some((Timestamp::from_micros(at.parse().ok()?), id.parse().ok()?)));
    place.map(Some).ok_or_else(not_a_cursor)
}

/// How many rows a list may ask of the store: one more than it shows, to know whether there are more.
pub(crate) fn rows_to_read(limit: u32) -> i64 {
    i64::from(limit.clamp(1, 1_000)).saturating_add(1)
}

/// The first page of rows that were read from several places, each in order.
pub(crate) fn page<T, Id: Ord + Display>(
    mut rows: Vec<T>,
    limit: u32,
    place: impl Fn(&T) -> Place<Id>,
) -> Page<T> {
    rows.sort_by_cached_key(|row| std::cmp::Reverse(place(row)));
    let limit = usize::try_from(limit.clamp(1, 1_000)).unwrap_or(1_000);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = if more { rows.last().map(place) } else { None };
    let next = last.map(|(at, id)| format!("{}.{id}", at.micros()));
    Page { rows, next }
}

/// The apps that a filter is about.
pub(crate) async fn apps_of(conn: &mut PgConnection, app: Option<&App>) -> Result<Vec<App>, Fault> {
    match app {
        Some(app) => Ok(vec![app.clone()]),
        None => super::health::apps(conn).await,
    }
}

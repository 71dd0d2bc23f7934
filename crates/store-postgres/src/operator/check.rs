//! What `doctor` asks of the server.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::StoreFact;

use crate::error::Fault;
use crate::migrate::MIGRATIONS;
use crate::sql;

/// The settings on which durability rests.
pub(crate) async fn check(conn: &mut PgConnection) -> Result<Vec<StoreFact>, Fault> {
    let row = sqlx::query(sql::META_SCHEMA).fetch_one(&mut *conn).await?;
    let schema: String = row.try_get("value")?;
    let known = MIGRATIONS.len().to_string();
    let row = sqlx::query(sql::OPERATOR_SETTINGS).fetch_one(conn).await?;
    let (server, fsync): (String, String) = (row.try_get("server")?, row.try_get("fsync")?);
    let pages: String = row.try_get("full_page_writes")?;
    let synchronous: String = row.try_get("synchronous_commit")?;
    let major = server.split(['.', ' ']).next().and_then(|major| major.parse::<u32>().ok());
    let is_tried = major.is_some_and(|major| (15..=18).contains(&major));
    let lost = "on: without it, a crash of the machine may take back what was acknowledged";
    Ok(vec![
        fact("schema version", schema == known, schema, &format!("this program knows {known}")),
        fact("server version", is_tried, server, "15 to 18 are those that are tried"),
        fact("fsync", fsync == "on", fsync, lost),
        fact("full page writes", pages == "on", pages, lost),
        fact(
            "synchronous commit",
            synchronous != "off",
            synchronous,
            "not off, for the same reason",
        ),
    ])
}

fn fact(name: &'static str, ok: bool, found: String, wanted: &str) -> StoreFact {
    StoreFact { name, ok, found, wanted: wanted.to_owned() }
}

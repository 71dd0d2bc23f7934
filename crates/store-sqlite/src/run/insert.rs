//! New runs.

use serde_json::Value;
use sqlx::SqliteConnection;

use surefoot_kernel_core::{JournalText, Run, TraceContext, actor_of};

use super::row::{int, json_opt};
use super::write::bind_state;
use crate::error::Fault;
use crate::sql::{self, pieces};

/// What a run is started with, as stored: JSON text, byte for byte. A child shares its root's context and
/// authorization, and has none of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartedWith<'a> {
    pub(crate) data: &'a str,
    pub(crate) context: Option<&'a str>,
    pub(crate) authorization: Option<&'a Value>,
    pub(crate) trace: Option<&'a TraceContext>,
    /// What is journaled of it from the beginning.
    pub(crate) journal: Option<&'a JournalText>,
}

pub(crate) async fn insert(
    conn: &mut SqliteConnection,
    run: &Run,
    with: StartedWith<'_>,
) -> Result<(), Fault> {
    insert_all(conn, &[(run, with)]).await
}

pub(crate) async fn insert_all(
    conn: &mut SqliteConnection,
    runs: &[(&Run, StartedWith<'_>)],
) -> Result<(), Fault> {
    for piece in pieces(runs) {
        let mut query = sqlx::query(sql::RUN_START.text(piece.len()));
        for (run, _) in piece {
            let origin = &run.origin;
            let parent = origin.parent.as_ref();
            query = query
                .bind(run.id.to_bytes().to_vec())
                .bind(origin.app.as_str())
                .bind(origin.scope.as_str())
                .bind(origin.workflow.as_str())
                .bind(origin.version.to_bytes().to_vec())
                .bind(&*origin.footprint)
                .bind(origin.mode.as_str())
                .bind(origin.event.map(|event| event.to_bytes().to_vec()))
                .bind(origin.trigger.as_deref())
                .bind(origin.occurred_at.micros())
                .bind(origin.root.to_bytes().to_vec())
                .bind(parent.map(|parent| parent.run.to_bytes().to_vec()))
                .bind(parent.map(|parent| parent.step.as_str()))
                .bind(parent.map(|parent| parent.index))
                .bind(parent.map(|parent| parent.depth))
                .bind(origin.created_at.micros());
            query = bind_state(query, run, None, None)?;
        }
        query = sql::RUN_INSERT.blank(query, piece.len());
        for (run, with) in piece {
            let actor = actor_of(with.authorization);
            query = query
                .bind(run.id.to_bytes().to_vec())
                .bind(with.data)
                .bind(with.context)
                .bind(json_opt(with.authorization)?)
                .bind(json_opt(actor.as_ref())?)
                .bind(json_opt(with.trace)?);
        }
        query = sql::RUN_PAYLOAD_WRITE.blank(query, piece.len());
        for (run, _) in piece {
            query = query.bind(run.id.to_bytes().to_vec());
        }
        query = sql::BUDGET_OPEN.blank(query, piece.len());
        for (run, with) in piece {
            let journal = with.journal;
            query = query
                .bind(journal.map(|_| run.id.to_bytes().to_vec()))
                .bind(journal.map(|journal| int(journal.seq)))
                .bind(journal.map(|journal| int(journal.count)))
                .bind(int(run.generation))
                .bind(run.origin.created_at.micros())
                .bind(journal.map(|journal| &*journal.facts));
        }
        query = sql::RUN_PLAIN_JOURNAL.blank(query, piece.len());
        query.execute(&mut *conn).await?;
    }
    Ok(())
}

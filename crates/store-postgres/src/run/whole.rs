//! What claimed runs have behind them, of many in two statements.

use std::collections::HashMap;

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    CLAIM_MAX_BYTES, Invocation, JournalEntry, Receipt, Run, RunId, Stored, Timestamp,
};

use super::load::{read_entry, read_invocation};
use super::row::int;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

/// Of those with little behind them that can be read. The others are read one by one, and say what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    started_with: HashMap<RunId, Invocation>,
    journals: HashMap<RunId, Vec<JournalEntry>>,
}

impl Whole {
    pub(crate) async fn read<'r>(
        conn: &mut PgConnection,
        runs: impl Iterator<Item = &'r Run>,
    ) -> Result<Self, Fault> {
        let small: Vec<&Run> = runs.filter(|run| run.journal_bytes <= CLAIM_MAX_BYTES).collect();
        let journaled = small.iter().filter(|run| run.seq > 0);
        let mut whole = Self {
            started_with: started_with(conn, &small).await?,
            journals: journals(conn, journaled.map(|run| run.id.key()).collect()).await?,
        };
        // One whose journal cannot be read is read by itself.
        let is_whole = |run: &Run| run.seq == 0 || whole.journals.contains_key(&run.id);
        let broken = small.into_iter().filter(|run| !is_whole(run)).map(|run| run.id);
        for run in broken.collect::<Vec<_>>() {
            whole.started_with.remove(&run);
        }
        Ok(whole)
    }

    pub(crate) fn invocation(&self, run: RunId) -> Option<&Invocation> {
        self.started_with.get(&run)
    }

    /// What started the run, and what of its journal its row counts: the journal only grows.
    pub(crate) fn take(&mut self, run: RunId, seq: u64) -> (Option<Invocation>, Vec<JournalEntry>) {
        let mut journal = self.journals.remove(&run).unwrap_or_default();
        journal.retain(|entry| entry.seq < seq);
        (self.started_with.remove(&run), journal)
    }

    /// Runs as they are.
    pub(crate) fn stored(mut self, runs: Vec<Run>, now: Timestamp) -> Vec<Stored> {
        let stored = |run: Run| {
            let (invocation, journal) = self.take(run.id, run.seq);
            Stored { receipt: Receipt::attest(&run), run, invocation, journal: Ok(journal), now }
        };
        runs.into_iter().map(stored).collect()
    }
}

async fn started_with(
    conn: &mut PgConnection,
    runs: &[&Run],
) -> Result<HashMap<RunId, Invocation>, Fault> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(sql::RUN_STARTED_WITH)
        .bind(runs.iter().map(|run| run.id.key()).collect::<Vec<Uuid>>())
        .bind(runs.iter().map(|run| run.origin.root.key()).collect::<Vec<Uuid>>())
        .bind(int(CLAIM_MAX_BYTES))
        .fetch_all(conn)
        .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let run = RunId::of_key(row.try_get("id")?);
        if let Ok(invocation) = read_invocation(row, run) {
            found.insert(run, invocation);
        }
    }
    Ok(found)
}

async fn journals(
    conn: &mut PgConnection,
    runs: Vec<Uuid>,
) -> Result<HashMap<RunId, Vec<JournalEntry>>, Fault> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(sql::RUN_JOURNALS).bind(runs).fetch_all(conn).await?;
    let mut found: HashMap<RunId, Result<Vec<JournalEntry>, ()>> = HashMap::new();
    for row in &rows {
        let run = found.entry(RunId::of_key(row.try_get("run")?)).or_insert_with(|| Ok(Vec::new()));
        match (read_entry(row)?, &mut *run) {
            (Ok(entry), Ok(entries)) => entries.push(entry),
            (Ok(_), Err(())) => {}
            (Err(_), _) => *run = Err(()),
        }
    }
    Ok(found.into_iter().filter_map(|(run, entries)| Some((run, entries.ok()?))).collect())
}

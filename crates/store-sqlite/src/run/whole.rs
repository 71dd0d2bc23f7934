//! What claimed runs have behind them, of many in two statements.

use std::collections::HashMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    CLAIM_MAX_BYTES, Invocation, JournalEntry, Receipt, Run, RunId, Stored, Timestamp,
};

use super::load::{read_entry, read_invocation};
use super::row::Head;
use crate::error::Fault;
use crate::sql::{self, Rows, pieces};

/// Of those with little behind them that can be read. The others are read one by one, and say what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    started_with: HashMap<RunId, Invocation>,
    journals: HashMap<RunId, Vec<JournalEntry>>,
}

impl Whole {
    pub(crate) async fn read(
        conn: &mut SqliteConnection,
        runs: &[(Head, Run)],
    ) -> Result<Self, Fault> {
        let small = runs.iter().filter(|(_, run)| run.journal_bytes <= CLAIM_MAX_BYTES);
        let small: HashMap<i64, &Run> = small.map(|(head, run)| (head.no, run)).collect();
        let journaled = small.iter().filter(|(_, run)| run.seq > 0);
        let journaled: Vec<i64> = journaled.map(|(no, _)| *no).collect();
        let mut whole = Self {
            started_with: started_with(conn, &small).await?,
            journals: journals(conn, &journaled, &small).await?,
        };
        // One whose journal cannot be read is read by itself.
        let is_whole = |run: &Run| run.seq == 0 || whole.journals.contains_key(&run.id);
        let broken = small.into_values().filter(|run| !is_whole(run)).map(|run| run.id);
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
    pub(crate) fn stored(mut self, runs: Vec<(Head, Run)>, now: Timestamp) -> Vec<Stored> {
        let stored = |(_, run): (Head, Run)| {
            let (invocation, journal) = self.take(run.id, run.seq);
            Stored { receipt: Receipt::attest(&run), run, invocation, journal: Ok(journal), now }
        };
        runs.into_iter().map(stored).collect()
    }
}

async fn started_with(
    conn: &mut SqliteConnection,
    runs: &HashMap<i64, &Run>,
) -> Result<HashMap<RunId, Invocation>, Fault> {
    let numbers: Vec<i64> = runs.keys().copied().collect();
    let mut found = HashMap::with_capacity(numbers.len());
    for piece in pieces(&numbers) {
        let rows = rows(conn, &sql::RUN_STARTED_WITH, piece).await?;
        for row in &rows {
            let Some(run) = runs.get(&row.try_get::<i64, _>("no")?) else { continue };
            if let Ok(invocation) = read_invocation(row, run.id) {
                found.insert(run.id, invocation);
            }
        }
    }
    Ok(found)
}

async fn journals(
    conn: &mut SqliteConnection,
    numbers: &[i64],
    runs: &HashMap<i64, &Run>,
) -> Result<HashMap<RunId, Vec<JournalEntry>>, Fault> {
    let mut found: HashMap<RunId, Result<Vec<JournalEntry>, ()>> = HashMap::new();
    for piece in pieces(numbers) {
        for row in &rows(conn, &sql::RUN_JOURNALS, piece).await? {
            let Some(run) = runs.get(&row.try_get::<i64, _>("run")?) else { continue };
            let run = found.entry(run.id).or_insert_with(|| Ok(Vec::new()));
            match (read_entry(row)?, &mut *run) {
                (Ok(entry), Ok(entries)) => entries.push(entry),
                (Ok(_), Err(())) => {}
                (Err(_), _) => *run = Err(()),
            }
        }
    }
    Ok(found.into_iter().filter_map(|(run, entries)| Some((run, entries.ok()?))).collect())
}

async fn rows(
    conn: &mut SqliteConnection,
    statement: &'static Rows,
    numbers: &[i64],
) -> Result<Vec<SqliteRow>, Fault> {
    let mut query = sqlx::query(statement.text(numbers.len()));
    for no in numbers {
        query = query.bind(*no);
    }
    Ok(statement.blank(query, numbers.len()).fetch_all(conn).await?)
}

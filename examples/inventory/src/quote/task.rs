//! The table of tasks. Every change says in its `WHERE` which state it expects, so a late one changes nothing.

use surefoot::prelude::*;

use crate::store::{AppTx, sqlx};

/// A question to the supplier, as the step asks it.
#[derive(Debug, Clone, Copy)]
pub struct NewTask<'a> {
    /// The step's.
    pub effect_key: &'a EffectKey,
    /// Whom to ask whether the answer is still wanted.
    pub run: RunId,
    /// The same.
    pub step: &'a StepKey,
    /// What.
    pub item: &'a str,
    /// How many.
    pub pieces: i64,
    /// On which terms.
    pub terms: &'a str,
}

/// A question to the supplier, as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The step's.
    pub effect_key: String,
    /// Whom to ask whether the answer is still wanted.
    pub run: RunId,
    /// The same.
    pub step: StepKey,
    /// What.
    pub item: String,
    /// How many.
    pub pieces: i64,
    /// On which terms.
    pub terms: String,
    /// Questions that failed so far.
    pub attempts: u32,
    /// Where it stands.
    pub state: TaskState,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// Nobody has answered yet.
    Open,
    /// The supplier's answer, as it came.
    Answered(String),
    /// The supplier could not be asked; why.
    Failed(String),
    /// Nobody waits for it any more.
    Canceled,
}

/// A row is not what this program wrote.
#[derive(Debug, thiserror::Error)]
#[error("the task cannot be read: {0}")]
pub(crate) struct Unreadable(String);

type Row = (String, String, String, String, i64, String, i64, String, Option<String>);

const COLUMNS: &str = "effect_key, run, step, item, pieces, terms, attempts, state, answer";

/// Writes the task, or finds the one that exists under its key. What exists keeps its terms.
///
/// # Errors
/// The database's word.
pub async fn create_or_find(tx: &mut AppTx, new: NewTask<'_>) -> Result<Task, sqlx::Error> {
    let sql = "INSERT INTO quote_task (effect_key, run, step, item, pieces, terms) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let insert = sqlx::query(sql).bind(new.effect_key.as_str()).bind(new.run.to_string());
    let insert = insert.bind(new.step.as_str()).bind(new.item).bind(new.pieces).bind(new.terms);
    insert.execute(&mut *tx).await?;
    find(tx, new.effect_key.as_str()).await?.ok_or(sqlx::Error::RowNotFound)
}

/// Reads a task.
///
/// # Errors
/// The database's word.
pub async fn find(tx: &mut AppTx, effect_key: &str) -> Result<Option<Task>, sqlx::Error> {
    let sql =
        sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM quote_task WHERE effect_key = $1"));
    let row: Option<Row> = sqlx::query_as(sql).bind(effect_key).fetch_optional(tx).await?;
    row.map(read).transpose()
}

/// Reads tasks that nobody has answered, at most so many, those that failed least first.
///
/// # Errors
/// The database's word.
pub async fn list_open(tx: &mut AppTx, limit: u32) -> Result<Vec<Task>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM quote_task WHERE state = 'open' ORDER BY attempts, effect_key LIMIT $1"
    ));
    let rows: Vec<Row> = sqlx::query_as(sql).bind(i64::from(limit)).fetch_all(tx).await?;
    rows.into_iter().map(read).collect()
}

/// Writes the supplier's answer; false if the task was not open any more, and then nothing changed.
///
/// # Errors
/// The database's word.
pub async fn answer(tx: &mut AppTx, effect_key: &str, answer: &str) -> Result<bool, sqlx::Error> {
    let sql = "UPDATE quote_task SET state = 'answered', answer = $1 WHERE effect_key = $2 AND state = 'open'";
    let done = sqlx::query(sql).bind(answer).bind(effect_key).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Counts a question that failed; true if it was the last one allowed, and the task has failed with it.
///
/// # Errors
/// The database's word.
pub async fn attempt_failed(
    tx: &mut AppTx,
    effect_key: &str,
    why: &str,
    attempts_max: u32,
) -> Result<bool, sqlx::Error> {
    let sql = "UPDATE quote_task SET attempts = attempts + 1, answer = $1, \
               state = CASE WHEN attempts + 1 >= $2 THEN 'failed' ELSE 'open' END \
               WHERE effect_key = $3 AND state = 'open' RETURNING state = 'failed'";
    let query = sqlx::query_scalar(sql).bind(why).bind(i64::from(attempts_max)).bind(effect_key);
    Ok(query.fetch_optional(tx).await?.unwrap_or(false))
}

/// Nobody waits for it any more.
///
/// # Errors
/// The database's word.
pub async fn cancel(tx: &mut AppTx, effect_key: &str) -> Result<(), sqlx::Error> {
    let sql = "UPDATE quote_task SET state = 'canceled' WHERE effect_key = $1 AND state = 'open'";
    sqlx::query(sql).bind(effect_key).execute(tx).await?;
    Ok(())
}

fn read(row: Row) -> Result<Task, sqlx::Error> {
    let (effect_key, run, step, item, pieces, terms, attempts, state, answer) = row;
    let run = run.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let answer = answer.unwrap_or_default();
    let state = match state.as_str() {
        "open" => TaskState::Open,
        "answered" => TaskState::Answered(answer),
        "failed" => TaskState::Failed(answer),
        "canceled" => TaskState::Canceled,
        other => return Err(sqlx::Error::Decode(Box::new(Unreadable(format!("state `{other}`"))))),
    };
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    Ok(Task { effect_key, run, step: step.into(), item, pieces, terms, attempts, state })
}

//! Counters of effect budgets: one row per root run and dimension.
//!
//! What a charge does is the core's word (`Budget::charge`), said on the counters as read inside the transaction.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{Amount, Amounts, Budget, Commit, Counter, RunId, StoreError};

use crate::error::Fault;
use crate::event::emit::unreadable;
use crate::run::row::json;
use crate::sql;

/// Caps as a version keeps them: millionths by dimension.
pub(crate) fn caps_text(caps: &Amounts) -> Result<String, Fault> {
    let millionths: BTreeMap<&str, i64> =
        caps.iter().map(|(dimension, cap)| (dimension, cap.millionths())).collect();
    json(&millionths)
}

pub(crate) fn read_caps(text: &str) -> Result<Amounts, Fault> {
    let millionths: BTreeMap<String, i64> = from_stored(text).map_err(|_| unreadable())?;
    let mut caps = Amounts::default();
    for (dimension, cap) in millionths {
        caps.add(&dimension, Amount::from_millionths(cap));
    }
    Ok(caps)
}

/// The counters of a root run.
pub(crate) async fn read(conn: &mut SqliteConnection, root: RunId) -> Result<Budget, Fault> {
    let query = sqlx::query(sql::BUDGET_READ).bind(root.to_bytes().to_vec());
    let rows = query.fetch_all(conn).await?;
    let counters = rows.iter().map(|row| {
        let used = Amount::from_millionths(row.try_get("used")?);
        let limit: Option<i64> = row.try_get("cap")?;
        let limit = limit.map(Amount::from_millionths);
        Ok((row.try_get("dimension")?, Counter { used, limit }))
    });
    Ok(Budget::of_counters(counters.collect::<Result<Vec<_>, Fault>>()?))
}

/// The charges of commits that are written together: summed in their order, each refused for itself.
#[derive(Debug, Default)]
pub(crate) struct Charges(HashMap<RunId, Charged>);

#[derive(Debug)]
struct Charged {
    budget: Budget,
    /// The dimensions whose counters moved.
    moved: Amounts,
}

impl Charges {
    /// Charges in memory. An error that is the core's word refuses this commit alone.
    pub(crate) async fn take(
        &mut self,
        conn: &mut SqliteConnection,
        commit: &Commit,
    ) -> Result<Result<(), StoreError>, Fault> {
        let Some(charge) = &commit.charge else { return Ok(Ok(())) };
        let root = commit.after.origin.root;
        let charged = match self.0.entry(root) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (budget, moved) = (read(conn, root).await?, Amounts::default());
                new.insert(Charged { budget, moved })
            }
        };
        Ok(match charged.budget.charge(charge) {
            Ok(()) => {
                charged.moved.add_all(charge);
                Ok(())
            }
            Err(exceeded) => Err(StoreError::BudgetExceeded(exceeded)),
        })
    }

    pub(crate) async fn write(self, conn: &mut SqliteConnection) -> Result<(), Fault> {
        for (root, Charged { budget, moved }) in self.0 {
            for (dimension, _) in moved.iter() {
                sqlx::query(sql::BUDGET_WRITE)
                    .bind(root.to_bytes().to_vec())
                    .bind(dimension.to_owned())
                    .bind(budget.counter(dimension).used.millionths())
                    .execute(&mut *conn)
                    .await?;
            }
        }
        Ok(())
    }
}

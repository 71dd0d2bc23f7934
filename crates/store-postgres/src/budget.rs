//! Counters of effect budgets: one row per root run and dimension.
//!
//! What a charge does is the core's word (`Budget::charge`), said on the counters as locked inside the transaction.

use std::collections::{BTreeMap, HashMap};

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{Amount, Amounts, Budget, Commit, Counter, Run, RunId, StoreError};

use crate::error::{Fault, unreadable};
use crate::keys::{Key, sorted_keys};
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

/// Copies the caps of their versions to the counters of new root runs. A child charges its root.
pub(crate) async fn open<'r>(
    conn: &mut PgConnection,
    runs: impl Iterator<Item = &'r Run>,
) -> Result<(), Fault> {
    let roots = runs.filter(|run| run.origin.root == run.id);
    let (roots, versions): (Vec<_>, Vec<_>) =
        roots.map(|run| (run.id.key(), run.origin.version.key())).unzip();
    if !roots.is_empty() {
        sqlx::query(sql::BUDGET_OPEN).bind(roots).bind(versions).execute(conn).await?;
    }
    Ok(())
}

/// The counters of a root run.
pub(crate) async fn read(conn: &mut PgConnection, root: RunId) -> Result<Budget, Fault> {
    let rows = sqlx::query(sql::BUDGET_READ).bind(vec![root.key()]).fetch_all(conn).await?;
    Ok(by_root(&rows)?.remove(&root).unwrap_or_default())
}

fn by_root(rows: &[PgRow]) -> Result<HashMap<RunId, Budget>, Fault> {
    let mut counters: HashMap<RunId, Vec<(String, Counter)>> = HashMap::new();
    for row in rows {
        let used = Amount::from_millionths(row.try_get("used")?);
        let limit: Option<i64> = row.try_get("cap")?;
        let counter = Counter { used, limit: limit.map(Amount::from_millionths) };
        let root = RunId::of_key(row.try_get("root")?);
        counters.entry(root).or_default().push((row.try_get("dimension")?, counter));
    }
    let budgets = counters.into_iter();
    Ok(budgets.map(|(root, counters)| (root, Budget::of_counters(counters))).collect())
}

/// The charges of commits that are written together: summed in their order, each refused for itself.
#[derive(Debug, Default)]
pub(crate) struct Charges(HashMap<RunId, Charged>);

#[derive(Debug, Default)]
struct Charged {
    budget: Budget,
    /// What was added to the counters.
    added: Amounts,
}

impl Charges {
    /// Locks the counters that these commits charge, all at once and in one order everywhere. This waits for whoever
    /// has one: each such lock is the last of its transaction.
    pub(crate) async fn lock<'c>(
        conn: &mut PgConnection,
        commits: impl Iterator<Item = &'c Commit>,
    ) -> Result<Self, Fault> {
        let charging = commits.filter(|commit| commit.charge.is_some());
        let roots = sorted_keys(charging.map(|commit| commit.after.origin.root));
        if roots.is_empty() {
            return Ok(Self::default());
        }
        let rows = sqlx::query(sql::BUDGET_LOCK).bind(roots).fetch_all(conn).await?;
        let budgets = by_root(&rows)?.into_iter();
        let charged = |budget| Charged { budget, added: Amounts::default() };
        Ok(Self(budgets.map(|(root, budget)| (root, charged(budget))).collect()))
    }

    /// Charges in memory.
    ///
    /// # Errors
    /// The core's word: it refuses this commit alone.
    pub(crate) fn take(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let Some(charge) = &commit.charge else { return Ok(()) };
        let charged = self.0.entry(commit.after.origin.root).or_default();
        charged.budget.charge(charge).map_err(StoreError::BudgetExceeded)?;
        charged.added.add_all(charge);
        Ok(())
    }

    pub(crate) async fn write(self, conn: &mut PgConnection) -> Result<(), Fault> {
        let (mut roots, mut dimensions, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
        for (root, Charged { added, .. }) in self.0 {
            for (dimension, amount) in added.iter() {
                roots.push(root.key());
                dimensions.push(dimension.to_owned());
                amounts.push(amount.millionths());
            }
        }
        if !roots.is_empty() {
            let query = sqlx::query(sql::BUDGET_CHARGE).bind(roots).bind(dimensions).bind(amounts);
            query.execute(conn).await?;
        }
        Ok(())
    }
}

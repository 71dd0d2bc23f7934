//! Looking at parts of a run and of a version, page by page.

use serde_json::Value;
use surefoot_kernel_core::{
    App, Fact, JournalEntry, LoadRequest, RestoreInvalid, RunId, Scope, StepValues, VersionId,
    payload, shown_steps,
};

use crate::view::{
    At, JournalEntryView, JournalView, ScheduleView, SchedulesView, StepsView, VersionDetailView,
    VersionView,
};
use crate::{Operator, OperatorError};

impl Operator {
    /// The steps that a run has come to, in order.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::NotACursor`]; [`OperatorError::Unreadable`] where plan or journal
    /// cannot be read.
    pub async fn steps(
        &self,
        run: RunId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<StepsView, OperatorError> {
        let before = usize::try_from(place(cursor)?).map_err(|_| OperatorError::NotACursor)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let reading = self.reading(run).await?;
        if let Some(why) = &reading.unreadable {
            let what = format!("what run {run} did");
            return Err(OperatorError::Unreadable { what, why: why.clone() });
        }
        let end = before.saturating_add(limit);
        let (steps, behind) = shown_steps(&reading.input(), end);
        let total = steps.len() as u64 + behind;
        let next = (behind > 0).then(|| end.to_string());
        let steps = steps.into_iter().skip(before).map(Into::into).collect();
        Ok(StepsView { steps, total, next })
    }

    /// What was recorded of a run, commit by commit, in order.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::NotACursor`]; [`OperatorError::Unreadable`] where the journal
    /// cannot be read.
    pub async fn journal(
        &self,
        run: RunId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<JournalView, OperatorError> {
        let after = place(cursor)?;
        let request = LoadRequest { run, after: Some(after) };
        let stored = self.store.run_load(request).await?;
        let stored = stored.ok_or_else(|| OperatorError::not_found(format!("run {run}")))?;
        let unreadable = |invalid: RestoreInvalid| OperatorError::Unreadable {
            what: format!("the journal of run {run}"),
            why: invalid.what,
        };
        let mut entries = stored.journal.map_err(unreadable)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let next = entries.get(limit).map(|entry| entry.seq.to_string());
        entries.truncate(limit);
        Ok(JournalView { entries: entries.iter().map(entry).collect(), next })
    }

    /// A stored version with its source and its plan.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::Unreadable`].
    pub async fn version(&self, id: VersionId) -> Result<VersionDetailView, OperatorError> {
        let stored = self.store.version_load(id).await?;
        let stored = stored.ok_or_else(|| OperatorError::not_found(format!("version {id}")))?;
        let plan =
            payload::from_stored(&stored.plan).map_err(|error| OperatorError::Unreadable {
                what: format!("the plan of version {id}"),
                why: error.to_string(),
            })?;
        Ok(VersionDetailView {
            version: VersionView::from(&stored),
            scope: stored.scope,
            workflow: stored.workflow,
            source: stored.source,
            plan,
        })
    }

    /// The schedules of the active versions of an app, or of one scope of it, switched on or not.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn schedules(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<SchedulesView, OperatorError> {
        let rows = self.store.schedule_list(app).await?.rows.into_iter();
        let here = rows.filter(|row| scope.is_none_or(|scope| row.scope == *scope));
        let schedules: Vec<ScheduleView> = here
            .map(|row| ScheduleView {
                scope: row.scope,
                workflow: row.workflow,
                key: row.key,
                cron: row.schedule.cron,
                timezone: row.schedule.timezone.unwrap_or_else(|| "UTC".to_owned()),
                since: At(row.since),
                enabled: row.enabled,
            })
            .collect();
        self.if_empty(schedules.is_empty(), Some(app), scope).await?;
        Ok(SchedulesView { schedules })
    }
}

/// A cursor is the number of what was shown before.
fn place(cursor: Option<&str>) -> Result<u64, OperatorError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let place = cursor.parse::<u32>().map(u64::from).map_err(|_| OperatorError::NotACursor)?;
    if place.to_string() == cursor { Ok(place) } else { Err(OperatorError::NotACursor) }
}

fn entry(entry: &JournalEntry) -> JournalEntryView {
    let facts = entry.facts.iter().map(|fact| {
        let written = match without_values(fact) {
            Some(bare) => serde_json::to_value(bare),
            None => serde_json::to_value(fact),
        };
        written.unwrap_or(Value::Null)
    });
    let (seq, generation, at) = (entry.seq, entry.generation, At(entry.at));
    JournalEntryView { seq, generation, at, facts: facts.collect() }
}

/// A fact that holds resolved values, without them.
fn without_values(fact: &Fact) -> Option<Fact> {
    let Fact::ValuesResolved { step, values } = fact else { return None };
    let mut bare = StepValues::default();
    for (reference, _) in values.iter() {
        bare.keep(reference, Value::Null);
    }
    Some(Fact::ValuesResolved { step: step.clone(), values: bare })
}

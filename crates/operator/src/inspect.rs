//! One run, one version, the schedules: all that a person looks at on one screen, read at one moment.

use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{App, RunId, Scope, explain_with_steps, outline, payload};
use surefoot_language::next_due;

use crate::doctor::WhichVersion;
use crate::read::{Reading, SHOW_MAX_STEPS};
use crate::view::{
    InspectView, JournalRowView, ScheduleView, SchedulesView, VersionDetailView, VersionView,
};
use crate::{Operator, OperatorError};

/// Steps of one plan that an outline names.
const OUTLINE_MAX_STEPS: usize = 1_000;

/// Which rows of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRange {
    /// Rows before these, from the oldest on.
    pub skip: u64,
    /// At most so many.
    pub limit: u64,
}

impl Operator {
    /// The apps that the store holds, sorted.
    ///
    /// # Errors
    /// The store's.
    pub async fn apps(&self) -> Result<Vec<App>, OperatorError> {
        Ok(self.store.app_list().await?)
    }

    /// One run in detail, explained, with its plan and a part of its journal, all of one moment.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`].
    pub async fn inspect(
        &self,
        run: RunId,
        range: JournalRange,
    ) -> Result<InspectView, OperatorError> {
        let reading = self.reading(run).await?;
        let (explanation, steps) = explain_with_steps(&reading.input(), SHOW_MAX_STEPS);
        let show = self.shown(&reading, steps).await?;
        let (outline, outline_omitted) = match reading.plan() {
            Some(plan) => outline(plan, OUTLINE_MAX_STEPS),
            None => (Vec::new(), 0),
        };
        let (journal, journal_rows) = journal(&reading, range);
        Ok(InspectView { show, explanation, outline, outline_omitted, journal, journal_rows })
    }

    /// A stored version with its source.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`].
    pub async fn version(&self, which: WhichVersion) -> Result<VersionDetailView, OperatorError> {
        let stored = self.stored_version(which).await?;
        let plan = payload::from_stored::<Plan>(&stored.plan);
        let unreadable =
            plan.as_ref().err().map(|error| format!("the plan cannot be read: {error}"));
        let (outline, outline_omitted) = match &plan {
            Ok(plan) => outline(plan, OUTLINE_MAX_STEPS),
            Err(_) => (Vec::new(), 0),
        };
        Ok(VersionDetailView {
            version: VersionView::from(&stored),
            app: stored.app,
            scope: stored.scope,
            workflow: stored.workflow,
            source: stored.source,
            outline,
            outline_omitted,
            unreadable,
        })
    }

    /// The schedules of an app, or of one scope of it, with the next time that each is due.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn schedules(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<SchedulesView, OperatorError> {
        let known = self.store.schedule_list(app).await?;
        let rows = known.rows.iter().filter(|row| scope.is_none_or(|scope| row.scope == *scope));
        let schedules: Vec<ScheduleView> = rows
            .map(|row| {
                // One that is switched off starts nothing.
                let next = row.enabled.then(|| next_due(&row.schedule, known.now)).flatten();
                ScheduleView::of(row, next)
            })
            .collect();
        self.if_empty(schedules.is_empty(), Some(app), scope).await?;
        Ok(SchedulesView { schedules })
    }
}

fn journal(reading: &Reading, range: JournalRange) -> (Vec<JournalRowView>, u64) {
    let Ok(rows) = &reading.detail.journal else { return (Vec::new(), 0) };
    let skip = usize::try_from(range.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(range.limit).unwrap_or(usize::MAX);
    let listed = rows.iter().skip(skip).take(limit).map(JournalRowView::from);
    (listed.collect(), rows.len() as u64)
}

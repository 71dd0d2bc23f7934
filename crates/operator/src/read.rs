//! Looking.

use std::collections::BTreeMap;

use serde_json::Value;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    App, EventFilter, ExplainInput, Explanation, Fact, GroupRow, JournalEntry, Micros, Page, Phase,
    RunDetail, RunFilter, RunId, RunRow, Scope, SessionRow, Shown, WorkflowKey, check_event_type,
    check_tag, explain, payload, shown_steps,
};

use crate::view::{
    EffectView, EffectsView, EventView, EventsView, RunView, RunsView, ShowView, SignalView,
    SignalsView, VersionView, VersionsView, WorkflowView, WorkflowsView, event_summary,
};
use crate::{Operator, OperatorError};

/// Steps of one run that `show` lists.
pub(crate) const SHOW_MAX_STEPS: usize = 10_000;
/// Children of one run that `show` lists.
const SHOW_MAX_CHILDREN: u32 = 100;
/// Signals that are looked through for the one that a run waits for.
const SIGNALS_LOOKED_THROUGH: u32 = 1_000;

/// A run with its plan, as far as both can be read.
pub(crate) struct Reading {
    pub(crate) detail: RunDetail,
    plan: Option<Plan>,
    sessions: Vec<SessionRow>,
    pub(crate) unreadable: Option<String>,
    is_signaled: Option<bool>,
}

impl Reading {
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    pub(crate) fn input(&self) -> ExplainInput<'_> {
        let journal: &[JournalEntry] = match &self.detail.journal {
            Ok(journal) => journal,
            Err(_) => &[],
        };
        ExplainInput {
            run: &self.detail.run,
            plan: self.plan.as_ref(),
            invocation: &self.detail.invocation,
            journal,
            unreadable: self.unreadable.as_deref(),
            sessions: &self.sessions,
            budget: &self.detail.budget,
            is_signaled: self.is_signaled,
            children: &self.detail.children,
            group: self.detail.group.as_ref(),
            now: self.detail.now,
        }
    }
}

impl Operator {
    /// Runs, newest first; children only where they or their parent are asked for.
    ///
    /// # Errors
    /// [`OperatorError::NotACursor`]; [`OperatorError::NotFound`] for a scope, a workflow or a parent that is not known;
    /// the store's.
    pub async fn runs(&self, filter: RunFilter) -> Result<RunsView, OperatorError> {
        let page = self.run_page(filter).await?;
        Ok(RunsView { runs: page.rows.iter().map(RunView::from).collect(), next: page.next })
    }

    pub(crate) async fn run_page(&self, filter: RunFilter) -> Result<Page<RunRow>, OperatorError> {
        filter.tag.as_deref().map_or(Ok(()), check_tag)?;
        let page = self.store.run_list(filter.clone()).await.map_err(OperatorError::of_page)?;
        if page.rows.is_empty() {
            self.check_narrowed(&filter).await?;
        }
        Ok(page)
    }

    /// One run in detail. What cannot be read is said, the rest is shown.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`].
    pub async fn show(&self, run: RunId) -> Result<ShowView, OperatorError> {
        let reading = self.reading(run).await?;
        let steps = shown_steps(&reading.input(), SHOW_MAX_STEPS);
        self.shown(&reading, steps).await
    }

    /// With the steps that it has come to, and how many are left out of them.
    pub(crate) async fn shown(
        &self,
        reading: &Reading,
        (steps, steps_omitted): (Vec<Shown>, u64),
    ) -> Result<ShowView, OperatorError> {
        let run = reading.detail.run.id;
        let children =
            RunFilter { parent: Some(run), limit: SHOW_MAX_CHILDREN, ..RunFilter::default() };
        let children = self.store.run_list(children).await?;
        let detail = &reading.detail;
        let children_by_state = by_state(&detail.children);
        let listed = children.rows.len() as u64;
        let (result, result_message) = match &detail.run.phase {
            Phase::Succeeded { result, message } => (result.clone(), message.clone()),
            Phase::Canceled { message } => (Value::Null, message.clone()),
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Failed { .. } => (Value::Null, None),
        };
        Ok(ShowView {
            run: RunView::of(&detail.run, detail.version_revision),
            inputs: inputs_of(detail),
            result,
            result_message,
            event: event_summary(detail),
            trace: detail.invocation.trace.clone(),
            budget: detail.budget.lines(),
            steps: steps.into_iter().map(Into::into).collect(),
            steps_omitted,
            children: children.rows.iter().map(RunView::from).collect(),
            children_total: children_by_state.values().sum::<u64>().max(listed),
            children_by_state,
            children_next: children.next,
            unreadable: reading.unreadable.clone(),
        })
    }

    /// Explains a run.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`].
    pub async fn explain(&self, run: RunId) -> Result<Explanation, OperatorError> {
        let reading = self.reading(run).await?;
        Ok(explain(&reading.input()))
    }

    /// Effects that nobody can explain yet or whose output is missing, of an app or of one scope of it, oldest first;
    /// behind them what was given up. Only those that are at least so old.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn effects(
        &self,
        app: &App,
        scope: Option<&Scope>,
        older_than: Micros,
        limit: u32,
    ) -> Result<EffectsView, OperatorError> {
        // The oldest come first: what is too young stands at the end.
        let rows = self.store.effect_list(app, scope, limit).await?;
        self.if_empty(rows.is_empty(), Some(app), scope).await?;
        let old = rows.iter().filter(|row| row.now.since(row.effect.since) >= older_than);
        Ok(EffectsView { effects: old.map(EffectView::from).collect() })
    }

    /// Events, newest first.
    ///
    /// # Errors
    /// [`OperatorError::NotACursor`]; [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn events(&self, filter: EventFilter) -> Result<EventsView, OperatorError> {
        filter.kind.as_deref().map_or(Ok(()), check_event_type)?;
        let place = (filter.app.clone(), filter.scope.clone());
        let page = self.store.event_list(filter).await.map_err(OperatorError::of_page)?;
        self.if_empty(page.rows.is_empty(), place.0.as_ref(), place.1.as_ref()).await?;
        Ok(EventsView { events: page.rows.iter().map(EventView::from).collect(), next: page.next })
    }

    /// Signals of an app, or of one scope of it, that no run has used, oldest first.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn signals(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<SignalsView, OperatorError> {
        let rows = self.store.signal_list(app, scope, limit).await?;
        self.if_empty(rows.is_empty(), Some(app), scope).await?;
        Ok(SignalsView { signals: rows.iter().map(SignalView::from).collect() })
    }

    /// The workflows of an app, or of one scope of it.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn workflows(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<WorkflowsView, OperatorError> {
        let rows = self.store.workflow_list(app, scope).await?;
        self.if_empty(rows.is_empty(), Some(app), scope).await?;
        Ok(WorkflowsView { workflows: rows.into_iter().map(WorkflowView::from).collect() })
    }

    /// The versions of a workflow, newest first.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] if there is none.
    pub async fn versions(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<VersionsView, OperatorError> {
        let rows = self.store.version_list(app, scope, workflow).await?;
        if rows.is_empty() {
            let what = format!("workflow `{workflow}` in scope `{scope}` of app `{app}`");
            return Err(OperatorError::not_found(what));
        }
        Ok(VersionsView { versions: rows.iter().map(VersionView::from).collect() })
    }

    pub(crate) async fn reading(&self, run: RunId) -> Result<Reading, OperatorError> {
        let detail = self.store.run_detail(run).await?;
        let detail = detail.ok_or_else(|| OperatorError::not_found(format!("run {run}")))?;
        let sessions = self.store.session_list(&detail.run.origin.app).await?;
        let (plan, unreadable) = match payload::from_stored::<Plan>(&detail.plan) {
            Ok(plan) => (Some(plan), None),
            Err(error) => (None, Some(format!("the plan cannot be read: {error}"))),
        };
        let of_journal = detail.journal.as_ref().err().map(ToString::to_string);
        let unreadable = of_journal.or(unreadable);
        let is_signaled = self.is_signaled(&detail).await?;
        Ok(Reading { detail, plan, sessions, unreadable, is_signaled })
    }

    /// Whether what a run waits for is recorded already. Says nothing where it cannot tell.
    async fn is_signaled(&self, detail: &RunDetail) -> Result<Option<bool>, OperatorError> {
        let Phase::Waiting(wait) = &detail.run.phase else { return Ok(None) };
        let Some(on) = wait.on.as_ref().filter(|on| on.is_signal()) else { return Ok(None) };
        let origin = &detail.run.origin;
        let scope = (!on.is_app_wide()).then_some(&origin.scope);
        let signals = self.store.signal_list(&origin.app, scope, SIGNALS_LOOKED_THROUGH).await?;
        let is_it = signals
            .iter()
            .any(|row| row.kind == on.kind() && row.key == on.key() && row.scope.as_ref() == scope);
        // Signals that another run has used are not in the list.
        Ok(is_it.then_some(true))
    }
}

/// The children of every step, by state.
fn by_state(groups: &[GroupRow]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for (state, count) in groups.iter().flat_map(|group| &group.states).filter(|it| it.1 > 0) {
        *counts.entry(state.as_str()).or_default() += u64::from(*count);
    }
    counts
}

/// The inputs as step zero recorded them.
fn inputs_of(detail: &RunDetail) -> Value {
    let mut facts = detail.journal.iter().flatten().flat_map(|entry| &entry.facts);
    facts
        .find_map(|fact| {
            if let Fact::InputsComputed { inputs } = fact { Some(inputs.clone()) } else { None }
        })
        .unwrap_or(Value::Null)
}

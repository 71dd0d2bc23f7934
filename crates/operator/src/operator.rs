//! The handle.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::payload::is_storable;
use surefoot_kernel_core::{
    App, EventFilter, LoadRequest, REASON_MAX_CHARS, RunFilter, RunId, Scope, check_actor,
};

use crate::{OperatorError, Store};

/// Looks at a store and acts on it in somebody's name. Cheap to clone; no type parameter.
///
/// Cancel safety of every method that writes: a dropped future may have written. Each may be repeated: an event by
/// its key, a signal by its key, a verb by the revision that it takes.
#[derive(Clone)]
pub struct Operator {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) actor: Arc<str>,
    /// Apps that were seen in the store: an event for one of them costs no question.
    seen_apps: Arc<Mutex<BTreeSet<App>>>,
}

impl Operator {
    /// Acts as `actor`, whose name stands in the audit.
    #[must_use]
    pub fn new(store: impl Store + 'static, actor: impl Into<String>) -> Self {
        Self::shared(Arc::new(store), actor)
    }

    /// The same, on a store that others hold too.
    #[must_use]
    pub fn shared(store: Arc<dyn Store>, actor: impl Into<String>) -> Self {
        Self { store, actor: actor.into().into(), seen_apps: Arc::default() }
    }

    /// The same store in another name.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<String>) -> Self {
        Self { actor: actor.into().into(), ..self.clone() }
    }

    /// The app that is meant, if the store holds it: a misspelt name must not look like an app where nothing happens.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; where none is named, as [`Operator::app`].
    pub async fn known_app(&self, named: Option<App>) -> Result<App, OperatorError> {
        let Some(app) = named else { return self.app(None).await };
        let apps = self.store.app_list().await?;
        if apps.contains(&app) { Ok(app) } else { Err(no_such_app(&app, &apps)) }
    }

    /// Refuses an app that the store does not hold, unless it holds none yet.
    pub(crate) async fn check_app(&self, app: &App) -> Result<(), OperatorError> {
        if self.seen_apps().contains(app) {
            return Ok(());
        }
        let apps = self.store.app_list().await?;
        if !apps.is_empty() && !apps.contains(app) {
            return Err(no_such_app(app, &apps));
        }
        self.seen_apps().extend(apps);
        Ok(())
    }

    fn seen_apps(&self) -> MutexGuard<'_, BTreeSet<App>> {
        self.seen_apps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The app that is meant: the named one, whether the store holds it already or not, or the only one that it holds.
    ///
    /// # Errors
    /// [`OperatorError::NoApp`] or [`OperatorError::ManyApps`] if that does not tell.
    pub async fn app(&self, named: Option<App>) -> Result<App, OperatorError> {
        if let Some(app) = named {
            return Ok(app);
        }
        let mut apps = self.store.app_list().await?;
        match apps.len() {
            0 => Err(OperatorError::NoApp),
            1 => apps.pop().ok_or(OperatorError::NoApp),
            _ => Err(OperatorError::ManyApps { apps }),
        }
    }
}

/// In whose name, and why: as the audit has it.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) actor: String,
    pub(crate) reason: String,
}

impl Operator {
    /// Refuses a run of another place than the one that was named: who named a scope meant no other.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`], which says where the run is.
    pub async fn check_place(
        &self,
        run: RunId,
        app: Option<&App>,
        scope: Option<&Scope>,
    ) -> Result<(), OperatorError> {
        if app.is_none() && scope.is_none() {
            return Ok(());
        }
        let request = LoadRequest { run, after: Some(u64::from(u32::MAX)) };
        let stored = self.store.run_load(request).await?;
        let missing = || OperatorError::not_found(format!("run {run}"));
        let origin = stored.ok_or_else(missing)?.run.origin;
        let is_there = app.is_none_or(|app| origin.app == *app)
            && scope.is_none_or(|scope| origin.scope == *scope);
        if is_there {
            return Ok(());
        }
        let meant = match (app, scope) {
            (Some(app), Some(scope)) => format!("{app}/{scope}"),
            (Some(app), None) => format!("app `{app}`"),
            (None, Some(scope)) => format!("scope `{scope}`"),
            (None, None) => return Ok(()),
        };
        let what = format!("run {run} in {meant}: it is in {}/{}", origin.app, origin.scope);
        Err(OperatorError::not_found(what))
    }

    /// Refuses a scope of which nothing is known: a misspelt name must not look like a scope where nothing happens.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`], which names the scopes with workflows.
    pub async fn check_scope(&self, app: &App, scope: &Scope) -> Result<(), OperatorError> {
        if self.knows(app, scope).await? {
            return Ok(());
        }
        let known = self.scopes_of(app).await?;
        let known: Vec<&str> = known.iter().map(Scope::as_str).take(NAMED).collect();
        let there = if known.is_empty() {
            "the app has no workflows".to_owned()
        } else {
            format!("there are workflows in {}", listed(&known))
        };
        let what = format!("scope `{scope}` in app `{app}`: nothing is known of it; {there}");
        Err(OperatorError::not_found(what))
    }

    /// A list of runs that came out empty: what it was narrowed to must be there, else it looks as if nothing happened.
    pub(crate) async fn check_narrowed(&self, filter: &RunFilter) -> Result<(), OperatorError> {
        let (app, scope) = (filter.app.as_ref(), filter.scope.as_ref());
        self.if_empty(true, app, scope).await?;
        if let Some(parent) = filter.parent {
            let request = LoadRequest { run: parent, after: Some(u64::from(u32::MAX)) };
            let missing = || OperatorError::not_found(format!("run {parent}"));
            self.store.run_load(request).await?.ok_or_else(missing)?;
        }
        let (Some(app), Some(workflow)) = (app, &filter.workflow) else { return Ok(()) };
        let rows = self.store.workflow_list(app, scope).await?;
        if rows.iter().any(|row| row.workflow == *workflow) {
            return Ok(());
        }
        let known: BTreeSet<&str> = rows.iter().map(|row| row.workflow.as_str()).collect();
        let known: Vec<&str> = known.into_iter().take(NAMED).collect();
        let place = scope.map_or_else(|| format!("app `{app}`"), |scope| format!("{app}/{scope}"));
        let what = format!("workflow `{workflow}` in {place}; it has {}", listed(&known));
        Err(OperatorError::not_found(what))
    }

    /// The scopes of an app that have workflows.
    pub(crate) async fn scopes_of(&self, app: &App) -> Result<Vec<Scope>, OperatorError> {
        let rows = self.store.workflow_list(app, None).await?;
        let mut scopes: Vec<Scope> = rows.into_iter().map(|row| row.scope).collect();
        scopes.dedup();
        Ok(scopes)
    }

    /// A list that came out empty: of a scope of which nothing is known it says so.
    pub(crate) async fn if_empty(
        &self,
        is_empty: bool,
        app: Option<&App>,
        scope: Option<&Scope>,
    ) -> Result<(), OperatorError> {
        match (app, scope) {
            (Some(app), Some(scope)) if is_empty => self.check_scope(app, scope).await,
            (Some(_), Some(_)) | (None, _) | (_, None) => Ok(()),
        }
    }

    async fn knows(&self, app: &App, scope: &Scope) -> Result<bool, OperatorError> {
        let (app_only, scope_only) = (Some(app.clone()), Some(scope.clone()));
        if !self.store.workflow_list(app, Some(scope)).await?.is_empty()
            || !self.store.audit_list(app, Some(scope), 1).await?.is_empty()
            || !self.store.signal_list(app, Some(scope), 1).await?.is_empty()
        {
            return Ok(true);
        }
        let (app, scope) = (app_only.clone(), scope_only.clone());
        let runs = RunFilter { app, scope, limit: 1, ..RunFilter::default() };
        if !self.store.run_list(runs).await?.rows.is_empty() {
            return Ok(true);
        }
        let (app, scope) = (app_only, scope_only);
        let events = EventFilter { app, scope, limit: 1, ..EventFilter::default() };
        Ok(!self.store.event_list(events).await?.rows.is_empty())
    }

    /// In whose name, and why: nothing is changed without both.
    pub(crate) fn signed(&self, why: &str) -> Result<Signed, OperatorError> {
        check_actor(&self.actor)?;
        check_words("reason", why)?;
        Ok(Signed { actor: self.actor.to_string(), reason: why.to_owned() })
    }
}

/// Whether a text may stand in the audit as the reason of a verb: not blank, at most [`REASON_MAX_CHARS`] characters, none
/// of them NUL.
///
/// # Errors
/// [`OperatorError::Unsaid`], [`OperatorError::TooLong`], [`OperatorError::Nul`].
pub fn check_reason(why: &str) -> Result<(), OperatorError> {
    check_words("reason", why)
}

/// The one rule of what people say with a verb, be it their reason or the words of a provider.
pub(crate) fn check_words(what: &'static str, text: &str) -> Result<(), OperatorError> {
    let got = text.chars().count();
    if text.trim().is_empty() {
        Err(OperatorError::Unsaid { what })
    } else if got > REASON_MAX_CHARS {
        Err(OperatorError::TooLong { what, got })
    } else if is_storable(text) {
        Ok(())
    } else {
        Err(OperatorError::Nul { what })
    }
}

fn no_such_app(app: &App, apps: &[App]) -> OperatorError {
    let names: Vec<&str> = apps.iter().map(App::as_str).collect();
    OperatorError::not_found(format!("app `{app}` in this store; it holds {}", listed(&names)))
}

/// How many scopes or workflows an error names.
const NAMED: usize = 10;

pub(crate) fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("actor", &self.actor).finish_non_exhaustive()
    }
}

//! The handle.

use std::fmt;
use std::sync::Arc;

use surefoot_kernel_core::App;

use crate::{OperatorError, Store};

/// Looks at a store and acts on it in somebody's name. Cheap to clone; no type parameter.
///
/// Cancel safety of every method that writes: a dropped future may have written. Each may be repeated: an event by
/// its key, a signal by its key, a verb by the revision that it takes.
#[derive(Clone)]
pub struct Operator {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) actor: Arc<str>,
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
        Self { store, actor: actor.into().into() }
    }

    /// The same store in another name.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<String>) -> Self {
        Self::shared(Arc::clone(&self.store), actor)
    }

    /// The app that is meant, if the store holds it: a misspelt name must not look like an app where nothing happens.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; where none is named, as [`Operator::app`].
    pub async fn known_app(&self, named: Option<App>) -> Result<App, OperatorError> {
        let Some(app) = named else { return self.app(None).await };
        let apps = self.store.app_list().await?;
        if apps.contains(&app) {
            return Ok(app);
        }
        let names: Vec<&str> = apps.iter().map(App::as_str).collect();
        let what = format!("app `{app}` in this store; it holds {}", listed(&names));
        Err(OperatorError::not_found(what))
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

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("actor", &self.actor).finish_non_exhaustive()
    }
}

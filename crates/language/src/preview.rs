//! A module as a dry run holds it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use surefoot_kernel_core::plan::Footprint;

use crate::answer::Classifiers;
use crate::binding::RunsOn;
use crate::module::{Module, PreviewAction};

/// A module as a dry run holds it: its actions can be previewed, and run if they are pure. There is no way to an
/// effect. Cheap to clone.
#[derive(Clone)]
pub struct Previews {
    inner: Arc<Inner>,
}

struct Inner {
    footprint: Footprint,
    classifiers: Classifiers,
    actions: BTreeMap<String, PreviewAction>,
}

impl Previews {
    /// What of a module a dry run may use, on a store whose transactions are `Tx`.
    #[must_use]
    pub fn of<Tx: 'static, B: RunsOn<Tx>>(module: &Module<B>) -> Self {
        let names = module.manifest().actions.iter().map(|action| &action.name);
        let previewed = |name: &String| Some((name.clone(), module.action::<Tx>(name)?.preview()));
        let inner = Inner {
            footprint: module.footprint().clone(),
            classifiers: module.classifiers().clone(),
            actions: names.filter_map(previewed).collect(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What the module offers to plans.
    #[must_use]
    pub fn footprint(&self) -> &Footprint {
        &self.inner.footprint
    }

    /// What it says about the errors of its application.
    #[must_use]
    pub fn classifiers(&self) -> &Classifiers {
        &self.inner.classifiers
    }

    /// An action by its name.
    #[must_use]
    pub fn action(&self, name: &str) -> Option<&PreviewAction> {
        self.inner.actions.get(name)
    }
}

impl fmt::Debug for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Previews")
            .field("actions", &self.inner.actions.keys())
            .finish_non_exhaustive()
    }
}

//! What `doctor` looks at: the store's own settings, clocks, and whether workers cover what runs need.

use std::collections::BTreeSet;

use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{App, Scope, StoredVersion, Timestamp, VersionId, WorkflowKey, payload};

use crate::health::{ahead, wanted};
use crate::view::{AppHealthView, CapChange, CheckView, DiffView, DoctorView, millis};
use crate::{CLOCK_SKEW_NOTED_FROM, Operator, OperatorError};

/// A stored version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichVersion {
    /// By its id.
    Id(VersionId),
    /// By its number in a workflow.
    Revision {
        /// Whose.
        app: App,
        /// Where.
        scope: Scope,
        /// Which workflow.
        workflow: WorkflowKey,
        /// From 1.
        revision: u64,
    },
}

impl Operator {
    /// Checks the store's settings, this machine's clock against the store's, and for each app whether live workers
    /// offer what its open runs need.
    ///
    /// # Errors
    /// The store's: then it cannot be reached.
    pub async fn doctor(&self, wall: Timestamp) -> Result<DoctorView, OperatorError> {
        self.doctor_of(None, wall).await
    }

    /// The same, of one app alone where one is named.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for an app that the store does not hold; the store's.
    pub async fn doctor_of(
        &self,
        app: Option<App>,
        wall: Timestamp,
    ) -> Result<DoctorView, OperatorError> {
        let mut checks: Vec<CheckView> =
            self.store.store_check().await?.into_iter().map(CheckView::from).collect();
        let skew = wall.micros().saturating_sub(self.store.store_now().await?.micros()) / 1_000;
        checks.push(CheckView {
            name: "clock".to_owned(),
            ok: skew.abs() < millis(CLOCK_SKEW_NOTED_FROM),
            found: format!("this machine's clock is {}", ahead(skew)),
            help: Some("leases and deadlines go by the store's clock alone".to_owned()),
        });
        let apps = match self.health(app, None).await {
            Ok(health) => health.apps,
            // An app that is not there is the caller's; what the store said of itself above is worth more than a number
            // that cannot be read.
            Err(error @ OperatorError::NotFound { .. }) => return Err(error),
            Err(error) => {
                checks.push(CheckView {
                    name: "health".to_owned(),
                    ok: false,
                    found: format!("it cannot be read: {error}"),
                    help: Some("mend what stands above first".to_owned()),
                });
                Vec::new()
            }
        };
        for app in apps {
            checks.push(workers_of(&app));
            checks.push(modules_of(&app));
        }
        Ok(DoctorView { ok: checks.iter().all(|check| check.ok), checks })
    }

    /// What differs between two stored versions, which may be of different workflows.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::Unreadable`] for a plan of another build.
    pub async fn diff(
        &self,
        before: WhichVersion,
        after: WhichVersion,
    ) -> Result<DiffView, OperatorError> {
        let (before, old) = self.plan_of(before).await?;
        let (after, new) = self.plan_of(after).await?;
        let diff = surefoot_kernel_core::plan::PlanDiff::of(&old, &new);
        let budget = CapChange::between(&before.budget, &after.budget);
        Ok(DiffView { before: before.version, after: after.version, diff, budget })
    }

    /// A version with its plan and source.
    pub(crate) async fn stored_version(
        &self,
        which: WhichVersion,
    ) -> Result<StoredVersion, OperatorError> {
        let id = match which {
            WhichVersion::Id(id) => id,
            WhichVersion::Revision { app, scope, workflow, revision } => {
                let versions = self.store.version_list(&app, &scope, &workflow).await?;
                let version = versions.into_iter().find(|version| version.revision == revision);
                let what =
                    || format!("version {revision} of workflow `{workflow}` in {app}/{scope}");
                version.ok_or_else(|| OperatorError::not_found(what()))?.version
            }
        };
        let stored = self.store.version_load(id).await?;
        stored.ok_or_else(|| OperatorError::not_found(format!("version {id}")))
    }

    async fn plan_of(&self, which: WhichVersion) -> Result<(StoredVersion, Plan), OperatorError> {
        let stored = self.stored_version(which).await?;
        let plan =
            payload::from_stored(&stored.plan).map_err(|error| OperatorError::Unreadable {
                what: format!("the plan of version {}", stored.version),
                why: error.to_string(),
            })?;
        Ok((stored, plan))
    }
}

fn workers_of(app: &AppHealthView) -> CheckView {
    let live = app.workers.iter().filter(|worker| worker.live).count();
    let is_idle = app.events.pending == 0 && app.missing_modules.is_empty();
    let (found, help) = match (live, is_idle) {
        (0, true) => {
            ("none reported within the last minute, and nothing waits for one".to_owned(), None)
        }
        (0, false) => {
            let found = "none reported within the last minute".to_owned();
            (found, Some("start one: nothing moves without".to_owned()))
        }
        (live, _) => (format!("{live} reported within the last minute"), None),
    };
    CheckView { name: format!("workers of {}", app.app), ok: live > 0 || is_idle, found, help }
}

fn modules_of(app: &AppHealthView) -> CheckView {
    // Versions of one module have several footprints; what is lacking is said once.
    let lacking: BTreeSet<String> = app.missing_modules.iter().map(wanted).collect();
    let lacking: Vec<String> = lacking.into_iter().collect();
    let (is_covered, is_alive) = (lacking.is_empty(), app.workers.iter().any(|it| it.live));
    let found = match (is_covered, is_alive) {
        (true, true) => "live workers offer what open runs need".to_owned(),
        (true, false) => "no open run needs one".to_owned(),
        (false, _) => format!("no live worker offers {}", lacking.join("; ")),
    };
    let help = "start a worker with that module, or abandon the runs".to_owned();
    let help = (!is_covered).then_some(help);
    CheckView { name: format!("modules of {}", app.app), ok: is_covered, found, help }
}

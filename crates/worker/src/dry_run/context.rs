//! What hooks are given in a dry run.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    BoxFuture, Call, Cancel, Children, ChildrenCreated, ChildrenError, ChildrenPage, DryHeld,
    FenceError, StoreError, ValueResolver,
};
use surefoot_language::{StepCx, StepData, StepPort, Stop};

use super::drive::Driver;
use crate::builder::{Claim, NotYet, Values};
use crate::engine::hold::{Hold, Pulse};
use crate::engine::keeper::heartbeat;
use crate::engine::shift::Shift;

struct Port {
    /// Of the step, as it is written.
    config: Option<Template>,
    shift: Arc<Shift>,
    hold: Arc<Hold>,
    values: Option<Values>,
    claim: Claim,
    resolver: OnceLock<Arc<dyn ValueResolver>>,
}

impl StepPort for Port {
    fn heartbeat(&self) -> BoxFuture<'_, Result<(), FenceError>> {
        Box::pin(async move {
            match heartbeat(&self.shift, &self.hold, true).await {
                Pulse::Held(_) => Ok(()),
                Pulse::Canceled => Err(FenceError::Canceled),
                Pulse::Lost => Err(FenceError::LeaseLost),
            }
        })
    }

    fn resolve<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Option<Value>, Stop>> {
        Box::pin(async move {
            let Some(values) = &self.values else { return Ok(None) };
            let resolver = self.resolver.get_or_init(|| values(&self.claim)).clone();
            resolver.resolve(reference).await.map_err(|error| match error.downcast::<NotYet>() {
                Ok(not_yet) => Stop::wait_for(not_yet.0),
                Err(error) => Stop::from(error),
            })
        })
    }

    fn is_written(&self, pointer: &str) -> bool {
        self.config.as_ref().is_some_and(|config| config.is_written(pointer))
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }

    fn children_create(
        &self,
        _children: Children,
    ) -> BoxFuture<'_, Result<ChildrenCreated, ChildrenError>> {
        let refused = StoreError::Refused("a dry run creates no children".into());
        Box::pin(std::future::ready(Err(ChildrenError::Store(refused))))
    }

    fn children_read(
        &self,
        _from: u32,
        _limit: u32,
    ) -> BoxFuture<'_, Result<ChildrenPage, StoreError>> {
        let page = ChildrenPage { children: Vec::new(), total: 0, next: None };
        Box::pin(std::future::ready(Ok(page)))
    }
}

/// The context of one hook.
pub(super) fn context(
    driver: &Driver<'_>,
    (held, plan): (&DryHeld, &Plan),
    call: &Call,
    cancel: Cancel,
) -> StepCx {
    let invocation = Arc::new(held.survey.invocation().clone());
    let origin = &held.run.origin;
    let claim = Claim {
        run: held.run.id,
        scope: origin.scope.clone(),
        workflow: origin.workflow.clone(),
        invocation: invocation.clone(),
    };
    let port = Port {
        config: plan.config(&call.step).cloned(),
        shift: driver.shift.clone(),
        hold: driver.hold.clone(),
        values: driver.inner.values.clone(),
        claim,
        resolver: OnceLock::new(),
    };
    StepCx::new(StepData {
        app: origin.app.clone(),
        scope: origin.scope.clone(),
        run: held.run.id,
        step: call.step.clone(),
        attempt: call.attempt,
        invocation,
        bindings: Arc::new(plan.bindings.clone()),
        resumed: None,
        cancel,
        port: Arc::new(port),
    })
}

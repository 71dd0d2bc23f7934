//! What hooks are given.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::{
    BoxFuture, Call, ChildStore, Children, ChildrenCreated, ChildrenError, ChildrenPage,
    FenceError, Micros, Stamp, StepKey, StoreError, TxStore, Wake,
};
use surefoot_language::{Action, Resumed, SharedFence, StepCx, StepData, StepPort, Stop};

use super::book::{Book, LoadedPlan};
use super::children::{create_request, is_in_doubt, read_request};
use super::values::{Resolving, Source};
use super::{Driver, Left, defect};
use crate::builder::Claim;
use crate::engine::hold::{Hold, HookGuard, Pulse};
use crate::engine::keeper::heartbeat;
use crate::engine::pace::{minus, plus};
use crate::engine::shift::Shift;

/// Whether a hook stops for a cancel request. `reconcile` does not: an unexplained effect is explained first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heeds {
    Cancel,
    LeaseOnly,
}

/// The worker behind a context.
struct Port<Tx> {
    plan: Arc<LoadedPlan<Tx>>,
    shift: Arc<Shift>,
    hold: Arc<Hold>,
    heeds: Heeds,
    until: Option<Micros>,
    /// Where values come from that are not recorded, if from anywhere.
    source: Option<Source>,
    resolving: Arc<Resolving>,
    children: Arc<dyn ChildStore>,
    before: Stamp,
    step: StepKey,
}

impl<Tx: Send + 'static> StepPort for Port<Tx> {
    fn heartbeat(&self) -> BoxFuture<'_, Result<(), FenceError>> {
        Box::pin(async move {
            match heartbeat(&self.shift, &self.hold, self.heeds == Heeds::Cancel).await {
                Pulse::Held(_) => Ok(()),
                Pulse::Lost => Err(FenceError::LeaseLost),
                Pulse::Canceled => Err(FenceError::Canceled),
            }
        })
    }

    fn resolve<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Option<Value>, Stop>> {
        Box::pin(async move {
            match (self.resolving.known(reference), &self.source) {
                (Some(known), _) => Ok(Some(known)),
                (None, Some(source)) => source.resolve(reference).await,
                (None, None) => Ok(None),
            }
        })
    }

    fn is_written(&self, pointer: &str) -> bool {
        let config = self.plan.plan.config(&self.step);
        config.is_some_and(|config| config.is_written(pointer))
    }

    fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| minus(until, self.shift.now()).into())
    }

    fn children_create(
        &self,
        children: Children,
    ) -> BoxFuture<'_, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(async move {
            let request = || create_request(self.before, &self.step, children.clone());
            let mut created = self.children.children_create(request()).await;
            if created.as_ref().is_err_and(is_in_doubt) {
                created = self.children.children_create(request()).await;
            }
            if created.is_ok() {
                self.shift.claim.notify_one();
            }
            created
        })
    }

    fn children_read(
        &self,
        from: u32,
        limit: u32,
    ) -> BoxFuture<'_, Result<ChildrenPage, StoreError>> {
        let request = read_request(self.before, &self.step, from, limit);
        Box::pin(async move { self.children.children_read(request).await })
    }
}

impl<S: TxStore> Driver<S> {
    /// The action of a call.
    pub(super) fn action(&self, book: &Book<S::Tx>, call: &Call) -> Result<Action<S::Tx>, Left> {
        let action = book.plan.module.action(&call.action);
        action.ok_or_else(|| defect(format!("the module has no action `{}`", call.action)))
    }

    /// The context of one hook.
    pub(super) fn context(
        &self,
        book: &mut Book<S::Tx>,
        call: &Call,
        guard: &HookGuard,
        heeds: Heeds,
        limit: Option<Micros>,
        resolving: Arc<Resolving>,
    ) -> StepCx {
        let invocation = book.invocation();
        let source = self.engine.settings.values.as_ref().map(|values| Source {
            values: values.clone(),
            claim: Claim {
                run: book.held.run.id,
                scope: book.held.run.origin.scope.clone(),
                workflow: book.held.run.origin.workflow.clone(),
                invocation: invocation.clone(),
            },
            resolver: self.resolver.clone(),
            resolving: resolving.clone(),
        });
        let port = Port {
            plan: book.plan.clone(),
            shift: self.shift.clone(),
            hold: self.hold.clone(),
            heeds,
            until: limit.map(|limit| plus(self.shift.now(), limit)),
            source,
            resolving,
            children: self.engine.children.clone(),
            before: book.before,
            step: call.step.clone(),
        };
        let origin = &book.held.run.origin;
        StepCx::new(StepData {
            app: origin.app.clone(),
            scope: origin.scope.clone(),
            run: book.held.run.id,
            step: call.step.clone(),
            attempt: call.attempt,
            invocation,
            bindings: book.plan.bindings.clone(),
            resumed: call.resumed.clone().map(resumed),
            cancel: guard.token(),
            port: Arc::new(port),
        })
    }

    pub(super) fn fence(&self) -> SharedFence<S::Tx> {
        self.engine.kernel.store().fence(self.hold.run(), self.hold.generation())
    }
}

fn resumed(wake: Wake) -> Resumed {
    match wake {
        Wake::Signal(data) => Resumed::Signaled(data),
        Wake::Deadline => Resumed::DeadlinePassed,
        Wake::Children => Resumed::ChildrenEnded,
    }
}

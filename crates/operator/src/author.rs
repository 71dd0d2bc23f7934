//! Publishing, emitting, signalling.

use surefoot_kernel_core::{
    Activate, Amounts, App, Emit, EmitError, Event, Ids, LoadRequest, Publish, PublishError, RunId,
    Scope, SendSignal, Signal, SignalError, WorkflowKey, check_actor, is_schedule_event,
};
use surefoot_language::{Bindings, Finding, Manifest, bind, compile};

use crate::operator::Signed;
use crate::unmatched::{Advice, Unheard};
use crate::view::{EmittedView, PublishedView, SignalSentView};
use crate::{Operator, OperatorError};

/// How many runs of an event that was recorded before are looked for.
const LOOKED_FOR: usize = 100;

/// A workflow to publish.
#[derive(Debug, Clone)]
pub struct PublishSource<'a> {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// As authored.
    pub source: &'a str,
    /// What the application's module offers.
    pub manifest: &'a Manifest,
    /// The application's names and the stable ids behind them.
    pub bindings: &'a Bindings,
    /// Caps of its effect budget.
    pub budget: Amounts,
    /// Whether it becomes live.
    pub activate: bool,
}

/// A stored version to make live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivateVersion {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// Which of its revisions.
    pub revision: u64,
    /// The revision that was seen live; `None` does not look.
    pub seen: Option<u64>,
    /// Why.
    pub why: String,
}

/// An event to emit.
#[derive(Debug, Clone, PartialEq)]
pub struct EmitEvent {
    /// Whose.
    pub app: App,
    /// Where.
    pub scope: Scope,
    /// What occurred.
    pub event: Event,
}

/// Where a signal belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendTo {
    /// To one scope: that is where `waitFor` looks.
    Scope(Scope),
    /// To the app as a whole: application code may wait for it, `waitFor` does not see it.
    App,
}

impl Operator {
    /// Compiles against a manifest and stores a version; unless it is a draft, it is live then.
    ///
    /// # Errors
    /// [`PublishError::Compile`] with every finding; the store's.
    pub async fn publish(
        &self,
        ids: &dyn Ids,
        publish: PublishSource<'_>,
    ) -> Result<PublishedView, OperatorError> {
        let PublishSource { app, scope, workflow, source, manifest, bindings, budget, activate } =
            publish;
        let compiled = compile(source, Some(manifest));
        let found: Vec<Finding> = compiled.findings.as_slice().to_vec();
        let plan = match compiled.ir {
            Some(ir) => bind(&ir, manifest, bindings),
            None => Err(compiled.findings),
        };
        let plan = plan.map_err(|findings| {
            let listed = findings.iter().map(|it| serde_json::to_value(it).unwrap_or_default());
            let findings_json = listed.collect();
            PublishError::Compile { rendered: findings.to_string(), findings: findings_json }
        })?;
        check_actor(&self.actor)?;
        let publish = Publish {
            app,
            scope,
            workflow: workflow.clone(),
            version: ids.version(),
            plan,
            source: source.to_owned(),
            budget,
            activate,
            authorization: None,
            author: self.actor.to_string(),
        };
        publish.check_names().map_err(PublishError::from)?;
        let published = self.store.version_publish(publish).await;
        let published = published.map_err(|error| {
            let then =
                "look at the versions of the workflow, and publish it again if it is missing";
            OperatorError::from(error).unsure("the version was stored", then)
        })?;
        Ok(PublishedView {
            workflow,
            id: published.version,
            revision: published.revision,
            active: activate,
            findings: found,
        })
    }

    /// Makes a stored version live.
    ///
    /// # Errors
    /// [`PublishError::NotExpected`] if another one is live than was seen; [`PublishError::NotFound`].
    pub async fn activate(
        &self,
        activate: ActivateVersion,
    ) -> Result<PublishedView, OperatorError> {
        let ActivateVersion { app, scope, workflow, revision, seen, why } = activate;
        let Signed { actor, reason } = self.signed(&why)?;
        let activated = self
            .store
            .version_activate(Activate {
                app,
                scope,
                workflow: workflow.clone(),
                revision,
                expected: seen,
                actor,
                reason,
            })
            .await
            .map_err(|error| {
                let then = "look at the versions of the workflow; to activate it again is safe";
                OperatorError::from(error).unsure("the version became live", then)
            })?;
        Ok(PublishedView {
            workflow,
            id: activated.version,
            revision: activated.revision,
            active: true,
            findings: Vec::new(),
        })
    }

    /// Records an event; its runs exist when this returns, unless it is deferred.
    ///
    /// # Errors
    /// What [`Event::check`] refuses; [`OperatorError::OfSchedules`]; [`OperatorError::NotFound`] for an app that the store does
    /// not hold, unless it holds none yet: events stay for ever, and nobody would ever listen to this one; the store's.
    pub async fn emit(&self, ids: &dyn Ids, emit: EmitEvent) -> Result<EmittedView, OperatorError> {
        let EmitEvent { app, scope, event } = emit;
        let event = event.check()?;
        if is_schedule_event(&event.kind) {
            return Err(OperatorError::OfSchedules { kind: event.kind });
        }
        let emit = Emit { app, scope, id: ids.event(), event, eager: None };
        emit.check_names().map_err(EmitError::from)?;
        self.check_app(&emit.app).await?;
        let emission = self.store.event_emit(emit.clone()).await;
        let emission = emission.map_err(|error| {
            let then = if emit.event.dedupe_key.is_some() {
                "emit it again under the same key, which records it once"
            } else {
                "look among the events before it is emitted again, since without a key it would be recorded twice"
            };
            OperatorError::from(error).unsure("the event was recorded", then)
        })?;
        let gone = if emission.new { Vec::new() } else { self.pruned(&emission.runs).await? };
        let unheard = if emission.matched == 0 {
            Some(self.why_nothing(&emit, emission.new).await?)
        } else {
            None
        };
        let (why_nothing, command) =
            unheard.map_or((None, None), |Advice { why, command }| (Some(why), command));
        Ok(EmittedView {
            event: emission.event,
            runs: emission.runs,
            matched: emission.matched,
            new: emission.new,
            same_payload: emission.same_payload,
            same_tags: emission.same_tags,
            gone,
            why_nothing,
            command,
        })
    }

    async fn why_nothing(&self, emit: &Emit, is_new: bool) -> Result<Advice, OperatorError> {
        if !is_new {
            let why = "nobody listened when the event was first recorded, and a repeat starts nothing: emit it under \
                       another key";
            return Ok(Advice { why: why.to_owned(), command: None });
        }
        let event = Unheard {
            app: &emit.app,
            scope: &emit.scope,
            kind: &emit.event.kind,
            target: emit.event.target.as_ref(),
            has_key: emit.event.dedupe_key.is_some(),
        };
        self.why_unheard(&event).await
    }

    /// Those of the runs that are not there any more.
    async fn pruned(&self, runs: &[RunId]) -> Result<Vec<RunId>, OperatorError> {
        let mut gone = Vec::new();
        for run in runs.iter().copied().take(LOOKED_FOR) {
            let request = LoadRequest { run, after: Some(u64::from(u32::MAX)) };
            if self.store.run_load(request).await?.is_none() {
                gone.push(run);
            }
        }
        Ok(gone)
    }

    /// Records a signal, once, and wakes the runs that wait for it.
    ///
    /// # Errors
    /// What [`Signal::check`] refuses; the store's.
    pub async fn signal(
        &self,
        app: App,
        to: SendTo,
        signal: Signal,
    ) -> Result<SignalSentView, OperatorError> {
        let signal = signal.check()?;
        let scope = match to {
            SendTo::Scope(scope) => Some(scope),
            SendTo::App => None,
        };
        let send = SendSignal { app, scope, signal };
        send.check_names().map_err(SignalError::from)?;
        let sent = self.store.signal_send(send).await.map_err(|error| {
            let then = "send it again: the first one of its kind and key stays";
            OperatorError::from(error).unsure("the signal was recorded", then)
        })?;
        Ok(SignalSentView { new: sent.new, woken: sent.woken })
    }
}

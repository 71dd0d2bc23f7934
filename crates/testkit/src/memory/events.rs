//! Events, their dispatch, and signals.

use std::sync::Arc;

use surefoot_kernel_core::{
    App, Budget, Dispatch, Dispatched, Eager, Emission, Emit, EmitError, EventId, EventStatus,
    Invocation, LoadRequest, Micros, Mode, Origin, Phase, Run, RunId, START_EVENT, SendSignal,
    SignalError, SignalSent, StoreError, Timestamp, Wait, actor_of,
};

use super::state::{Delivery, EventEntry, RunEntry, SignalEntry, SignalKey, State, VersionEntry};

/// Failed dispatches of one event before it is dead-lettered.
const DISPATCH_ATTEMPTS: u32 = 8;
/// Runs that one signal wakes at once; the recovery scan wakes the rest.
const WAKE_LIMIT: usize = 1_000;

impl State {
    pub(super) fn event_emit(
        &mut self,
        emit: &Emit,
        now: Timestamp,
    ) -> Result<Emission, EmitError> {
        let target = emit.event.target.as_ref();
        if let Some(place) = self.being_deleted(&emit.app, &emit.scope, target) {
            return Err(EmitError::BeingDeleted { place });
        }
        if let Some(original) = self.recorded(emit) {
            return self.repeated(original, emit, now);
        }
        let event = &emit.event;
        let deliveries = self.matching(emit);
        let status =
            if deliveries.is_empty() { EventStatus::Unmatched } else { EventStatus::Pending };
        let entry = EventEntry {
            app: emit.app.clone(),
            scope: emit.scope.clone(),
            kind: event.kind.clone(),
            data: Arc::new(event.data.clone()),
            context: Arc::new(event.context.clone()),
            payload_hash: event.payload_hash(),
            authorization: event.authorization.clone(),
            trace: event.trace.clone(),
            dedupe_key: event.dedupe_key.clone(),
            tags: event.tags.clone(),
            target: event.target.clone(),
            occurred_at: event.occurred_at.unwrap_or(now),
            recorded_at: now,
            matched: u32::try_from(deliveries.len()).unwrap_or(u32::MAX),
            deliveries,
            runs: Vec::new(),
            status,
            attempts: 0,
            error: None,
            due_at: now,
            ended_at: None,
            is_expired: false,
        };
        let mut emission = Emission::of(emit.id);
        emission.matched = entry.matched;
        if let Some(key) = &event.dedupe_key {
            let key = (emit.app.clone(), emit.scope.clone(), event.kind.clone(), key.clone());
            self.dedupe.insert(key, emit.id);
        }
        self.events.insert(emit.id, entry);
        if event.dispatch == Dispatch::Now {
            emission.runs = self.create_runs(emit.id, now).unwrap_or_default();
            if let Some(eager) = &emit.eager {
                let started = self.start_eagerly(&emission.runs, eager, now);
                let load = |run| self.run_load(LoadRequest { run, after: None }, now);
                emission.started = started.into_iter().filter_map(load).collect();
            }
        }
        Ok(emission)
    }

    /// The event that was recorded under this id, or this key.
    fn recorded(&self, emit: &Emit) -> Option<EventId> {
        if self.events.contains_key(&emit.id) {
            return Some(emit.id);
        }
        let key = emit.event.dedupe_key.clone()?;
        let key = (emit.app.clone(), emit.scope.clone(), emit.event.kind.clone(), key);
        self.dedupe.get(&key).copied()
    }

    fn repeated(
        &mut self,
        original: EventId,
        emit: &Emit,
        now: Timestamp,
    ) -> Result<Emission, EmitError> {
        let is_pending = self.events.get(&original).is_some_and(EventEntry::is_pending);
        if is_pending && emit.event.dispatch == Dispatch::Now {
            let refused = |error: String| EmitError::Store(StoreError::Refused(error.into()));
            self.create_runs(original, now).map_err(refused)?;
        }
        let mut emission = Emission::of(original);
        emission.new = false;
        if let Some(entry) = self.events.get(&original) {
            emission.runs.clone_from(&entry.runs);
            emission.matched = entry.matched;
            emission.same_payload = entry.payload_hash == emit.event.payload_hash();
            emission.same_tags = entry.tags == emit.event.tags;
        }
        Ok(emission)
    }

    /// The runs that an event starts, frozen: enabled activations of active versions in its app and scope.
    fn matching(&self, emit: &Emit) -> Vec<Delivery> {
        let event = &emit.event;
        let mut deliveries = Vec::new();
        for ((app, scope, key), workflow) in &self.workflows {
            let is_target = event.target.as_ref().is_none_or(|target| target == key);
            if *app != emit.app || *scope != emit.scope || !is_target {
                continue;
            }
            let Some((id, version)) =
                workflow.active.and_then(|id| Some((id, self.versions.get(&id)?)))
            else {
                continue;
            };
            for activation in &workflow.activations {
                // A start is addressed to one workflow, never broadcast.
                let is_addressed = event.kind != START_EVENT || event.target.is_some();
                let is_enabled = !workflow.disabled.contains(&activation.key);
                if activation.event == event.kind && is_addressed && is_enabled {
                    deliveries.push(Delivery {
                        workflow: key.clone(),
                        activation: activation.clone(),
                        version: id,
                        authorization: version.authorization.clone(),
                    });
                }
            }
        }
        deliveries
    }

    /// Creates the runs of an event, each once.
    fn create_runs(&mut self, event: EventId, now: Timestamp) -> Result<Vec<RunId>, String> {
        if self.broken.contains(&event) {
            return Err("dispatch of this event was broken by a test".to_owned());
        }
        let Some(entry) = self.events.get_mut(&event) else {
            return Err("there is no such event".to_owned());
        };
        let mut runs = Vec::new();
        for delivery in &entry.deliveries {
            let mut deleting = self.deleting.keys();
            let workflow = Some(&delivery.workflow);
            if deleting.any(|place| place.holds(&entry.app, &entry.scope, workflow)) {
                return Err(format!("workflow `{}` is being deleted", delivery.workflow));
            }
            let Some(version) = self.versions.get(&delivery.version) else {
                return Err(format!("workflow `{}` is gone", delivery.workflow));
            };
            let run = new_run(event, entry, delivery, version, now);
            let root = run.run.origin.root;
            runs.push(run.run.id);
            if root == run.run.id {
                let budget = || Budget::of_caps(&version.stored.budget);
                self.budgets.entry(root).or_insert_with(budget);
            }
            self.runs.entry(run.run.id).or_insert(run);
        }
        entry.runs.clone_from(&runs);
        if !runs.is_empty() {
            entry.status = EventStatus::Dispatched;
            entry.ended_at = Some(now);
        }
        Ok(runs)
    }

    fn start_eagerly(&mut self, runs: &[RunId], eager: &Eager, now: Timestamp) -> Vec<RunId> {
        let can_run = |run: &&RunId| {
            let entry = self.runs.get(run);
            entry.is_some_and(|entry| eager.footprints.contains(&entry.run.origin.footprint))
        };
        let slots = usize::try_from(eager.slots).unwrap_or(usize::MAX);
        let chosen: Vec<RunId> = runs.iter().filter(can_run).take(slots).copied().collect();
        let begin = |run| self.begin(run, eager.lease(now), &eager.plans, now);
        chosen.into_iter().filter_map(begin).collect()
    }

    pub(super) fn event_dispatch(&mut self, app: &App, limit: u32, now: Timestamp) -> Dispatched {
        let mut due: Vec<(Timestamp, EventId)> = self
            .events
            .iter()
            .filter(|(_, entry)| entry.is_due(app, now))
            .map(|(id, entry)| (entry.due_at, *id))
            .collect();
        due.sort_unstable();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut dispatched = Dispatched { more: due.len() > limit, ..Dispatched::default() };
        for (_, event) in due.into_iter().take(limit) {
            match self.create_runs(event, now) {
                Ok(_) => {
                    dispatched.dispatched.push(event);
                    let trace = self.events.get(&event).and_then(|entry| entry.trace.clone());
                    dispatched.traces.extend(trace.map(|trace| (event, trace)));
                }
                Err(error) => {
                    self.dispatch_failed(event, error, now);
                    dispatched.failed.push(event);
                }
            }
        }
        dispatched
    }

    fn dispatch_failed(&mut self, event: EventId, error: String, now: Timestamp) {
        let Some(entry) = self.events.get_mut(&event) else { return };
        entry.attempts = entry.attempts.saturating_add(1);
        entry.error = Some(error);
        entry.due_at = now.plus(dispatch_backoff(entry.attempts));
        entry.status = if entry.attempts >= DISPATCH_ATTEMPTS {
            entry.ended_at = Some(now);
            EventStatus::DeadLettered
        } else {
            EventStatus::Retrying
        };
    }

    pub(super) fn signal_send(
        &mut self,
        send: &SendSignal,
        now: Timestamp,
    ) -> Result<SignalSent, SignalError> {
        let place =
            send.scope.as_ref().and_then(|scope| self.being_deleted(&send.app, scope, None));
        if let Some(place) = place {
            return Err(SignalError::BeingDeleted { place });
        }
        let key = SignalKey {
            app: send.app.clone(),
            scope: send.scope.clone(),
            kind: send.signal.kind.clone(),
            key: send.signal.key.clone(),
        };
        let new = !self.signals.contains_key(&key);
        self.signals.entry(key.clone()).or_insert_with(|| SignalEntry {
            data: Arc::new(send.signal.data.clone()),
            recorded_at: now,
            spent_at: None,
        });
        let waits = |run: &Run| matches!(&run.phase, Phase::Waiting(Wait { on: Some(on), .. }) if on.is_signal() && SignalKey::of(run, on) == key);
        let waiting = self.runs.values().filter(|entry| waits(&entry.run));
        let waiting: Vec<RunId> = waiting.take(WAKE_LIMIT).map(|entry| entry.run.id).collect();
        let woken = waiting.into_iter().filter(|run| self.wake(*run, now)).collect();
        Ok(SignalSent { new, woken })
    }
}

impl EventEntry {
    /// Whether its runs are still to be created.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.status, EventStatus::Pending | EventStatus::Retrying)
    }

    /// Whether they are to be created now.
    pub(super) fn is_due(&self, app: &App, now: Timestamp) -> bool {
        self.app == *app && self.is_pending() && self.due_at <= now
    }
}

fn new_run(
    event: EventId,
    entry: &EventEntry,
    delivery: &Delivery,
    version: &VersionEntry,
    now: Timestamp,
) -> RunEntry {
    let id = RunId::of_event(event, &delivery.workflow, &delivery.activation.key);
    let origin = Origin {
        app: entry.app.clone(),
        scope: entry.scope.clone(),
        workflow: delivery.workflow.clone(),
        version: delivery.version,
        footprint: version.footprint.clone(),
        mode: Mode::Execute,
        event: Some(event),
        trigger: delivery.activation.trigger.clone(),
        occurred_at: entry.occurred_at,
        root: id,
        parent: None,
        created_at: now,
    };
    // The emitter's word wins, even if no actor can be read from it.
    let authorization = entry.authorization.as_ref().or(delivery.authorization.as_ref());
    let invocation = Invocation {
        trigger: entry.data.value().clone(),
        inputs: serde_json::Value::Null,
        context: entry.context.value().clone(),
        actor: actor_of(authorization),
        trace: entry.trace.clone(),
    };
    RunEntry {
        run: Run::new(id, origin),
        invocation: Arc::new(invocation),
        journal: Vec::new(),
        woken_by: None,
    }
}

/// 1 s doubling to 300 s.
fn dispatch_backoff(attempts: u32) -> Micros {
    let doublings = attempts.saturating_sub(1).min(9);
    Micros::from_secs((1_i64 << doublings).min(300))
}

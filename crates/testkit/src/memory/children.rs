//! Children: created with their parent's row in hand, counted when they end, canceled from the top down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, BoxFuture, CHILD_DEPTH_MAX, CancelRequest, CheckedChild, ChildGroup, ChildMove,
    ChildResult, ChildVersion, ChildrenCreated, ChildrenError, ChildrenOn, ChildrenPage,
    ChildrenRequest, CreateChildren, GroupRow, Invocation, Parent, Phase, Resume, Revival,
    RowInput, Run, RunId, RunState, StepKey, StoreError, Timestamp, WorkflowKey, takes_results,
};

use super::state::{GroupEntry, RunEntry, State};
use super::{MemoryStore, MemoryTx};

/// Bytes of results after which a page ends.
const PAGE_BYTES: usize = 1024 * 1024;

impl ChildrenOn<MemoryTx> for MemoryStore {
    fn create<'a>(
        &'a self,
        tx: &'a mut MemoryTx,
        create: CreateChildren,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        let created = tx.state.children_create(&create, self.now());
        Box::pin(std::future::ready(created))
    }
}

impl State {
    pub(super) fn children_create(
        &mut self,
        create: &CreateChildren,
        now: Timestamp,
    ) -> Result<ChildrenCreated, ChildrenError> {
        let parent = self.runs.get(&create.before.run).map(|entry| entry.run.clone());
        let parent = parent.ok_or(StoreError::LeaseLost)?;
        if parent.generation != create.before.generation || parent.state() != RunState::Running {
            return Err(StoreError::LeaseLost.into());
        }
        if parent.cancel.is_some() {
            return Err(StoreError::Canceled.into());
        }
        parent.may_have_children()?;
        let id = |child: &CheckedChild| RunId::of_child(&parent, &create.step, &child.key);
        let new: Vec<(RunId, &CheckedChild)> = create
            .children
            .iter()
            .map(|child| (id(child), child))
            .filter(|(id, _)| !self.runs.contains_key(id))
            .collect();
        let versions = self.child_versions(&parent, &new)?;
        let key = (parent.id, create.step.clone());
        let mut entry = self.groups.remove(&key).unwrap_or_else(|| GroupEntry {
            group: ChildGroup::new(create.parallel.unwrap_or(u32::MAX)),
            children: Vec::new(),
            held: BTreeSet::new(),
            cancel_from: None,
        });
        for (id, child) in &new {
            let Some(version) = versions.get(&child.workflow) else { continue };
            let index = entry.group.total;
            let mut run = Run::child(&parent, (*id, &create.step, index), child, version, now);
            if entry.group.add() {
                entry.held.insert(index);
                run = run.held();
            }
            entry.children.push(run.id);
            self.runs.insert(run.id, child_entry(run, child));
        }
        let total = entry.group.total;
        self.groups.insert(key, entry);
        Ok(ChildrenCreated { new: u32::try_from(new.len()).unwrap_or(u32::MAX), total })
    }

    /// The live versions of the workflows that new children need.
    fn child_versions(
        &self,
        parent: &Run,
        new: &[(RunId, &CheckedChild)],
    ) -> Result<BTreeMap<WorkflowKey, ChildVersion>, ChildrenError> {
        let mut versions = BTreeMap::new();
        let wanted: BTreeSet<&WorkflowKey> = new.iter().map(|(_, child)| &child.workflow).collect();
        for workflow in wanted {
            let of = &parent.origin;
            let entry = self.workflows.get(&(of.app.clone(), of.scope.clone(), workflow.clone()));
            let stays = self.being_deleted(&of.app, &of.scope, Some(workflow)).is_none();
            let live = entry.filter(|_| stays).and_then(|entry| entry.active);
            let found = live.and_then(|id| Some((id, self.versions.get(&id)?)));
            let Some((version, stored)) = found else {
                return Err(ChildrenError::NoWorkflow { workflow: workflow.clone() });
            };
            let footprint = stored.footprint.clone();
            versions.insert(workflow.clone(), ChildVersion { version, footprint });
        }
        Ok(versions)
    }

    /// What a run was started with. A child has its inputs only: the rest is the root's.
    pub(super) fn invocation_of(&self, entry: &RunEntry) -> Invocation {
        let own = &entry.invocation;
        let root = self.runs.get(&entry.run.origin.root);
        let Some(root) = root.filter(|_| entry.run.origin.parent.is_some()) else {
            return (**own).clone();
        };
        Invocation {
            trigger: own.trigger.clone(),
            inputs: Value::Null,
            ..(*root.invocation).clone()
        }
    }

    /// What a write of a run means to its group, to its siblings, to its parent and to its own children.
    pub(super) fn family_moved(&mut self, before: &Run, after: &Run, now: Timestamp) {
        if let Some((parent, moved)) = ChildMove::of(before.state(), before.is_held(), after) {
            self.child_moved((parent.run, parent.step.clone()), parent.index, moved, now);
        }
        let resumed = before.resume.as_ref().and_then(Resume::on_children);
        if let Some(step) = takes_results(resumed, after)
            && let Some(entry) = self.groups.get_mut(&(after.id, step.clone()))
        {
            entry.group.taken = true;
        }
        if before.cancel.is_none() && after.cancel.is_some() {
            self.begin_cancel(after.id);
        }
    }

    /// A cancel is on its way to the children of a run.
    fn begin_cancel(&mut self, parent: RunId) {
        let own = self.groups.iter_mut().filter(|((of, _), _)| *of == parent);
        own.for_each(|(_, entry)| entry.cancel_from = Some(0));
    }

    /// The request that is carried on to the children of a run: its own, or that of the nearest one above it, if the
    /// run had ended before the request came to it.
    fn request_above(&self, parent: RunId) -> Option<CancelRequest> {
        let mut above = Some(parent);
        for _ in 0..=CHILD_DEPTH_MAX {
            let run = &self.runs.get(&above?)?.run;
            if run.cancel.is_some() {
                return run.cancel.clone();
            }
            above = run.origin.parent.as_ref().map(|parent| parent.run);
        }
        None
    }

    fn child_moved(&mut self, key: (RunId, StepKey), index: u32, moved: ChildMove, now: Timestamp) {
        let Some(entry) = self.groups.get_mut(&key) else { return };
        entry.group.moved(moved);
        match moved {
            ChildMove::Ended { was_held: true } => drop(entry.held.remove(&index)),
            ChildMove::Revived { is_held: true } => drop(entry.held.insert(index)),
            ChildMove::Ended { was_held: false } | ChildMove::Revived { is_held: false } => {}
        }
        let mut released = Vec::new();
        // None is let go while a cancel is on its way to it.
        let room = if entry.cancel_from.is_some() { 0 } else { entry.group.release() };
        for _ in 0..room {
            released.extend(entry.held.pop_first());
        }
        let child = |index: u32| entry.children.get(usize::try_from(index).ok()?).copied();
        let released: Vec<RunId> = released.into_iter().filter_map(child).collect();
        let is_over = entry.group.is_over();
        for run in released {
            // It was held a moment ago, under the same lock.
            let _ = self.row(run, RowInput::LetGo, now);
        }
        let waits = |run: &Run| matches!(&run.phase, Phase::Waiting(wait) if wait.on.as_ref().is_some_and(|on| on.is_children_of(&key.1)));
        if is_over && self.runs.get(&key.0).is_some_and(|parent| waits(&parent.run)) {
            self.wake(key.0, now);
        }
    }

    /// A child is not tried again where one above it has moved on.
    pub(super) fn check_revival(&self, before: &Run, after: &Run) -> Result<(), StoreError> {
        let moved = ChildMove::of(before.state(), before.is_held(), after);
        let Some((of, ChildMove::Revived { .. })) = moved else { return Ok(()) };
        self.moved_on(of).map_or(Ok(()), |parent| Err(StoreError::ParentMovedOn { parent }))
    }

    /// A child that is tried again is held back where its group is full.
    pub(super) fn place_revived(&self, before: &Run, after: &mut Run) {
        let moved = ChildMove::of(before.state(), before.is_held(), after);
        let Some((of, ChildMove::Revived { .. })) = moved else { return };
        let entry = self.groups.get(&(of.run, of.step.clone()));
        if entry.is_some_and(|entry| entry.group.is_full()) {
            *after = after.clone().held();
        }
    }

    /// The nearest one above a child that keeps it from being tried again.
    fn moved_on(&self, parent: &Parent) -> Option<RunId> {
        let mut revival = Revival::default();
        let mut above = Some(parent);
        for _ in 0..CHILD_DEPTH_MAX {
            let Parent { run: id, step, .. } = above?;
            let run = &self.runs.get(id)?.run;
            let entry = self.groups.get(&(*id, step.clone()));
            if !revival.passes(run, step, entry.map(|entry| &entry.group)) {
                return Some(*id);
            }
            above = run.origin.parent.as_ref();
        }
        None
    }

    /// Whether a cancel is on its way to children.
    pub(super) fn cancels_are_pending(&self, app: &App) -> bool {
        self.next_cancel(app, None).is_some()
    }

    /// Carries cancels on to children, a bounded number of them; says whether there is more to do.
    pub(super) fn cancel_children(
        &mut self,
        app: &App,
        only: Option<RunId>,
        limit: usize,
        now: Timestamp,
    ) -> (Vec<RunId>, bool) {
        let mut canceled = Vec::new();
        let mut looked_at = 0;
        while let Some(key) = self.next_cancel(app, only) {
            let request = self.request_above(key.0);
            let Some(entry) = self.groups.get_mut(&key) else { break };
            let from = entry.cancel_from.unwrap_or_default();
            let room = limit.saturating_sub(looked_at);
            let batch: Vec<RunId> = entry.children.iter().skip(from).take(room).copied().collect();
            let next = from.saturating_add(batch.len());
            let left = (next < entry.children.len()).then_some(next);
            looked_at = looked_at.saturating_add(batch.len());
            if let Some(request) = request {
                let written =
                    batch.into_iter().filter(|run| self.cancel_child(*run, &request, now));
                canceled.extend(written);
            }
            if let Some(entry) = self.groups.get_mut(&key) {
                entry.cancel_from = left;
            }
            if looked_at >= limit {
                break;
            }
        }
        (canceled, self.next_cancel(app, only).is_some())
    }

    /// Cancels one child; one that has ended passes the cancel on. Says whether the child was written.
    fn cancel_child(&mut self, run: RunId, request: &CancelRequest, now: Timestamp) -> bool {
        let Some(before) = self.runs.get(&run).map(|entry| &entry.run) else { return false };
        if before.state().is_terminal() {
            // Its own cancel was carried on already.
            if before.cancel.is_none() {
                self.begin_cancel(run);
            }
            return false;
        }
        let revision = before.revision;
        let (actor, reason) = (request.actor.clone(), request.reason.clone());
        let after = self.row(run, RowInput::Cancel { actor, reason }, now);
        matches!(after, Ok(Some(after)) if after.revision != revision)
    }

    fn next_cancel(&self, app: &App, only: Option<RunId>) -> Option<(RunId, StepKey)> {
        let of_app = |parent: &RunId| {
            self.runs.get(parent).is_some_and(|entry| entry.run.origin.app == *app)
        };
        let mut pending = self.groups.iter().filter(|((parent, _), entry)| {
            entry.cancel_from.is_some() && only.is_none_or(|only| only == *parent) && of_app(parent)
        });
        pending.next().map(|(key, _)| key.clone())
    }

    pub(super) fn children_read(&self, request: &ChildrenRequest) -> ChildrenPage {
        let key = (request.parent, request.step.clone());
        let children = self.groups.get(&key).map_or(&[][..], |entry| &entry.children);
        let total = u32::try_from(children.len()).unwrap_or(u32::MAX);
        let mut page = ChildrenPage { children: Vec::new(), total, next: None };
        let mut bytes = 0_usize;
        for index in request.from..total {
            let limit = request.limit.clamp(1, 1_000);
            if bytes >= PAGE_BYTES || index >= request.from.saturating_add(limit) {
                page.next = Some(index);
                break;
            }
            let child = usize::try_from(index).ok().and_then(|index| children.get(index));
            let Some(entry) = child.and_then(|run| self.runs.get(run)) else { continue };
            let result = ChildResult::of(&entry.run, index);
            bytes = bytes.saturating_add(result.result.to_string().len());
            page.children.push(result);
        }
        page
    }

    pub(super) fn children_groups(&self, parent: RunId) -> Vec<GroupRow> {
        let of_parent = self.groups.iter().filter(|((of, _), _)| *of == parent);
        of_parent.map(|((_, step), entry)| self.group_row(step, entry)).collect()
    }

    /// The group of a child, and whether it is not tried again since one above it has moved on.
    pub(super) fn group_of(&self, run: &Run) -> Option<(GroupRow, bool)> {
        let of = run.origin.parent.as_ref()?;
        let entry = self.groups.get(&(of.run, of.step.clone()))?;
        let is_failed = run.state() == RunState::Failed;
        let is_taken = is_failed && self.moved_on(of).is_some();
        Some((self.group_row(&of.step, entry), is_taken))
    }

    fn group_row(&self, step: &StepKey, entry: &GroupEntry) -> GroupRow {
        let ChildGroup { total, live, held, parallel, taken: _ } = entry.group;
        let states = entry.children.iter().filter_map(|run| self.runs.get(run));
        let states: Vec<RunState> = states.map(|entry| entry.run.state()).collect();
        let count = |of: &RunState| states.iter().filter(|state| *state == of).count();
        let count = |of: &RunState| (*of, u32::try_from(count(of)).unwrap_or(u32::MAX));
        let states = RunState::ALL.iter().map(count).collect();
        GroupRow { step: step.clone(), total, live, held, parallel, states }
    }
}

fn child_entry(run: Run, child: &CheckedChild) -> RunEntry {
    // Checked when the children were: it is JSON.
    let trigger = from_stored(&child.inputs).unwrap_or_default();
    let invocation = Invocation { trigger, ..Invocation::default() };
    RunEntry { run, invocation: Arc::new(invocation), journal: Vec::new(), woken_by: None }
}

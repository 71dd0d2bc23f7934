//! The store in memory, for the suite.

use std::sync::Arc;

use surefoot_kernel_core::{
    Micros, Mode, Origin, Parent, Run, RunId, StepKey, StoreError, Timestamp,
};

use super::state::State;
use super::{MemoryStore, MemoryTx};
use crate::suite::{StoreFactory, Tamper, Tampered};

/// Makes stores in memory for [`store_suite!`](crate::store_suite).
#[derive(Debug, Clone, Default)]
pub struct MemoryFactory {
    store: MemoryStore,
}

impl StoreFactory for MemoryFactory {
    type Store = MemoryStore;

    async fn fresh() -> Self {
        Self::default()
    }

    async fn open(&self) -> MemoryStore {
        self.store.clone()
    }

    async fn pass_time(&self, span: Micros) {
        self.store.clock().advance(span);
    }

    async fn turn_back(&self, span: Micros) {
        let clock = self.store.clock();
        clock.set(Timestamp::from_micros(clock.now().micros().saturating_sub(span.get())));
    }

    async fn write_row(tx: &mut MemoryTx, key: &str, value: &str) -> Result<(), StoreError> {
        tx.table().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    async fn read_row(store: &MemoryStore, key: &str) -> Option<String> {
        store.table_row(key)
    }

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        self.store.write(|state, _| state.tamper(tamper)).await
    }
}

impl State {
    fn tamper(&mut self, tamper: Tamper) -> Tampered {
        let done = match tamper {
            Tamper::UpdateVersion(_) => return Tampered::Refused,
            Tamper::BreakDispatch(event) => self.broken.insert(event),
            Tamper::MendDispatch(event) => self.broken.remove(&event),
            Tamper::DisableActivation { app, scope, workflow, activation } => {
                let workflow = self.workflows.get_mut(&(app, scope, workflow));
                workflow.is_some_and(|entry| entry.disabled.insert(activation))
            }
            Tamper::MakeDryRun(run) => self.re_originate(run, |origin| origin.mode = Mode::DryRun),
            Tamper::MakeChild { run, parent } if !self.share_a_place(run, parent) => {
                return Tampered::Refused;
            }
            Tamper::EndChildrenUnseen(parent) => return self.end_children_unseen(parent),
            Tamper::MakeChild { run, parent } => self.re_originate(run, |origin| {
                let step = StepKey::from("steps.0");
                origin.parent = Some(Parent { run: parent, step, index: 0, depth: 1 });
                origin.root = parent;
            }),
            Tamper::ReplaceFacts { run, seq, facts } => {
                let journal = self.runs.get_mut(&run).map(|entry| &mut entry.journal);
                let row = journal.and_then(|rows| rows.iter_mut().find(|row| row.seq == seq));
                row.is_some_and(|row| {
                    row.facts = facts.into();
                    true
                })
            }
            Tamper::RemoveFacts { run, seq } => {
                let journal = self.runs.get_mut(&run).map(|entry| &mut entry.journal);
                journal.is_some_and(|rows| {
                    let before = rows.len();
                    rows.retain(|row| row.seq != seq);
                    rows.len() < before
                })
            }
        };
        if done { Tampered::Done } else { Tampered::Unsupported }
    }

    fn share_a_place(&self, run: RunId, parent: RunId) -> bool {
        let place = |run| self.runs.get(&run).map(|entry| &entry.run.origin);
        let places = place(run).zip(place(parent));
        places.is_some_and(|(a, b)| (&a.app, &a.scope) == (&b.app, &b.scope))
    }

    fn end_children_unseen(&mut self, parent: RunId) -> Tampered {
        let of_parent = self.groups.iter_mut().filter(|((of, _), _)| *of == parent);
        of_parent.for_each(|(_, entry)| entry.group.live = 0);
        Tampered::Done
    }

    fn re_originate(&mut self, run: RunId, change: impl FnOnce(&mut Origin)) -> bool {
        let Some(entry) = self.runs.get_mut(&run) else { return false };
        let mut origin = (*entry.run.origin).clone();
        change(&mut origin);
        entry.run = Run { origin: Arc::new(origin), ..entry.run.clone() };
        true
    }
}

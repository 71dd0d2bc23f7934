//! What holds in every store at any moment.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;

use surefoot_kernel_core::{
    Amounts, Dependency, Fact, JournalEntry, LoadRequest, Phase, Run, RunDetail, RunFilter, RunId,
    RunState, RunStore, Scan, SignalRow, StepCharge, Todo, TxStore, Wait, apply,
};

/// Checks everything that must hold in a store at any moment:
///
/// - the journal of a run has no gap, and no row of a later writer before one of an earlier;
/// - folding it over a new run gives the stored row, its scheduling fields aside;
/// - every run that has not ended has a wake source, and none waits for a signal that exists, or for children of
///   which none is live;
/// - the numbers of every group are those of its children;
/// - the counters of a budget are the sum of what its runs have charged, each step at most once;
/// - a run that reads back here reads back the same in its list and its detail.
///
/// # Panics
/// If one of them does not hold.
pub async fn check_invariants<S: TxStore>(store: &S) {
    check_all_but(store, &[]).await;
}

/// The same, for a rule that damaged these runs on purpose.
pub(super) async fn check_all_but<S: TxStore>(store: &S, damaged: &[RunId]) {
    let runs = all_runs(store).await;
    for listed in &runs {
        let detail = store.run_detail(listed.id).await.unwrap().unwrap();
        assert_eq!(detail.run.stamp(), listed.stamp(), "the list and the detail of a run differ");
        if damaged.contains(&listed.id) {
            continue;
        }
        check_groups(&detail);
        let journal = detail.journal.unwrap();
        check_journal(&detail.run, &journal);
        check_fold(&detail.run, &journal);
        check_wake_source(&detail.run);
    }
    check_budgets(store, &runs, damaged).await;
    check_signaled(store, &runs).await;
}

/// Every run of every app; no children.
pub(super) async fn all_runs<S: TxStore>(store: &S) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut cursor = None;
    loop {
        let filter = RunFilter { cursor, limit: 1_000, ..RunFilter::default() };
        let page = store.run_list(filter).await.unwrap();
        runs.extend(page.rows.into_iter().map(|row| row.run));
        cursor = page.next;
        if cursor.is_none() {
            return runs;
        }
    }
}

fn check_journal(run: &Run, journal: &[JournalEntry]) {
    JournalEntry::check_contiguous(journal, 0, run.seq).unwrap();
    for pair in journal.windows(2) {
        assert!(pair[0].generation <= pair[1].generation, "an old writer wrote later: {journal:?}");
        assert!(!pair[0].facts.is_empty(), "an empty row: {journal:?}");
    }
    assert!(journal.iter().all(|entry| entry.generation <= run.generation));
    assert!(journal.len() as u64 <= run.revision, "{run:?} has fewer revisions than commits");
    let bytes = |entry: &JournalEntry| serde_json::to_string(&entry.facts).unwrap().len() as u64;
    assert_eq!(run.journal_bytes, journal.iter().map(bytes).sum::<u64>());
}

/// The row is what its journal says, scheduling aside.
fn check_fold(run: &Run, journal: &[JournalEntry]) {
    let facts = journal.iter().flat_map(|entry| &entry.facts);
    assert!(facts.clone().all(Fact::is_journaled), "row-only facts were journaled: {journal:?}");
    let folded = facts.fold(Run::new(run.id, (*run.origin).clone()), apply);
    assert_eq!(folded.seq, run.seq);
    assert_eq!(folded.cancel, run.cancel);
    assert_eq!(folded.deadline, run.deadline);
    assert_eq!(folded.charged, run.charged);
    assert_eq!(folded.ended_at, run.ended_at);
    assert_eq!(folded.effect(), run.effect());
    match &run.phase {
        Phase::Queued { todo, .. } | Phase::Running { todo, .. } => {
            let is_queued =
                |folded: &Phase| matches!(folded, Phase::Queued { todo: of, .. } if of == todo);
            assert!(
                is_queued(&folded.phase),
                "the journal folds to {folded:?}, the row is {run:?}"
            );
        }
        Phase::Waiting(_) => assert_eq!(folded.state(), RunState::Queued, "{run:?}"),
        Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => assert_eq!(folded.phase, run.phase),
    }
}

/// The counters of a root run are the sum of what its tree of runs has recorded, and no step paid twice.
async fn check_budgets<S: TxStore>(store: &S, runs: &[Run], damaged: &[RunId]) {
    for root in runs.iter().filter(|run| run.origin.root == run.id) {
        let budget = store.run_detail(root.id).await.unwrap().unwrap().budget;
        let (mut tree, mut sum, mut seen) = (vec![root.id], Amounts::default(), BTreeSet::new());
        while let Some(run) = tree.pop() {
            if damaged.contains(&run) {
                return;
            }
            // Not the whole detail: the numbers of a large group would be counted for each of its children.
            let load = LoadRequest { run, after: None };
            let journal = store.run_load(load).await.unwrap().unwrap().journal.unwrap();
            let facts = || journal.iter().flat_map(|entry| &entry.facts);
            for fact in facts() {
                if let Fact::Charged(StepCharge { step, amounts }) = fact {
                    assert!(seen.insert((run, step.clone())), "{step} of {run} was charged twice");
                    sum.add_all(amounts);
                }
            }
            // A run that did nothing but end has no children.
            let ends = |fact: &Fact| matches!(fact, Fact::CancelRequested(_) | Fact::Ended { .. });
            if !journal.is_empty() && facts().all(ends) {
                continue;
            }
            let children = RunFilter { parent: Some(run), limit: 1_000, ..RunFilter::default() };
            let children = store.run_list(children).await.unwrap().rows;
            tree.extend(children.into_iter().map(|row| row.run.id));
        }
        for line in budget.lines() {
            let charged = sum.get(&line.dimension).unwrap_or_default();
            assert_eq!(line.used, charged, "the counter of {} is not its sum", line.dimension);
        }
        let counted = |dimension| budget.iter().any(|(name, _)| name == dimension);
        assert!(sum.iter().all(|(dimension, _)| counted(dimension)), "{sum:?} {budget:?}");
    }
}

/// Something will move every run that has not ended, or a person sees it.
fn check_wake_source(run: &Run) {
    match &run.phase {
        Phase::Queued { todo, .. } => {
            let to_explain = matches!(todo, Todo::Reconcile(_));
            assert!(run.cancel.is_none() || to_explain, "queued with cancel requested: {run:?}");
        }
        Phase::Running { lease, .. } => {
            assert!(lease.until > run.origin.created_at, "{run:?} has no lease");
        }
        Phase::Waiting(Wait { on, deadline, .. }) => {
            assert!(on.is_some() || deadline.is_some(), "{run:?} waits for nothing");
            assert!(run.cancel.is_none(), "waiting with cancel requested: {run:?}");
        }
        Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => {}
    }
}

/// The numbers of a group are those of its children, counted anew; and a parent that waits has somebody to wait for.
fn check_groups(detail: &RunDetail) {
    for group in &detail.children {
        let count = |wanted: &dyn Fn(RunState) -> bool| -> u32 {
            group.states.iter().filter(|(state, _)| wanted(*state)).map(|(_, count)| count).sum()
        };
        assert_eq!(group.states.len(), RunState::ALL.len());
        assert_eq!(count(&|_| true), group.total, "{group:?}");
        assert_eq!(count(&|state| !state.is_terminal()), group.live, "{group:?}");
        assert!(group.held <= count(&|state| state == RunState::Queued), "{group:?}");
        let is_awaited = matches!(&detail.run.phase, Phase::Waiting(wait)
            if wait.on.as_ref().is_some_and(|on| on.is_children_of(&group.step)));
        assert!(!is_awaited || group.live > 0, "{:?} waits for nobody", detail.run);
    }
}

/// Never parked and signaled; where one signal has more runs than it wakes at once, the scan wakes the rest.
async fn check_signaled<S: TxStore>(store: &S, runs: &[Run]) {
    for app in store.app_list().await.unwrap() {
        let signals = store.signal_list(&app, None, 10_000).await.unwrap();
        let waits_in_vain = |run: &Run| {
            let Phase::Waiting(Wait { on: Some(on), .. }) = &run.phase else { return false };
            run.origin.app == app && signals.iter().any(|signal| ends(signal, run, on))
        };
        let parked: Vec<_> = runs.iter().filter(|run| waits_in_vain(run)).collect();
        if parked.is_empty() {
            continue;
        }
        assert!(parked.len() + 1_000 <= runs.len(), "parked though signaled: {parked:?}");
        let mut woken = Vec::new();
        loop {
            let scan = Scan { app: app.clone(), limit: 1_000 };
            let recovered = RunStore::run_recover(store, scan).await.unwrap();
            woken.extend(recovered.woken);
            if !recovered.more {
                break;
            }
        }
        assert!(parked.iter().all(|run| woken.contains(&run.id)), "the scan lost a signal");
    }
}

fn ends(signal: &SignalRow, run: &Run, on: &Dependency) -> bool {
    let scope = (!on.is_app_wide()).then(|| run.origin.scope.clone());
    on.is_signal() && signal.scope == scope && signal.kind == on.kind() && signal.key == on.key()
}

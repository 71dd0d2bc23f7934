//! The journal: one row per commit, in order, whole, and never guessed at.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    Code, Commit, Dependency, Fact, Held, LoadRequest, OperatorStore as _, Phase, RowInput, RunId,
    RunState, RunStore as _, SaidBy, Signal, StoreError,
};

use super::world::{World, failed, step, succeeded};
use super::{StoreFactory, Tamper};
use crate::plans::{idempotent, plan, pure};

/// Covers field fault 5.
/// Covers field fault 25.
pub async fn each_commit_is_one_row_that_follows_the_one_before<F: StoreFactory>(world: &World<F>) {
    let mut drive =
        world.running(plan(vec![idempotent("a"), idempotent("b"), idempotent("c")])).await;
    let run = drive.run().id;
    // The end of the run is a fact of the last outcome's commit.
    for expected in [2, 3, 5] {
        world.answer(&mut drive, succeeded(json!(expected))).await;
        assert_eq!(drive.run().seq, expected, "the commit told its own sequence number");
        world.pass_secs(1).await;
    }
    let journal = world.journal(run).await;
    let shape: Vec<_> =
        journal.iter().map(|entry| (entry.seq, entry.facts.len(), entry.generation)).collect();
    // The inputs are lazy: they are written before the first action is prepared.
    assert_eq!(shape, [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 2, 1)]);
    assert!(journal.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!(journal[3].at > journal[1].at);
}

/// What a commit tells is what everybody reads from then on.
///
/// Covers field fault 5.
pub async fn a_commit_answers_with_the_row_as_stored<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    let run = drive.run().id;
    let facts = [Fact::InputsComputed { inputs: json!({ "n": 1 }) }];
    let commit = Commit::new(drive.run(), &facts);
    let before = world.now().await;
    let committed = world.store.run_commit(commit.clone()).await.unwrap();
    assert!(before <= committed.now && committed.now <= world.now().await);
    assert_eq!(committed.run, commit.after);
    assert_eq!(committed.run.revision, drive.run().revision + 1);
    assert_eq!(committed.receipt, surefoot_kernel_core::Receipt::attest(&commit.after));
    let stored = world.other.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap();
    assert_eq!(stored.run, committed.run);
    assert_eq!(stored.journal.unwrap()[0].facts, facts);
}

/// A worker that knows a part of the journal reads only what came since.
pub async fn only_later_rows_are_read_on_request<F: StoreFactory>(world: &World<F>) {
    let mut drive =
        world.running(plan(vec![idempotent("a"), idempotent("b"), idempotent("c")])).await;
    let run = drive.run().id;
    world.answer(&mut drive, succeeded(json!(1))).await;
    let held = drive.held().clone();
    world.answer(&mut drive, succeeded(json!(2))).await;

    let later = LoadRequest { run, after: Some(held.run.seq) };
    let later = world.store.run_load(later).await.unwrap().unwrap();
    assert_eq!(later.invocation, None);
    let journal = later.journal.unwrap();
    assert_eq!(journal.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2]);
    let caught_up = held.catch_up(later.run, drive.plan(), &journal).unwrap();
    assert_eq!(&caught_up, drive.held());
    let nothing = LoadRequest { run, after: Some(drive.run().seq) };
    assert!(world.store.run_load(nothing).await.unwrap().unwrap().journal.unwrap().is_empty());
}

/// A wait that is polled for years does not grow.
///
/// Covers field fault 121.
pub async fn claims_parks_and_releases_leave_the_journal_alone<F: StoreFactory>(world: &World<F>) {
    let run = world.run(plan(vec![idempotent("a")])).await;
    let mut drive = world.claim_run(run).await;
    let on = || Dependency::on("approval", "7").deadline_in(std::time::Duration::from_secs(10));
    world.park(&mut drive, on()).await;
    let journal = world.journal(run).await;
    let bytes = drive.run().journal_bytes;
    for _ in 0..20 {
        world.pass_secs(400).await;
        assert_eq!(world.recover().await.woken, [run]);
        let mut drive = world.claim_run(run).await;
        world.park(&mut drive, on()).await;
    }
    assert_eq!(world.journal(run).await, journal);
    assert_eq!(world.row(run).await.journal_bytes, bytes);
}

/// Covers field fault 5.
pub async fn a_refused_commit_leaves_neither_row_nor_journal<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![idempotent("a")])).await;
    let run = drive.run().id;
    let facts = [Fact::InputsComputed { inputs: json!({}) }];
    let commit = Commit::new(drive.run(), &facts);
    world.store.run_commit(commit.clone()).await.unwrap();
    let before = world.all_of(run).await;
    let refused = world.store.run_commit(commit).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert_eq!(world.all_of(run).await, before);
}

/// A long pure stretch, or a large loop, is one commit.
pub async fn a_commit_may_hold_many_facts<F: StoreFactory>(world: &World<F>) {
    let steps = (0..300).map(|_| pure("a")).collect();
    let mut drive = world.running(plan(steps)).await;
    let run = drive.run().id;
    let output = json!({ "text": "x".repeat(1_000) });
    let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(output.clone())));
    assert_eq!(ended.await.unwrap().seq, 302);
    let journal = world.journal(run).await;
    assert_eq!(journal.iter().map(|entry| entry.facts.len()).sum::<usize>(), 302);
    let restored = world.drive(run).await;
    assert_eq!(restored.held(), drive.held());
}

/// Commits of many runs at once do not mix.
///
/// Covers field fault 25.
pub async fn commits_of_many_runs_at_once_do_not_mix<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a"), idempotent("b")])).await;
    let mut runs = Vec::new();
    for _ in 0..30 {
        runs.push(world.start("flow").await);
    }
    world.claim().await;
    let mut drivers = tokio::task::JoinSet::new();
    for (number, run) in runs.iter().copied().enumerate() {
        let store = if number % 2 == 0 { world.store.clone() } else { world.other.clone() };
        drivers.spawn(async move {
            let mut drive = crate::Drive::load(&store, run).await.unwrap();
            let reply = crate::Reply::Answer(succeeded(json!(number)));
            drive.to_end(&store, |_| reply.clone()).await.unwrap();
        });
    }
    drivers.join_all().await;
    for (number, run) in runs.into_iter().enumerate() {
        let (row, journal) = world.all_of(run).await;
        assert_eq!(row.state(), RunState::Succeeded);
        let facts = journal.iter().flat_map(|entry| &entry.facts);
        let outputs = facts.filter_map(|fact| {
            let Fact::StepCompleted { output, .. } = fact else { return None };
            Some(output.clone())
        });
        assert_eq!(outputs.collect::<Vec<_>>(), [json!(number), json!(number)]);
    }
}

/// Covers behaviour 112.
/// Covers field fault 128.
/// Covers field fault 129.
pub async fn a_journal_that_cannot_be_read_concerns_its_run_only<F: StoreFactory>(
    world: &World<F>,
) {
    let run = world.run(plan(vec![idempotent("a"), idempotent("b")])).await;
    let healthy = world.start("flow").await;
    world.claim().await;
    for run in [run, healthy] {
        let mut drive = world.drive(run).await;
        world.answer(&mut drive, succeeded(json!(1))).await;
    }
    let original = serde_json::to_string(&world.journal(run).await[1].facts).unwrap();
    for damage in ["not json at all", r#"[{"from_the_future":{"step":"steps.0"}}]"#, "[]x"] {
        let facts = damage.to_owned();
        if !world.tamper(Tamper::ReplaceFacts { run, seq: 1, facts }).await {
            return;
        }
        let damaged = world.stored(run).await;
        assert!(damaged.journal.is_err(), "{damage} was read");
        assert!(world.store.run_detail(run).await.unwrap().unwrap().journal.is_err());
    }
    assert!(world.stored(healthy).await.journal.is_ok());
    let attention = RowInput::Unreadable { what: "journal row 1".to_owned() };
    let row = world.input(run, attention).await.unwrap().run;
    let Phase::NeedsAttention(attention) = row.phase else { unreachable!("{row:?}") };
    assert_eq!(attention.error.code, Code::RESTORE_INVALID);

    // Mended, the run goes on from its original bytes.
    assert!(world.tamper(Tamper::ReplaceFacts { run, seq: 1, facts: original }).await);
    world.input(run, RowInput::Retry).await.unwrap();
    let mut drive = world.claim_run(run).await;
    let ended = drive.to_end(&world.store, |call| {
        assert_eq!(call.step, step("steps.1"));
        crate::Reply::Answer(succeeded(json!(2)))
    });
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// Covers behaviour 112.
pub async fn a_missing_row_is_noticed_and_not_skipped<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = drive.run().id;
    world.answer(&mut drive, succeeded(json!(1))).await;
    world.answer(&mut drive, succeeded(json!(2))).await;
    if !world.tamper(Tamper::RemoveFacts { run, seq: 1 }).await {
        return;
    }
    let stored = world.stored(run).await;
    let journal = stored.journal.unwrap_or_default();
    let invocation = stored.invocation.unwrap();
    assert!(Held::restore(stored.run, drive.plan(), invocation, &journal).is_err());
}

/// What is recorded stays recorded: a failed execution takes nothing back.
///
/// Covers behaviour 116.
pub async fn a_bad_end_takes_no_outcome_back<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = drive.run().id;
    world.answer(&mut drive, succeeded(json!({ "kept": true }))).await;
    let journal = world.journal(run).await;
    world.answer(&mut drive, failed(true)).await;
    assert_eq!(world.journal(run).await, journal);
    world.pass_secs(301).await;
    let mut again = world.claim_run(run).await;
    world.signal(Signal::new("noise", "1")).await;
    world.answer(&mut again, succeeded(json!(2))).await;
    let facts: Vec<Fact> = world.journal(run).await.into_iter().flat_map(|e| e.facts).collect();
    let kept = Fact::StepCompleted {
        step: step("steps.0"),
        output: json!({ "kept": true }),
        by: SaidBy::Action,
    };
    assert_eq!(facts.iter().filter(|fact| **fact == kept).count(), 1);
}

/// A page of the journal is read by its place, and what stands elsewhere does not concern it.
pub async fn a_journal_is_read_page_by_page<F: StoreFactory>(world: &World<F>) {
    let steps = (0..7).map(|_| idempotent("a")).collect();
    let mut drive = world.running(plan(steps)).await;
    let run = drive.run().id;
    drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1)))).await.unwrap();
    let (row, whole) = world.all_of(run).await;
    assert!(whole.len() > 4, "{}", whole.len());
    let (mut from, mut read) = (Some(0), Vec::new());
    while let Some(at) = from {
        let page = world.other.journal_list(run, at, 2).await.unwrap().unwrap();
        let next = page.next();
        assert_eq!(page.facts, row.seq);
        let rows = page.rows.unwrap();
        assert!(rows.len() == 2 || next.is_none(), "{} rows before the end", rows.len());
        read.extend(rows);
        from = next;
    }
    assert_eq!(read, whole);
    // The row that holds the fact, also where it is not its first.
    for entry in &whole {
        for fact in 0..entry.facts.len() as u64 {
            let page = world.store.journal_list(run, entry.seq + fact, 1).await.unwrap().unwrap();
            assert_eq!(page.rows.unwrap(), std::slice::from_ref(entry));
        }
    }
    let behind = world.store.journal_list(run, row.seq, 10).await.unwrap().unwrap();
    assert_eq!((behind.next(), behind.rows), (None, Ok(Vec::new())));
    let unknown = RunId::from_bytes([7; 16]);
    assert_eq!(world.store.journal_list(unknown, 0, 10).await.unwrap(), None);
    let spoilt = Tamper::ReplaceFacts { run, seq: whole[2].seq, facts: "nonsense".to_owned() };
    if world.tamper(spoilt).await {
        let page = world.store.journal_list(run, 0, 2).await.unwrap().unwrap();
        assert_eq!(page.rows.unwrap(), whole[..2]);
        assert!(world.store.journal_list(run, 0, 3).await.unwrap().unwrap().rows.is_err());
    }
}

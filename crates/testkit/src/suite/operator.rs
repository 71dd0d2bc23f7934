//! What people see and do: cancel, verdicts, retries, and lists that neither lie nor skip.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    Answer, App, Audit, Code, Command, Committed, Dependency, EffectState, Event, EventFilter,
    EventStore as _, Failure, Mode, OperatorStore as _, Phase, ReconcileAnswer, RowInput,
    RunFilter, RunId, RunRow, RunState, RunStore as _, Scope, SendSignal, SessionReport, Signal,
    Standing, StoreError, Todo, Verdict, WorkflowKey,
};

use super::world::{LEASE, World, app, cancel, failed, scope, send, step, succeeded, unknown};
use super::{StoreFactory, Tamper};
use crate::plans::{ambiguous, idempotent, plan, pure, triggered};

fn audit(verb: &str) -> Audit {
    Audit {
        actor: "bob".to_owned(),
        verb: verb.to_owned(),
        reason: "the provider's log says so".to_owned(),
        details: json!({ "ticket": 7 }).to_string(),
    }
}

async fn verb<F: StoreFactory>(world: &World<F>, run: RunId, input: RowInput) -> Committed {
    let commit = world.decided(run, input).await.audited(audit("verb"));
    world.store.run_commit(commit).await.unwrap()
}

/// A run in attention, since nobody can tell what became of its effect.
pub(super) async fn in_attention<F: StoreFactory>(world: &World<F>) -> RunId {
    let mut drive = world.running(plan(vec![ambiguous("pay"), idempotent("b")])).await;
    let run = drive.run().id;
    world.answer(&mut drive, unknown()).await;
    assert!(matches!(world.row(run).await.phase, Phase::Queued { todo: Todo::Reconcile(_), .. }));
    world.pass_secs(2).await;
    nobody_can_tell(world, run).await;
    run
}

/// The provider of a run that waits to ask it knows nothing: the run is a person's.
pub(super) async fn nobody_can_tell<F: StoreFactory>(world: &World<F>, run: RunId) {
    let mut drive = world.claim_run(run).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Reconcile(call)) = command else { unreachable!("{command:?}") };
    let answer = ReconcileAnswer::Unknown { why: "it has no log".to_owned() };
    let input = crate::Drive::input(&call, crate::Reply::Reconciled(answer));
    drive.take(&world.store, input).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::NeedsAttention);
}

/// Covers behaviour 104.
/// Covers behaviour 109.
/// Covers field fault 118.
/// Covers field fault 131.
pub async fn a_cancel_works_from_every_state<F: StoreFactory>(world: &World<F>) {
    let attention = in_attention(world).await;
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(world.start("flow").await);
    }
    world.claim().await;
    let answers = [succeeded(json!(1)), failed(false), failed(true)];
    for (run, answer) in runs.iter().zip(answers) {
        let mut drive = world.drive(*run).await;
        world.answer(&mut drive, answer).await;
        drive.to_end(&world.store, |_| crate::Reply::Answer(failed(false))).await.unwrap();
    }
    let mut drive = world.drive(runs[3]).await;
    world.park(&mut drive, Dependency::on("approval", "7")).await;
    let fresh = world.start("flow").await;

    let after = async |run: RunId| {
        let commit = world.decided(run, cancel()).await;
        let state = world.row(run).await.state();
        match world.store.run_commit(commit).await {
            Ok(committed) => committed.run.state(),
            Err(_) => state,
        }
    };
    assert_eq!(after(runs[0]).await, RunState::Succeeded);
    assert_eq!(after(runs[1]).await, RunState::Failed);
    assert_eq!(after(runs[2]).await, RunState::Canceled, "queued behind its backoff");
    assert_eq!(after(runs[3]).await, RunState::Canceled, "waiting");
    assert_eq!(after(runs[4]).await, RunState::Running, "flagged for its worker");
    assert_eq!(after(fresh).await, RunState::Canceled, "queued, and no worker is needed");
    assert_eq!(after(attention).await, RunState::NeedsAttention, "its effect is not explained");
    for run in [runs[4], attention] {
        assert!(world.row(run).await.cancel.is_some());
    }
    let message = Some("not needed any more".to_owned());
    assert_eq!(world.row(fresh).await.phase, Phase::Canceled { message });
}

/// Covers behaviour 139.
pub async fn an_operator_says_that_an_effect_happened<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    let verdict = Verdict::Succeeded { output: json!({ "receipt": 7 }) };
    let resolve = RowInput::Resolve { step: step("steps.0"), verdict };
    assert_eq!(verb(world, run, resolve).await.run.state(), RunState::Queued);
    let mut drive = world.claim_run(run).await;
    let ended = drive.to_end(&world.store, |call| {
        assert_eq!(call.step, step("steps.1"), "the body is not repeated");
        crate::Reply::Answer(succeeded(json!(2)))
    });
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// Covers behaviour 140.
pub async fn an_operator_says_that_an_effect_failed<F: StoreFactory>(world: &World<F>) {
    for (code, expected) in [
        (None, Code::EFFECT_CONFIRMED_FAILED),
        (Some(Code::from("REFUSED")), Code::from("REFUSED")),
    ] {
        let run = in_attention(world).await;
        let verdict = Verdict::Failed { code, message: "the bank said no".to_owned() };
        let resolve = RowInput::Resolve { step: step("steps.0"), verdict };
        verb(world, run, resolve).await;
        let Phase::Failed { error, abandoned: None } = world.row(run).await.phase else {
            unreachable!()
        };
        assert_eq!(error.code, expected);
    }
}

/// Covers behaviour 141.
pub async fn of_two_verdicts_one_wins<F: StoreFactory>(world: &World<F>) {
    for _ in 0..10 {
        let run = in_attention(world).await;
        let failed = Verdict::Failed { code: None, message: "no".to_owned() };
        let mut commits = Vec::new();
        for verdict in [Verdict::NotPerformed, failed] {
            let resolve = RowInput::Resolve { step: step("steps.0"), verdict };
            commits.push(world.decided(run, resolve).await.audited(audit("resolve")));
        }
        let second = commits.pop().unwrap();
        let first = commits.pop().unwrap();
        let rows = world.store.audit_list(&app(), None, 1_000).await.unwrap().len();
        let (one, two) =
            tokio::join!(world.store.run_commit(first.clone()), world.other.run_commit(second));
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let lost = one.err().or(two.err());
        assert!(matches!(lost, Some(StoreError::Conflict | StoreError::LeaseLost)), "{lost:?}");
        assert_eq!(world.store.audit_list(&app(), None, 1_000).await.unwrap().len(), rows + 1);
        let again = world.store.run_commit(first).await;
        assert!(again.is_err(), "a second look is needed for a second verdict");
    }
}

/// Each verb leaves a row of who, why and what; a refused one leaves none.
pub async fn each_verb_is_audited_with_its_write<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    let before = world.now().await;
    let ask = RowInput::AskReconcile { step: step("steps.0") };
    let commit = world.decided(run, ask).await.audited(audit("reconcile"));
    world.store.run_commit(commit.clone()).await.unwrap();
    assert!(world.store.run_commit(commit).await.is_err());
    let rows = world.store.audit_list(&app(), None, 100).await.unwrap();
    let row = &rows[0];
    assert_eq!((row.actor.as_str(), row.verb.as_str(), row.run), ("bob", "reconcile", Some(run)));
    let version = Some(world.row(run).await.origin.version);
    assert_eq!((row.reason.as_str(), row.version), ("the provider's log says so", version));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&row.details).unwrap(),
        json!({ "ticket": 7 })
    );
    assert!(before <= row.at && row.at <= world.now().await);
    assert_eq!(rows.iter().filter(|row| row.run.is_some()).count(), 1);
    world.publish("late", plan(vec![pure("a")])).await;
    let newest = world.store.audit_list(&app(), None, 1).await.unwrap();
    assert!(newest.len() == 1 && newest[0].version.is_some(), "newest first: {newest:?}");
    assert!(world.store.audit_list(&App::from("bank"), None, 100).await.unwrap().is_empty());
    assert_eq!(world.row(run).await.effect().unwrap().state, EffectState::Ambiguous);
}

/// Covers field fault 114.
pub async fn a_retry_starts_the_counts_again_and_keeps_outcomes<F: StoreFactory>(world: &World<F>) {
    let flow = plan(vec![idempotent("a"), idempotent("b").attempts(1)]);
    let mut drive = world.running(flow).await;
    let run = drive.run().id;
    world.answer(&mut drive, succeeded(json!(1))).await;
    world.answer(&mut drive, failed(true)).await;
    world.pass_secs(301).await;
    let mut drive = world.claim_run(run).await;
    assert_eq!(drive.to_call(&world.store).await.unwrap(), None);
    let exhausted = world.row(run).await;
    assert_eq!(exhausted.state(), RunState::Failed);
    let key = exhausted.effect_key(&step("steps.1"));
    assert_eq!(world.store.app_health(&app()).await.unwrap().exhausted, 1);
    assert!(world.claim().await.is_empty());

    let retried = verb(world, run, RowInput::Retry).await.run;
    assert_eq!((retried.state(), retried.failures, retried.ended_at), (RunState::Queued, 0, None));
    let mut drive = world.claim_run(run).await;
    let ended = drive.to_end(&world.store, |call| {
        assert_eq!((&call.step, &call.effect_key), (&step("steps.1"), &key));
        crate::Reply::Answer(succeeded(json!(2)))
    });
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
    assert_eq!(world.store.app_health(&app()).await.unwrap().exhausted, 0);
}

/// What was given up without knowing stays listed for ever.
pub async fn an_abandoned_effect_stays_listed<F: StoreFactory>(world: &World<F>) {
    let run = in_attention(world).await;
    let abandon = RowInput::Abandon { accept_unknown: true, unclaimable: false };
    verb(world, run, abandon).await;
    let Phase::Failed { error, abandoned: Some(effect) } = world.row(run).await.phase else {
        unreachable!()
    };
    assert_eq!((error.code, effect.state), (Code::ABANDONED, EffectState::AbandonedUnknown));
    world.pass_secs(400 * 86_400).await;
    let listed = world.store.effect_list(&app(), None, 10).await.unwrap();
    assert!(
        listed.iter().any(|row| row.run == run && row.state() == EffectState::AbandonedUnknown)
    );
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!((health.unsettled_effects, health.oldest_unsettled), (0, None));
    assert_eq!((health.outputs_missing, health.effects_given_up), (0, 1));
}

/// What the numbers count is what the list shows, also behind it.
pub async fn health_counts_the_effects_that_are_listed<F: StoreFactory>(world: &World<F>) {
    for give_up in [false, true, true] {
        let run = in_attention(world).await;
        if give_up {
            let abandon = RowInput::Abandon { accept_unknown: true, unclaimable: false };
            verb(world, run, abandon).await;
        }
    }
    for give_up in [false, true] {
        let mut refused = world.running(plan(vec![idempotent("a")])).await;
        let error = Failure::new(Code::OUTPUT_INVALID, "`receipt` is missing");
        world
            .answer(&mut refused, Answer::OutputRefused { error, evidence: "{}".to_owned() })
            .await;
        if give_up {
            // It is known to have happened: nothing is left to be found out.
            let abandon = RowInput::Abandon { accept_unknown: false, unclaimable: false };
            verb(world, refused.run().id, abandon).await;
        }
    }
    let listed = world.store.effect_list(&app(), None, 100).await.unwrap();
    let shown = |standing| listed.iter().filter(|row| row.standing() == Some(standing)).count();
    let all = [Standing::Unexplained, Standing::OutputMissing, Standing::GivenUp];
    assert_eq!(all.map(shown), [1, 1, 2]);
    assert_eq!(listed.len(), 4, "each row has a standing");
    let health = world.store.app_health(&app()).await.unwrap();
    let counted = (health.unsettled_effects, health.outputs_missing, health.effects_given_up);
    assert_eq!(counted, (1, 1, 2));
}

/// A list of one scope has what is there and nothing else; signals of the app as a whole are of no scope.
pub async fn lists_are_narrowed_to_a_scope_by_the_store<F: StoreFactory>(world: &World<F>) {
    in_attention(world).await;
    world.signal(Signal::new("approval", "7")).await;
    let wide = SendSignal { scope: None, ..send(Signal::new("approval", "8")) };
    world.store.signal_send(wide).await.unwrap();
    let run = world.start("flow").await;
    let commit = world.decided(run, cancel()).await.audited(audit("cancel"));
    world.store.run_commit(commit).await.unwrap();
    let (here, there) = (scope(), Scope::from("nowhere"));
    for (of, expected) in [(None, [1, 2, 1]), (Some(&here), [1, 1, 1]), (Some(&there), [0, 0, 0])] {
        let effects = world.store.effect_list(&app(), of, 10).await.unwrap().len();
        let signals = world.store.signal_list(&app(), of, 10).await.unwrap().len();
        let audits = world.store.audit_list(&app(), of, 10).await.unwrap();
        let cancels = audits.iter().filter(|row| row.verb == "cancel").count();
        assert_eq!([effects, signals, cancels], expected, "{of:?}");
    }
    // The newest rows of other scopes do not push these out of a short list.
    assert_eq!(world.store.audit_list(&app(), Some(&here), 1).await.unwrap().len(), 1);
}

/// Covers behaviour 181.
pub async fn unexplained_effects_are_listed_oldest_first<F: StoreFactory>(world: &World<F>) {
    let mut executing = world.running(plan(vec![ambiguous("pay")])).await;
    assert!(executing.to_call(&world.store).await.unwrap().is_some());
    world.pass_secs(5).await;
    let attention = in_attention(world).await;
    let mut refused = world.running(plan(vec![idempotent("a")])).await;
    let error = Failure::new(Code::OUTPUT_INVALID, "`receipt` is missing");
    let evidence = "{\"paid\":true}".to_owned();
    world.answer(&mut refused, Answer::OutputRefused { error, evidence }).await;
    world.pass_secs(300).await;

    let listed = world.store.effect_list(&app(), None, 10).await.unwrap();
    let shape: Vec<_> = listed.iter().map(|row| (row.run, row.state(), row.run_state)).collect();
    let expected = [
        (executing.run().id, EffectState::Marked, RunState::Running),
        (attention, EffectState::Ambiguous, RunState::NeedsAttention),
        (refused.run().id, EffectState::Succeeded, RunState::NeedsAttention),
    ];
    assert_eq!(shape, expected);
    let first = &listed[0];
    assert_eq!((first.step(), first.effect.action.as_str()), (&step("steps.0"), "pay"));
    assert_eq!((&first.scope, first.workflow.as_str()), (&scope(), "flow"));
    assert_eq!(first.revision, world.row(first.run).await.revision);
    assert!(first.now.since(first.effect.since).get() >= 300_000_000);
    assert_eq!(listed[2].effect.evidence.as_deref(), Some("{\"paid\":true}"));
    assert_eq!(world.store.effect_list(&app(), None, 1).await.unwrap().len(), 1);
    assert!(world.store.effect_list(&App::from("bank"), None, 10).await.unwrap().is_empty());
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!(health.unsettled_effects, 2);
    assert_eq!(health.oldest_unsettled, Some(first.effect.since));
}

async fn pages<F: StoreFactory>(world: &World<F>, filter: RunFilter) -> Vec<RunRow> {
    let (mut rows, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.store.run_list(RunFilter { cursor, ..filter.clone() }).await.unwrap();
        assert!(page.rows.len() <= filter.limit as usize);
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            return rows;
        }
    }
}

/// Covers field fault 112.
pub async fn runs_are_listed_newest_first_and_filtered_by_the_store<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("a", triggered(plan(vec![pure("a")]), "low", "low")).await;
    world.publish("a", triggered(plan(vec![pure("a")]), "low", "low")).await;
    world.publish("b", plan(vec![pure("b")])).await;
    let mut runs = Vec::new();
    for key in ["a", "b", "a", "b", "a"] {
        runs.push(world.start(key).await);
        world.pass_secs(1).await;
    }
    let event = world.emit(Event::new("low", json!({}))).await;
    runs.extend(&event.runs);
    world.cancel(runs[1]).await;
    let since = world.row(runs[3]).await.origin.created_at;
    let list = async |filter: RunFilter| {
        let rows = pages(world, RunFilter { limit: 2, ..filter }).await;
        rows.iter().map(|row| row.run.id).collect::<Vec<_>>()
    };
    let newest: Vec<RunId> = runs.iter().rev().copied().collect();
    assert_eq!(list(RunFilter::default()).await, newest);
    assert_eq!(
        list(RunFilter { app: Some(app()), scope: Some(scope()), ..RunFilter::default() }).await,
        newest
    );
    let workflow = Some(WorkflowKey::from("b"));
    assert_eq!(list(RunFilter { workflow, ..RunFilter::default() }).await, [runs[3], runs[1]]);
    let states = vec![RunState::Canceled, RunState::Failed];
    assert_eq!(list(RunFilter { states, ..RunFilter::default() }).await, [runs[1]]);
    assert_eq!(list(RunFilter { since: Some(since), ..RunFilter::default() }).await, newest[..3]);
    assert_eq!(
        list(RunFilter { event: Some(event.event), ..RunFilter::default() }).await,
        event.runs
    );
    for nothing in [
        RunFilter { app: Some(App::from("bank")), ..RunFilter::default() },
        RunFilter { scope: Some(Scope::from("south")), ..RunFilter::default() },
        RunFilter { mode: Some(Mode::DryRun), ..RunFilter::default() },
        RunFilter { parent: Some(runs[0]), ..RunFilter::default() },
    ] {
        assert!(list(nothing).await.is_empty());
    }
    let rows = pages(world, RunFilter { limit: 10, ..RunFilter::default() }).await;
    let revision = |run: RunId| rows.iter().find(|row| row.run.id == run).unwrap().version_revision;
    assert_eq!((revision(runs[0]), revision(runs[1])), (2, 1));
}

/// A page begins where the one before ended, whatever was added or changed meanwhile.
pub async fn pages_are_stable_while_runs_come_and_change<F: StoreFactory>(world: &World<F>) {
    let mut flow = plan(vec![pure("a")]);
    for kind in ["t1", "t2", "t3", "t4", "t5"] {
        flow = triggered(flow, kind, "low");
    }
    world.publish("flow", flow).await;
    // Runs of one event have one creation time: the place between them is by id.
    let mut expected = world.emit(Event::new("low", json!({}))).await.runs;
    world.pass_secs(1).await;
    expected.extend(world.emit(Event::new("low", json!({}))).await.runs);
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let filter = RunFilter { limit: 3, cursor, ..RunFilter::default() };
        let page = world.store.run_list(filter).await.unwrap();
        seen.extend(page.rows.iter().map(|row| row.run.id));
        world.pass_secs(1).await;
        world.emit(Event::new("low", json!({}))).await;
        world.cancel(page.rows[0].run.id).await;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert!(seen[..5].iter().all(|run| expected[5..].contains(run)), "newest first");
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected, "a run was skipped or shown twice");
}

/// Covers behaviour 163.
pub async fn children_are_hidden_unless_their_parent_is_named<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![pure("a")])).await;
    let parent = world.start("flow").await;
    let child = world.start("flow").await;
    if !world.tamper(Tamper::MakeChild { run: child, parent }).await {
        return;
    }
    let list = async |parent| {
        let rows = pages(world, RunFilter { parent, limit: 10, ..RunFilter::default() }).await;
        rows.iter().map(|row| row.run.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None).await, [parent]);
    assert_eq!(list(Some(parent)).await, [child]);
    assert!(list(Some(child)).await.is_empty());
    let row = world.row(child).await;
    assert_eq!(row.origin.parent.as_ref().unwrap().run, parent);
}

/// A detail has row, journal, plan, cause and result; a list has no result.
pub async fn the_detail_of_a_run_tells_its_cause_and_its_course<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", triggered(plan(vec![idempotent("a")]), "low", "low")).await;
    let event = Event::new("low", json!({ "n": 1 })).context(json!({ "tenant": 7 }));
    let event = event.authorization(json!({ "actor": "ada" })).dedupe_key("bolt:1");
    let emission = world.emit(event).await;
    let run = emission.runs[0];
    let mut drive = world.claim_run(run).await;
    drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(7)))).await.unwrap();
    let detail = world.store.run_detail(run).await.unwrap().unwrap();
    assert_eq!(detail.run, *drive.run());
    assert_eq!(detail.run.phase, Phase::Succeeded { result: json!(7), message: None });
    assert_eq!(detail.version_revision, 1);
    assert_eq!(detail.invocation.trigger, json!({ "n": 1 }));
    assert_eq!(detail.invocation.context, json!({ "tenant": 7 }));
    assert_eq!(detail.invocation.actor, Some(json!("ada")));
    assert_eq!(detail.journal.unwrap(), world.journal(run).await);
    let read: surefoot_kernel_core::plan::Plan =
        surefoot_kernel_core::payload::from_stored(&detail.plan).unwrap();
    assert_eq!(&read, drive.plan());
    let cause = detail.event.unwrap();
    assert_eq!((cause.event, cause.kind.as_str()), (emission.event, "low"));
    assert_eq!(cause.dedupe_key.as_deref(), Some("bolt:1"));
    assert_eq!(cause.runs, [run]);
    let unknown = RunId::from_bytes([9; 16]);
    assert!(world.store.run_detail(unknown).await.unwrap().is_none());
    let listed =
        world.store.run_list(RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap();
    let Phase::Succeeded { result, .. } = &listed.rows[0].run.phase else { unreachable!() };
    assert_eq!(*result, json!(null), "lists read no payloads");
}

/// Events are listed newest first, and each filter is the store's.
pub async fn events_are_listed_newest_first<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", triggered(plan(vec![pure("a")]), "low", "low")).await;
    let mut events = Vec::new();
    for kind in ["low", "high", "low", "high", "low"] {
        events.push(world.emit(Event::new(kind, json!({}))).await.event);
        world.pass_secs(1).await;
    }
    let list = async |filter: EventFilter| {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let filter = EventFilter { limit: 2, cursor, ..filter.clone() };
            let page = world.store.event_list(filter).await.unwrap();
            listed.extend(page.rows.iter().map(|row| row.event));
            cursor = page.next;
            if cursor.is_none() {
                return listed;
            }
        }
    };
    let newest: Vec<_> = events.iter().rev().copied().collect();
    assert_eq!(list(EventFilter::default()).await, newest);
    let kind = Some("high".to_owned());
    assert_eq!(list(EventFilter { kind, ..EventFilter::default() }).await, [events[3], events[1]]);
    let here = EventFilter { app: Some(app()), scope: Some(scope()), ..EventFilter::default() };
    assert_eq!(list(here).await, newest);
    let south = Some(Scope::from("south"));
    assert!(list(EventFilter { scope: south, ..EventFilter::default() }).await.is_empty());
    let bank = Some(App::from("bank"));
    assert!(list(EventFilter { app: bank, ..EventFilter::default() }).await.is_empty());
}

/// A worker session is listed from its first report until it says that it has ended.
pub async fn sessions_are_listed_until_they_end<F: StoreFactory>(world: &World<F>) {
    let report = SessionReport {
        session: world.session,
        app: app(),
        name: "host-1:4711".to_owned(),
        mode: Mode::Execute,
        offers: vec![plan(vec![pure("a")]).footprint],
        tree: None,
        slots: 8,
        busy: 3,
        stuck: 1,
        ended: false,
    };
    world.store.session_report(report.clone()).await.unwrap();
    world.pass_secs(1).await;
    let rival = SessionReport {
        session: world.rival,
        name: "host-2:1".to_owned(),
        mode: Mode::DryRun,
        tree: Some(RunId::from_bytes([7; 16])),
        ..report.clone()
    };
    world.other.session_report(rival).await.unwrap();
    world.pass_secs(30).await;
    let listed = world.store.session_list(&app()).await.unwrap();
    assert_eq!(
        listed.iter().map(|row| row.session).collect::<Vec<_>>(),
        [world.rival, world.session]
    );
    assert_eq!(
        listed.iter().map(|row| row.mode).collect::<Vec<_>>(),
        [Mode::DryRun, Mode::Execute]
    );
    assert_eq!((listed[0].tree, listed[1].tree), (Some(RunId::from_bytes([7; 16])), None));
    let row = &listed[1];
    assert_eq!((row.name.as_str(), row.slots, row.busy, row.stuck), ("host-1:4711", 8, 3, 1));
    assert_eq!(row.offers, report.offers);
    assert!(row.now.since(row.seen_at).get() >= 31_000_000);

    world.store.session_report(SessionReport { busy: 4, ..report.clone() }).await.unwrap();
    world.store.session_report(SessionReport { busy: 5, ..report.clone() }).await.unwrap();
    let listed = world.store.session_list(&app()).await.unwrap();
    assert_eq!((listed.len(), listed[0].session, listed[0].busy), (2, world.session, 5));
    world.store.session_report(SessionReport { ended: true, ..report }).await.unwrap();
    let listed = world.store.session_list(&app()).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.session).collect::<Vec<_>>(), [world.rival]);
    assert!(world.store.session_list(&App::from("bank")).await.unwrap().is_empty());
}

/// Health counts the runs of one app in all seven states.
pub async fn health_counts_runs_by_state<F: StoreFactory>(world: &World<F>) {
    let attention = in_attention(world).await;
    let mut flow = world.running(plan(vec![idempotent("a")])).await;
    world.answer(&mut flow, Answer::Waiting { on: Dependency::on("approval", "7") }).await;
    world.start("flow").await;
    let held = world.start("flow").await;
    world.claim().await;
    world.start("flow").await;
    let canceled = world.start("flow").await;
    world.cancel(canceled).await;
    let mut drive = world.drive(held).await;
    world.answer(&mut drive, failed(false)).await;
    let health = world.store.app_health(&app()).await.unwrap();
    let count = |state| health.runs.iter().find(|(of, _)| *of == state).map_or(0, |(_, n)| *n);
    let counts: Vec<u64> = RunState::ALL.iter().map(|state| count(*state)).collect();
    // In order: queued, running, waiting, succeeded, failed, canceled, needs_attention.
    assert_eq!(counts, [1, 1, 1, 0, 1, 1, 1]);
    assert_eq!(world.row(attention).await.state(), RunState::NeedsAttention);
    let elsewhere = world.store.app_health(&App::from("bank")).await.unwrap();
    assert!(elsewhere.runs.iter().all(|(_, count)| *count == 0));
    assert!(LEASE.get() > 0 && health.now <= world.now().await);
}

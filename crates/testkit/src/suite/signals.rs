//! Signals: durable, the first one stays, and no order of park and signal loses the wake.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use crate::ClaimRows;
use serde_json::{Value, json};
use surefoot_kernel_core::{
    App, Command, Dependency, EventStore as _, OperatorStore as _, Phase, PlanStore as _, Publish,
    RowInput, Run, RunId, RunState, RunStore as _, Scan, Scope, SendSignal, Signal, Todo, Wake,
    apply, decide_row,
};

use super::StoreFactory;
use super::world::{World, app, scope, send, succeeded};
use crate::Drive;
use crate::plans::{idempotent, plan, triggered};

fn flow() -> surefoot_kernel_core::plan::Plan {
    plan(vec![idempotent("approve")])
}

fn approval(key: &str) -> Dependency {
    Dependency::on("approval", key)
}

fn approved(key: &str) -> Signal {
    Signal::new("approval", key).data(json!({ "by": "ada" }))
}

/// A run that waits for this.
async fn waiting<F: StoreFactory>(world: &World<F>, on: Dependency) -> RunId {
    let mut drive = world.running(flow()).await;
    world.park(&mut drive, on).await;
    assert_eq!(drive.run().state(), RunState::Waiting);
    drive.run().id
}

fn wake_of(run: &Run) -> Option<&Wake> {
    run.resume.as_ref().map(|resume| &resume.wake)
}

/// Covers behaviour 143.
pub async fn a_signal_wakes_exactly_the_runs_that_wait_for_it<F: StoreFactory>(world: &World<F>) {
    let wanted = waiting(world, approval("7")).await;
    let mut others = vec![waiting(world, approval("8")).await];
    others.push(waiting(world, Dependency::on("refusal", "7")).await);
    others.push(waiting(world, approval("7").app_wide()).await);
    for (app, scope) in [("shop", "south"), ("bank", "north")] {
        let (app, scope) = (App::from(app), Scope::from(scope));
        let publish = world.publication("flow", flow());
        let publish = Publish { app: app.clone(), scope: scope.clone(), ..publish };
        world.store.version_publish(publish).await.unwrap();
        let emit = world.emission(surefoot_kernel_core::Event::start("flow", json!({})));
        let emit = surefoot_kernel_core::Emit { app: app.clone(), scope, ..emit };
        let run = world.store.event_emit(emit).await.unwrap().runs[0];
        let request = world.claim_request(10).await;
        let request = surefoot_kernel_core::ClaimRequest { app, ..request };
        assert_eq!(world.store.claim_rows(request).await[0].id, run);
        let mut drive = world.drive(run).await;
        world.park(&mut drive, approval("7")).await;
        others.push(run);
    }
    let before = world.row(wanted).await;
    let sent = world.signal(approved("7")).await;
    assert!(sent.new);
    assert_eq!(sent.woken, [wanted]);
    let woken = world.row(wanted).await;
    let Phase::Queued { ready_at, todo: Todo::Steps } = woken.phase else { unreachable!() };
    let wake = Wake::Signal(json!({ "by": "ada" }));
    let facts = decide_row(&before, RowInput::Wake { wake, at_once: false }, ready_at).unwrap();
    let expected = facts.iter().fold(before.clone(), apply);
    assert_eq!(woken, Run { revision: before.revision + 1, ..expected });
    for other in others {
        assert_eq!(world.row(other).await.state(), RunState::Waiting);
    }
}

/// Covers behaviour 143.
pub async fn an_app_wide_signal_wakes_only_app_wide_waits<F: StoreFactory>(world: &World<F>) {
    let scoped = waiting(world, approval("7")).await;
    let wide = waiting(world, approval("7").app_wide()).await;
    let signal = SendSignal { scope: None, ..send(approved("7")) };
    assert_eq!(world.store.signal_send(signal.clone()).await.unwrap().woken, [wide]);
    assert_eq!(world.row(scoped).await.state(), RunState::Waiting);
    let elsewhere = SendSignal { app: App::from("bank"), ..signal };
    assert!(world.store.signal_send(elsewhere).await.unwrap().new);
    // Both exist now, and each new wait finds its own.
    assert_eq!(world.signal(approved("7")).await.woken, [scoped]);
    for on in [approval("7"), approval("7").app_wide()] {
        let mut drive = world.running(flow()).await;
        world.park(&mut drive, on).await;
        assert_eq!(drive.run().state(), RunState::Queued);
    }
}

/// Covers behaviour 144.
/// Covers field fault 33.
pub async fn a_wait_for_what_has_occurred_wakes_at_once<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(flow()).await;
    world.signal(approved("7")).await;
    world.pass_secs(60).await;
    let run = drive.run().id;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
    drive.flush(&world.store).await.unwrap();
    let answer = surefoot_kernel_core::Answer::Waiting { on: approval("7") };
    drive.decide(Drive::input(&call, crate::Reply::Answer(answer))).unwrap();
    let commit = drive.commit().unwrap();
    let committed = world.store.run_commit(commit.clone()).await.unwrap();
    assert_eq!(world.row(run).await, committed.run);
    let Phase::Queued { ready_at, .. } = committed.run.phase else { unreachable!() };
    let wake = Wake::Signal(json!({ "by": "ada" }));
    let facts = decide_row(&commit.after, RowInput::Wake { wake, at_once: true }, ready_at);
    let expected = facts.unwrap().iter().fold(commit.after, apply);
    assert_eq!(committed.run, Run { revision: committed.run.revision, ..expected });
    let mut drive = world.claim_run(run).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
    assert_eq!(call.resumed, Some(Wake::Signal(json!({ "by": "ada" }))));
}

/// Covers field fault 27.
/// Covers field fault 31.
/// Covers field fault 35.
pub async fn a_signal_counts_whenever_it_comes<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", flow()).await;
    for moment in 0..6 {
        let key = format!("order-{moment}");
        let signal_at = async |now: i32| {
            if now == moment {
                assert!(world.signal(approved(&key)).await.new);
            }
        };
        signal_at(0).await;
        let run = world.start("flow").await;
        signal_at(1).await;
        let mut drive = world.claim_run(run).await;
        signal_at(2).await;
        let command = drive.to_call(&world.store).await.unwrap();
        let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
        drive.flush(&world.store).await.unwrap();
        signal_at(3).await;
        if moment == 4 {
            // The run moves to a new generation while the signal arrives.
            world.take_over(run, drive.run().generation).await.unwrap();
            drive = world.drive(run).await;
            signal_at(4).await;
        }
        let answer = surefoot_kernel_core::Answer::Waiting { on: approval(&key) };
        drive.answer(&world.store, &call.step, answer).await.unwrap();
        signal_at(5).await;
        let row = world.row(run).await;
        assert_eq!(row.state(), RunState::Queued, "the signal at moment {moment} was lost");
        assert_eq!(wake_of(&row), Some(&Wake::Signal(json!({ "by": "ada" }))));
        let mut drive = world.claim_run(run).await;
        let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1))));
        assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
    }
}

/// Covers field fault 29.
pub async fn park_and_signal_at_once_never_lose_the_wake<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", flow()).await;
    for round in 0..60 {
        let key = format!("order-{round}");
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let command = drive.to_call(&world.store).await.unwrap();
        let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
        drive.flush(&world.store).await.unwrap();
        let answer = surefoot_kernel_core::Answer::Waiting { on: approval(&key) };
        drive.decide(Drive::input(&call, crate::Reply::Answer(answer))).unwrap();
        let commit = drive.commit().unwrap();
        let park = async {
            if round % 3 == 0 {
                tokio::task::yield_now().await;
            }
            world.store.run_commit(commit).await.unwrap();
        };
        let signal = async {
            if round % 3 == 1 {
                tokio::task::yield_now().await;
            }
            world.other.signal_send(send(approved(&key))).await.unwrap();
        };
        tokio::join!(park, signal);
        assert_eq!(world.row(run).await.state(), RunState::Queued, "parked and signaled");
    }
}

/// Covers behaviour 145.
pub async fn concurrent_signals_of_one_key_wake_once<F: StoreFactory>(world: &World<F>) {
    let run = waiting(world, approval("7")).await;
    let before = world.row(run).await;
    let mut sends = tokio::task::JoinSet::new();
    for process in 0..8 {
        let store = if process % 2 == 0 { world.store.clone() } else { world.other.clone() };
        sends.spawn(async move { store.signal_send(send(approved("7"))).await.unwrap() });
    }
    let sent = sends.join_all().await;
    assert_eq!(sent.iter().filter(|sent| sent.new).count(), 1);
    assert_eq!(sent.iter().flat_map(|sent| &sent.woken).collect::<Vec<_>>(), [&run]);
    assert_eq!(world.row(run).await.revision, before.revision + 1);
    assert_eq!(world.claim().await.len(), 1);
}

/// The first signal of a key stays, whatever comes later.
///
/// Covers field fault 14.
pub async fn the_first_signal_of_a_key_stays<F: StoreFactory>(world: &World<F>) {
    assert!(world.signal(Signal::new("approval", "7").data(json!({ "first": true }))).await.new);
    for later in
        [Signal::new("approval", "7").data(json!({ "first": false })), Signal::new("approval", "7")]
    {
        let sent = world.signal(later).await;
        assert!(!sent.new && sent.woken.is_empty());
    }
    let mut drive = world.running(flow()).await;
    world.park(&mut drive, approval("7")).await;
    assert_eq!(wake_of(drive.run()), Some(&Wake::Signal(json!({ "first": true }))));
    // Everybody who reads the run sees the same copy of it.
    for store in [&world.store, &world.other] {
        let drive = Drive::load(store, drive.run().id).await.unwrap();
        assert_eq!(wake_of(drive.run()), Some(&Wake::Signal(json!({ "first": true }))));
    }
}

/// Covers behaviour 148.
pub async fn one_signal_wakes_a_thousand_and_the_scan_the_rest<F: StoreFactory>(world: &World<F>) {
    let mut many = flow();
    for number in 0..1_005 {
        many = triggered(many, &format!("t{number}"), "stock.low");
    }
    world.publish("flow", many).await;
    let event = surefoot_kernel_core::Event::new("stock.low", json!({}));
    let mut runs = world.emit(event).await.runs;
    runs.sort_unstable();
    let claimed = world.store.claim_rows(world.claim_request(2_000).await).await;
    assert_eq!(claimed.len(), 1_005);
    let mut parks = tokio::task::JoinSet::new();
    for run in claimed {
        let store = world.store.clone();
        parks.spawn(async move {
            let on = Some(approval("all"));
            let (step, at) = (super::world::step("steps.0"), run.origin.created_at);
            let parked =
                surefoot_kernel_core::Fact::Parked { step, on, deadline: None, spins: 0, at };
            store.run_commit(surefoot_kernel_core::Commit::new(&run, &[parked])).await.unwrap();
        });
    }
    parks.join_all().await;
    let sent = world.signal(approved("all")).await;
    assert_eq!(sent.woken.len(), 1_000);
    assert!(sent.woken.is_sorted(), "the runs are in order of their ids");
    let mut woken = sent.woken;
    loop {
        let pass = world.store.run_recover(Scan { app: app(), limit: 3 }).await.unwrap();
        assert!(pass.woken.len() <= 3);
        woken.extend(pass.woken);
        if !pass.more {
            break;
        }
    }
    woken.sort_unstable();
    assert_eq!(woken, runs, "each run is woken once");
}

/// Covers behaviour 150.
pub async fn a_signal_for_a_canceled_run_changes_nothing<F: StoreFactory>(world: &World<F>) {
    let run = waiting(world, approval("7")).await;
    world.cancel(run).await;
    let before = world.all_of(run).await;
    assert!(world.signal(approved("7")).await.woken.is_empty());
    assert!(world.recover().await.woken.is_empty());
    assert_eq!(world.all_of(run).await, before);
}

/// Covers field fault 33.
pub async fn signals_that_no_run_has_used_are_listed_with_their_age<F: StoreFactory>(
    world: &World<F>,
) {
    let before = world.now().await;
    let wide = SendSignal { scope: None, ..send(Signal::new("approval", "8")) };
    world.store.signal_send(wide).await.unwrap();
    world.pass_secs(1).await;
    world.signal(approved("7")).await;
    world.pass_secs(60).await;
    let listed = world.store.signal_list(&app(), None, 10).await.unwrap();
    let shape: Vec<_> =
        listed.iter().map(|row| (row.scope.clone(), row.kind.as_str(), row.key.as_str())).collect();
    assert_eq!(shape, [(None, "approval", "8"), (Some(scope()), "approval", "7")]);
    assert_eq!((&listed[0].data, &listed[1].data), (&Value::Null, &json!({ "by": "ada" })));
    assert!(before <= listed[0].recorded_at && listed[0].recorded_at < listed[1].recorded_at);
    assert!(listed[1].now.since(listed[1].recorded_at).get() >= 60_000_000);
    assert_eq!(world.store.signal_list(&app(), None, 1).await.unwrap().len(), 1);
    assert!(world.store.signal_list(&App::from("bank"), None, 10).await.unwrap().is_empty());
}

/// A signal is spent when a run records an outcome on it, not when it wakes one.
pub async fn a_signal_is_spent_by_the_outcome_that_rests_on_it<F: StoreFactory>(world: &World<F>) {
    let run = waiting(world, approval("7")).await;
    world.signal(approved("7")).await;
    let unused = async || world.store.signal_list(&app(), None, 10).await.unwrap().len();
    assert_eq!(unused().await, 1, "it woke a run that has recorded nothing yet");
    let mut drive = world.claim_run(run).await;
    world.answer(&mut drive, succeeded(json!(1))).await;
    assert_eq!(unused().await, 0);
    // It stays a fact: a later wait on the same key is over at once.
    let mut later = world.running(flow()).await;
    world.park(&mut later, approval("7")).await;
    assert_eq!(wake_of(later.run()), Some(&Wake::Signal(json!({ "by": "ada" }))));
    assert!(!world.signal(approved("7")).await.new);
}

/// A run that was canceled, or given up, before it recorded anything on its signal has not used it.
pub async fn a_signal_is_not_spent_by_a_run_that_ends_without_an_outcome<F: StoreFactory>(
    world: &World<F>,
) {
    let unused = async || world.store.signal_list(&app(), None, 10).await.unwrap().len();
    let give_up = RowInput::Abandon { accept_unknown: false, unclaimable: true };
    for (key, input) in [("7", super::world::cancel()), ("8", give_up)] {
        let run = waiting(world, approval(key)).await;
        let before = unused().await;
        assert_eq!(world.signal(approved(key)).await.woken, [run]);
        let ended = world.decided(run, input).await;
        let ended = world.store.run_commit(ended).await.unwrap().run;
        assert!(ended.state().is_terminal(), "{}", ended.state());
        assert_eq!(unused().await, before + 1, "nothing rests on it");
    }
    // A failure is an outcome.
    let run = waiting(world, approval("9")).await;
    world.signal(approved("9")).await;
    let before = unused().await;
    let mut drive = world.claim_run(run).await;
    world.answer(&mut drive, super::world::failed(false)).await;
    assert_eq!(unused().await, before - 1);
}

/// Covers field fault 93.
pub async fn no_two_signals_collide_whatever_their_keys<F: StoreFactory>(world: &World<F>) {
    let long = "k".repeat(500);
    let keys =
        ["7", "07", "7 ", "a:b", "a\u{301}", "á", "😀", "\u{202e}rtl", "%", "_", "A", "a", &long];
    for kind in ["k", "k:a", "K"] {
        for key in keys {
            assert!(world.signal(Signal::new(kind, key)).await.new, "{kind} {key:?} was taken");
        }
    }
    assert!(world.signal(Signal::new("k:a", "b")).await.new, "`k` `a:b` is another signal");
}

/// Covers field fault 32.
pub async fn signals_that_nobody_waits_for_never_keep_a_run_from_its_end<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(flow()).await;
    let before = world.row(drive.run().id).await;
    for number in 0..200 {
        assert!(world.signal(approved(&number.to_string())).await.woken.is_empty());
    }
    assert_eq!(world.row(drive.run().id).await, before, "none of them touched the run");
    world.answer(&mut drive, succeeded(json!(1))).await;
    let revisions = world.row(drive.run().id).await.revision - before.revision;
    assert!(revisions <= 2, "only what the run itself wrote: {revisions}");
}

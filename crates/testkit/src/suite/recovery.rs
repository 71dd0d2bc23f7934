//! Recovery: bounded passes that wake what is due and finalise what nobody holds any more.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    App, Command, Dependency, Event, EventStore as _, Mode, OperatorStore as _, Phase, RunId,
    RunState, RunStore as _, Scan, StoreError, Todo, WorkDue,
};

use super::StoreFactory;
use super::world::{World, app, succeeded};
use crate::plans::{ambiguous, idempotent, plan, pure};

/// Covers behaviour 107.
pub async fn a_canceled_run_whose_worker_is_gone_is_finalised<F: StoreFactory>(world: &World<F>) {
    let mut gone = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    let run = gone.run().id;
    world.cancel(run).await;
    assert!(world.recover().await.finalised.is_empty(), "its worker may still live");
    world.pass_secs(121).await;
    assert!(world.rival_claim().await.is_empty(), "nobody executes it any more");
    assert_eq!(world.recover().await.finalised, [run]);
    let row = world.row(run).await;
    assert_eq!(row.phase, Phase::Canceled { message: Some("not needed any more".to_owned()) });
    assert!(row.generation > gone.run().generation);
    let late = gone.to_call(&world.store).await;
    assert!(matches!(late, Err(crate::DriveError::Store(StoreError::LeaseLost))), "{late:?}");
    assert_eq!(world.recover().await, surefoot_kernel_core::Recovered::default());
}

/// With an effect that nobody can explain, a canceled run is asked about first.
pub async fn an_open_effect_is_explained_before_a_cancel_is_final<F: StoreFactory>(
    world: &World<F>,
) {
    let mut gone = world.running(plan(vec![ambiguous("pay")])).await;
    let run = gone.run().id;
    assert!(matches!(gone.to_call(&world.store).await.unwrap(), Some(Command::Call(_))));
    world.cancel(run).await;
    world.pass_secs(121).await;
    world.recover().await;
    let row = world.row(run).await;
    assert!(row.cancel.is_some() && row.has_unsettled_effect(), "{row:?}");
    let mut asked = world.claim_run(run).await;
    let command = asked.to_call(&world.store).await.unwrap();
    let Some(Command::Reconcile(call)) = command else { unreachable!("{command:?}") };
    let output = json!({ "paid": true });
    let answer = surefoot_kernel_core::ReconcileAnswer::Succeeded { output };
    let input = crate::Drive::input(&call, crate::Reply::Reconciled(answer));
    asked.take(&world.store, input).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Canceled);
}

/// A lapsed run that nobody canceled is for a worker to claim: recovery leaves it alone.
pub async fn recovery_leaves_lapsed_runs_to_the_claim<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(plan(vec![pure("a")])).await;
    world.pass_secs(1_000).await;
    let before = world.all_of(drive.run().id).await;
    assert_eq!(world.recover().await, surefoot_kernel_core::Recovered::default());
    assert_eq!(world.all_of(drive.run().id).await, before);
    assert!(matches!(before.0.phase, Phase::Running { todo: Todo::Steps, .. }));
}

/// Covers field fault 40.
pub async fn a_pass_keeps_its_limit_and_says_that_there_is_more<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let run = world.start("flow").await;
        let mut drive = world.claim_run(run).await;
        let on = Dependency::on("approval", "7").deadline_in(Duration::from_secs(60));
        world.park(&mut drive, on).await;
        waiting.push(run);
        world.pass_secs(1).await;
    }
    let mut canceled = Vec::new();
    for _ in 0..5 {
        let run = world.start("flow").await;
        world.claim_run(run).await;
        world.cancel(run).await;
        canceled.push(run);
    }
    world.pass_secs(200).await;
    let (mut woken, mut finalised): (Vec<RunId>, Vec<RunId>) = (Vec::new(), Vec::new());
    let mut passes = 0;
    loop {
        let pass = world.store.run_recover(Scan { app: app(), limit: 2 }).await.unwrap();
        assert!(pass.woken.len() <= 2 && pass.finalised.len() <= 2);
        passes += 1;
        if passes == 1 {
            assert_eq!(pass.woken.iter().collect::<BTreeSet<_>>(), waiting[..2].iter().collect());
        }
        woken.extend(&pass.woken);
        finalised.extend(&pass.finalised);
        if !pass.more {
            break;
        }
    }
    assert!(passes <= 4, "a pass did less than it could: {passes}");
    woken.sort_unstable();
    waiting.sort_unstable();
    assert_eq!(woken, waiting);
    finalised.sort_unstable();
    canceled.sort_unstable();
    assert_eq!(finalised, canceled);
}

/// Two processes that recover at once wake each run once.
pub async fn two_passes_at_once_do_everything_once<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(world.start("flow").await);
    }
    world.claim().await;
    for run in &waiting {
        let mut drive = world.drive(*run).await;
        let on = Dependency::on("approval", "7").deadline_in(Duration::from_secs(60));
        world.park(&mut drive, on).await;
    }
    world.pass_secs(61).await;
    let mut passes = tokio::task::JoinSet::new();
    for process in 0..4 {
        let store = if process % 2 == 0 { world.store.clone() } else { world.other.clone() };
        passes.spawn(async move {
            store.run_recover(Scan { app: app(), limit: 100 }).await.unwrap().woken
        });
    }
    let mut woken: Vec<RunId> = passes.join_all().await.into_iter().flatten().collect();
    woken.extend(world.recover().await.woken);
    woken.sort_unstable();
    waiting.sort_unstable();
    assert_eq!(woken, waiting);
    for run in waiting {
        let row = world.row(run).await;
        assert_eq!((row.state(), row.generation), (RunState::Queued, 1));
    }
}

/// Covers behaviour 96.
pub async fn recovery_touches_only_runs_of_its_app<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a")])).await;
    let on = Dependency::on("approval", "7").deadline_in(Duration::from_secs(60));
    world.park(&mut drive, on).await;
    let run = world.start("flow").await;
    world.claim_run(run).await;
    world.cancel(run).await;
    world.pass_secs(200).await;
    let theirs = Scan { app: App::from("bank"), limit: 100 };
    let nothing = world.store.run_recover(theirs).await.unwrap();
    assert_eq!(nothing, surefoot_kernel_core::Recovered::default());
    let ours = world.recover().await;
    assert_eq!((ours.woken.len(), ours.finalised.len()), (1, 1));
}

/// The footprints that workers must offer are those of runs that have not ended.
///
/// Covers behaviour 142.
pub async fn only_living_runs_need_a_footprint<F: StoreFactory>(world: &World<F>) {
    let (one, two) = (plan(vec![idempotent("one")]), plan(vec![idempotent("two")]));
    world.publish("one", one.clone()).await;
    world.publish("two", two.clone()).await;
    let living = async || {
        let mut living = world.store.footprint_list(&app()).await.unwrap();
        living.sort_by_key(surefoot_kernel_core::plan::Footprint::hash);
        living
    };
    assert!(living().await.is_empty());
    let ended = world.start("one").await;
    world.start("two").await;
    world.start("two").await;
    let mut both = vec![one.footprint, two.footprint.clone()];
    both.sort_by_key(surefoot_kernel_core::plan::Footprint::hash);
    assert_eq!(living().await, both);
    let mut drive = world.claim_run(ended).await;
    drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1)))).await.unwrap();
    assert_eq!(living().await, [two.footprint]);
    assert!(world.store.footprint_list(&App::from("bank")).await.unwrap().is_empty());
}

/// The question of an idle worker says neither less nor more than what recovery, dispatch and a claim would find.
pub async fn what_is_due_is_said_in_one_answer<F: StoreFactory>(world: &World<F>) {
    let flow = plan(vec![idempotent("a")]);
    let footprint = flow.footprint.clone();
    let due = async || world.store.work_due(&app(), Mode::Execute).await.unwrap();
    let says = |recover, dispatch, claimable: bool| WorkDue {
        recover,
        dispatch,
        footprints: vec![footprint.clone()],
        claimable: claimable.then(|| footprint.clone()).into_iter().collect(),
    };
    world.publish("flow", flow.clone()).await;
    assert_eq!(due().await, WorkDue::default());
    let event = Event::start("flow", json!({})).deferred();
    world.emit(event).await;
    assert_eq!(due().await, WorkDue { dispatch: true, ..WorkDue::default() });
    world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(due().await, says(false, false, true));
    let run = world.claim().await.remove(0).id;
    assert_eq!(due().await, says(false, false, false));
    let on = Dependency::on("approval", "7").deadline_in(Duration::from_secs(60));
    world.park(&mut world.drive(run).await, on).await;
    assert_eq!(due().await, says(false, false, false));
    world.pass_secs(61).await;
    assert_eq!(due().await, says(true, false, false));
    assert_eq!(world.recover().await.woken, [run]);
    assert_eq!(due().await, says(false, false, true));
    world.claim_run(run).await;
    world.pass_secs(121).await;
    assert_eq!(due().await, says(false, false, true), "a lapsed lease is for a claim");
    world.cancel(run).await;
    assert_eq!(due().await, says(true, false, false), "a canceled one is for recovery");
    for (app, mode) in [(App::from("bank"), Mode::Execute), (app(), Mode::DryRun)] {
        let other = world.store.work_due(&app, mode).await.unwrap();
        assert!(!other.dispatch && other.claimable.is_empty(), "{other:?}");
    }
    world.recover().await;
    assert_eq!(due().await, WorkDue::default());
}

/// Health says since when work has been due, by footprint; a lapsed lease is work that is due.
pub async fn health_names_the_oldest_work_that_is_due<F: StoreFactory>(world: &World<F>) {
    assert_eq!(world.store.app_health(&app()).await.unwrap().oldest_due, None);
    let flow = plan(vec![pure("a")]);
    let run = world.run(flow.clone()).await;
    let created_at = world.row(run).await.origin.created_at;
    world.pass_secs(60).await;
    world.start("flow").await;
    let health = world.store.app_health(&app()).await.unwrap();
    assert_eq!(health.oldest_due, Some(created_at));
    assert_eq!(health.due_by_footprint, [(flow.footprint.hash(), 2, created_at)]);
    assert!(health.now.since(created_at).get() >= 60_000_000);
    world.claim().await;
    assert_eq!(world.store.app_health(&app()).await.unwrap().oldest_due, None);
    world.pass_secs(121).await;
    let lapsed = world.store.app_health(&app()).await.unwrap();
    assert_eq!(lapsed.due_by_footprint[0].1, 2, "a lapsed lease is due too");
}

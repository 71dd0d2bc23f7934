//! Runs counted over time.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use surefoot_kernel_core::{App, Micros, OperatorStore as _, RunCount, RunSpan, RunState, Scope};

use super::StoreFactory;
use super::world::{World, app, failed, scope};
use crate::plans::{idempotent, plan};

/// Every run of the span is counted in its slice, by where it stands now; what is outside, of another app, or of another
/// scope is not.
pub async fn a_timeline_counts_every_run_of_its_span_once<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", plan(vec![idempotent("a")])).await;
    let (minute, mut waited) = (Micros::from_secs(60), Vec::new());
    for passed in [0, 30] {
        for _ in 0..3 {
            let run = world.start("flow").await;
            waited.push(world.row(run).await.origin.created_at);
        }
        world.pass_secs(passed + 1).await;
    }
    let first = waited[0];
    let mut drive = world.claim_run(world.start("flow").await).await;
    world.answer(&mut drive, failed(false)).await;
    let span = RunSpan { app: app(), scope: None, from: first, slice: minute, slices: 10 };
    let counts = world.store.run_timeline(span.clone()).await.unwrap();
    let total =
        |state| -> u64 { counts.iter().filter(|it| it.state == state).map(|it| it.count).sum() };
    assert_eq!((total(RunState::Running), total(RunState::Failed)), (6, 1), "{counts:?}");
    assert_eq!(counts.iter().map(|it| it.count).sum::<u64>(), 7);
    let started = world.row(drive.run().id).await.started_at.unwrap();
    let worst = counts.iter().filter_map(|it| it.worst_lag).max();
    assert_eq!(worst, Some(started.since(first)), "the first one waited longest: {counts:?}");

    let later = RunSpan { from: waited[3], slice: Micros::new(1), slices: 1, ..span.clone() };
    let in_it = waited.iter().filter(|at| **at == waited[3]).count() as u64;
    let one = world.store.run_timeline(later).await.unwrap();
    let expected = [(0, RunState::Running, in_it)];
    let of = |it: &RunCount| (it.slice, it.state, it.count);
    assert_eq!(one.iter().map(of).collect::<Vec<_>>(), expected);

    let nothing = async |span: RunSpan| world.store.run_timeline(span).await.unwrap().is_empty();
    assert!(nothing(RunSpan { app: App::from("bank"), ..span.clone() }).await);
    assert!(nothing(RunSpan { scope: Some(Scope::from("elsewhere")), ..span.clone() }).await);
    assert!(!nothing(RunSpan { scope: Some(scope()), ..span.clone() }).await);
    assert!(nothing(RunSpan { slices: 0, ..span }).await);
}

//! Schedules fire: each slot once, whoever finds it due, and none is lost over a restart.

use std::time::Duration;

use surefoot_kernel_core::*;
use surefoot_worker::{Misfire, Tick, Worker};

use crate::actions::{Actions, n};
use crate::plans::{act, plan, scheduled};
use crate::store::{Op, Verdict, unavailable};
use crate::world::{APP, World, until};

pub(crate) async fn publish(world: &World, cron: &str, step: i64) {
    let plan = plan(world.module.manifest(), vec![act("compute", n(step))]);
    world.publish_plan(APP, "report", scheduled(plan, "nightly", cron)).await;
}

pub(crate) async fn pass(minutes: u64) {
    tokio::time::advance(Duration::from_secs(60 * minutes)).await;
}

pub(crate) async fn tick(worker: &Worker) {
    worker.tick(Tick::max_runs(10)).await.unwrap();
}

/// The slots that fired, oldest first, with the number of runs of each.
pub(crate) async fn fired(world: &World) -> Vec<(String, usize)> {
    let app = Some(APP.into());
    let filter =
        EventFilter { app, scope: None, kind: None, status: None, limit: 100, cursor: None };
    let events = world.store.inner.event_list(filter).await.unwrap().rows;
    let mut slots: Vec<(String, usize)> = events
        .into_iter()
        .map(|event| (event.occurred_at.to_string()[11..16].to_owned(), event.runs.len()))
        .collect();
    slots.sort();
    slots
}

pub(crate) fn slots(times: &[&str]) -> Vec<(String, usize)> {
    times.iter().map(|time| ((*time).to_owned(), 1)).collect()
}

/// Covers behaviour 193.
#[tokio::test(start_paused = true)]
async fn a_slot_is_one_event_whoever_finds_it_due_and_however_often() {
    let world = World::new(Actions::default());
    publish(&world, "30 * * * *", 1).await;
    let (one, two) = (world.worker(), world.other_worker());
    tick(&one).await;
    pass(29).await;
    tick(&one).await;
    assert_eq!(fired(&world).await, []);
    pass(2).await;
    let (first, second) = tokio::join!(one.tick(Tick::max_runs(10)), two.tick(Tick::max_runs(10)));
    first.unwrap();
    second.unwrap();
    tick(&one).await;
    tick(&world.other_worker()).await;
    assert_eq!(fired(&world).await, slots(&["00:30"]));
}

#[tokio::test(start_paused = true)]
async fn slots_that_passed_without_a_worker_are_caught_up_within_the_window() {
    for (misfire, expected) in
        [(Misfire::Latest, &["03:00"][..]), (Misfire::All, &["02:20", "02:40", "03:00"][..])]
    {
        let world = World::new(Actions::default());
        publish(&world, "*/20 * * * *", 1).await;
        pass(3 * 60 + 5).await;
        let window = Duration::from_secs(3_600);
        let worker = world.builder().catch_up(window, misfire).build().unwrap();
        tick(&worker).await;
        assert_eq!(fired(&world).await, slots(expected), "{misfire:?}");
    }
}

/// More slots than one pass fires are fired by the next ones, none left out.
#[tokio::test(start_paused = true)]
async fn every_slot_of_a_long_gap_is_caught_up() {
    let world = World::new(Actions::default());
    publish(&world, "* * * * *", 1).await;
    pass(1_100).await;
    let week = Duration::from_secs(7 * 86_400);
    let worker = world.builder().catch_up(week, Misfire::All).build().unwrap();
    tick(&worker).await;
    assert_eq!(count_fired(&world).await, 1_000, "one pass is bounded");
    tick(&worker).await;
    assert_eq!(count_fired(&world).await, 1_100);
    tick(&worker).await;
    assert_eq!(count_fired(&world).await, 1_100);
}

/// What a pass leaves over is not left for the next slot.
#[tokio::test(start_paused = true)]
async fn a_started_worker_catches_a_long_gap_up_at_once() {
    let world = World::new(Actions::default());
    publish(&world, "*/2 * * * *", 1).await;
    pass(2_201).await;
    let week = Duration::from_secs(7 * 86_400);
    let worker = world.builder().catch_up(week, Misfire::All).build().unwrap();
    let running = worker.start().await.unwrap();
    // Ten seconds: less than to the next slot, or the next look.
    let mut looks = 0..2_000;
    while count_fired(&world).await < 1_100 && looks.next().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(count_fired(&world).await, 1_100);
    running.stop(Duration::from_secs(1)).await;
}

async fn count_fired(world: &World) -> u64 {
    let health = world.store.inner.app_health(&APP.into()).await.unwrap();
    health.runs.iter().map(|(_, runs)| runs).sum()
}

/// Covers behaviour 192.
#[tokio::test(start_paused = true)]
async fn a_new_version_with_the_same_schedule_loses_and_repeats_nothing() {
    let world = World::new(Actions::default());
    publish(&world, "30 * * * *", 1).await;
    pass(31).await;
    let worker = world.worker();
    tick(&worker).await;
    publish(&world, "30 * * * *", 2).await;
    tick(&worker).await;
    tick(&world.other_worker()).await;
    assert_eq!(fired(&world).await, slots(&["00:30"]));
    // Nobody runs when the slot passes, and the version is replaced before anybody does again.
    drop(worker);
    pass(65).await;
    publish(&world, "30 * * * *", 3).await;
    tick(&world.other_worker()).await;
    assert_eq!(fired(&world).await, slots(&["00:30", "01:30"]));
    // Other times are another schedule: what passed before it was there is not its own.
    publish(&world, "10 * * * *", 3).await;
    tick(&world.other_worker()).await;
    assert_eq!(fired(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_published_after_a_slot_does_not_fire_it() {
    let world = World::new(Actions::default());
    pass(45).await;
    tick(&world.worker()).await;
    publish(&world, "30 * * * *", 1).await;
    tick(&world.worker()).await;
    assert_eq!(fired(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_schedule_fires_neither_then_nor_later() {
    let world = World::new(Actions::default());
    publish(&world, "30 * * * *", 1).await;
    world.store.disable_schedules(true);
    let worker = world.worker();
    pass(31).await;
    tick(&worker).await;
    world.store.disable_schedules(false);
    tick(&worker).await;
    assert_eq!(fired(&world).await, []);
    pass(60).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["01:30"]));
}

/// Covers field fault 53.
#[tokio::test(start_paused = true)]
async fn a_slot_that_cannot_be_recorded_now_is_recorded_later() {
    let world = World::new(Actions::default());
    publish(&world, "30 * * * *", 1).await;
    let worker = world.worker();
    pass(31).await;
    world.store.on(|op| match op {
        Op::Emit => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    assert!(worker.tick(Tick::max_runs(1)).await.is_err());
    assert_eq!(fired(&world).await, []);
    world.store.heal();
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["00:30"]));
}

/// Covers field faults 59, 65.
#[tokio::test(start_paused = true)]
async fn a_worker_that_restarts_more_often_than_a_schedule_fires_it_all_the_same() {
    let world = World::new(Actions::default());
    publish(&world, "0 5 * * *", 1).await;
    for _ in 0..60 {
        pass(10).await;
        tick(&world.other_worker()).await;
    }
    assert_eq!(fired(&world).await, slots(&["05:00"]));
    // The store's clock is set back: the slot has fired already.
    let now = world.store.inner.clock().now();
    world.store.inner.clock().set(Timestamp::from_micros(now.micros() - 7_200_000_000));
    tick(&world.other_worker()).await;
    assert_eq!(fired(&world).await, slots(&["05:00"]));
}

#[tokio::test(start_paused = true)]
async fn a_started_worker_fires_on_time_and_sees_what_is_published_meanwhile() {
    let world = World::new(Actions::default());
    let running = world.worker().start().await.unwrap();
    publish(&world, "*/5 * * * *", 1).await;
    until("the slot fires", || world.log().count("compute.run") == 1).await;
    assert_eq!(fired(&world).await, slots(&["00:05"]));
    assert!(running.health().loops.iter().any(|one| one.name == "schedules"));
    running.stop(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_catch_up_window_is_bounded() {
    let world = World::new(Actions::default());
    let long = Duration::from_secs(8 * 86_400);
    let error = world.builder().catch_up(long, Misfire::All).build().unwrap_err();
    assert!(error.to_string().contains("at most 7 days"), "{error}");
}

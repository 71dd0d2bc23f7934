//! Schedules of workflows that a scheduler on a coordination server fires: the same slots, and a person's word.

use std::sync::Arc;
use std::time::Duration;

use surefoot_sync_core::{Coordinator as _, Key, ResourceId, ScheduleStore, Schedules, Span};
use surefoot_testkit::MemoryBroker;
use surefoot_worker::{Misfire, Tick, Worker};

use crate::actions::{Actions, n};
use crate::plans::{act, plan};
use crate::schedules::{fired, pass, publish, slots, tick};
use crate::store::{Op, Verdict, unavailable};
use crate::world::{APP, World, until};

/// A server, with the set of schedules of the app.
struct Server(MemoryBroker);

impl Server {
    async fn set(&self) -> Arc<dyn ScheduleStore> {
        self.0.handle().schedules(ResourceId::new("workflows").unwrap()).await.unwrap()
    }

    async fn schedules(&self) -> Schedules {
        Schedules::new(self.set().await)
    }

    async fn only(&self) -> Key {
        let all = self.schedules().await.list().await.unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].spec.id.clone()
    }

    async fn worker(&self, world: &World) -> Worker {
        let kernel = world.other();
        kernel.worker(world.module.clone()).schedules(self.set().await).build().unwrap()
    }
}

fn server() -> Server {
    Server(MemoryBroker::default())
}

/// Covers behaviour 193.
/// Covers field faults 59, 60, 61.
#[tokio::test(start_paused = true)]
async fn a_slot_is_one_event_whether_a_server_fires_it_or_a_worker_or_both() {
    let (server, world) = (server(), World::new(Actions::default()));
    publish(&world, "*/20 * * * *", 1).await;
    let (one, two) = (server.worker(&world).await, server.worker(&world).await);
    let alone = world.worker();
    tick(&one).await;
    let id = server.only().await;
    assert!(id.as_str().starts_with("report/nightly-"), "{id}");
    pass(21).await;
    let runs = || Tick::max_runs(10);
    let (a, b, c) = tokio::join!(one.tick(runs()), two.tick(runs()), alone.tick(runs()));
    for ticked in [a, b, c] {
        ticked.unwrap();
    }
    assert_eq!(fired(&world).await, slots(&["00:20"]));
    // Each of them alone, and a new one, over a loss of all that the server knew.
    for (worker, time) in [(&one, "00:40"), (&alone, "01:00"), (&two, "01:20")] {
        pass(20).await;
        tick(worker).await;
        assert_eq!(fired(&world).await.last().unwrap().0, time);
        let schedules = server.schedules().await;
        for record in schedules.list().await.unwrap() {
            assert!(schedules.delete(&record.spec.id).await.unwrap());
        }
    }
    pass(20).await;
    tick(&server.worker(&world).await).await;
    tick(&one).await;
    let all = ["00:20", "00:40", "01:00", "01:20", "01:40"];
    assert_eq!(fired(&world).await, slots(&all));
}

#[tokio::test(start_paused = true)]
async fn slots_that_passed_without_a_worker_or_a_record_are_caught_up_within_the_window() {
    for (misfire, expected) in
        [(Misfire::Latest, &["03:00"][..]), (Misfire::All, &["02:20", "02:40", "03:00"][..])]
    {
        for known in [false, true] {
            let (server, world) = (server(), World::new(Actions::default()));
            publish(&world, "*/20 * * * *", 1).await;
            let window = Duration::from_secs(3_600);
            let builder = world.builder().catch_up(window, misfire);
            let worker = builder.schedules(server.set().await).build().unwrap();
            if known {
                tick(&worker).await;
            }
            pass(3 * 60 + 5).await;
            tick(&worker).await;
            assert_eq!(fired(&world).await, slots(expected), "{misfire:?} {known}");
        }
    }
}

/// Covers behaviours 192, 209.
#[tokio::test(start_paused = true)]
async fn what_is_published_changed_or_gone_is_so_on_the_server() {
    let (server, world) = (server(), World::new(Actions::default()));
    publish(&world, "30 * * * *", 1).await;
    let worker = server.worker(&world).await;
    tick(&worker).await;
    pass(31).await;
    tick(&worker).await;
    let first = server.schedules().await.get(&server.only().await).await.unwrap();
    // The same schedule in a new version is the same record.
    publish(&world, "30 * * * *", 2).await;
    tick(&worker).await;
    assert_eq!(server.schedules().await.get(&first.spec.id).await.unwrap(), first);
    // At other times it has other slots, and the old ones are not its own.
    pass(60).await;
    publish(&world, "10 * * * *", 3).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["00:30"]));
    pass(60).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["00:30", "02:10"]));
    // Without it, nothing is left of it; what others keep in the set stays.
    let schedules = server.schedules().await;
    let own = surefoot_sync_core::ScheduleSpec::new(Key::new("own").unwrap(), "0 5 * * *", None);
    schedules.create(own.unwrap()).await.unwrap();
    let plain = plan(world.module.manifest(), vec![act("compute", n(4))]);
    world.publish_plan(APP, "report", plain).await;
    tick(&worker).await;
    let left = schedules.list().await.unwrap();
    assert_eq!(left.iter().map(|it| it.spec.id.as_str()).collect::<Vec<_>>(), ["own"]);
}

/// Covers field fault 51.
#[tokio::test(start_paused = true)]
async fn a_paused_or_disabled_schedule_fires_neither_then_nor_later_and_then_fires_again() {
    let (server, world) = (server(), World::new(Actions::default()));
    publish(&world, "30 * * * *", 1).await;
    let worker = server.worker(&world).await;
    tick(&worker).await;
    let (schedules, id) = (server.schedules().await, server.only().await);
    assert!(schedules.pause(&id, "ann", "the bank is closed").await.unwrap());
    assert!(!schedules.pause(&id, "bob", "me too").await.unwrap());
    pass(31).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, []);
    assert!(schedules.resume(&id).await.unwrap());
    tick(&worker).await;
    assert_eq!(fired(&world).await, []);
    pass(60).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["01:30"]));
    world.store.disable_schedules(true);
    let worker = world.builder().schedules(server.set().await).build().unwrap();
    pass(60).await;
    tick(&worker).await;
    world.store.disable_schedules(false);
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["01:30"]));
    pass(60).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["01:30", "03:30"]));
}

/// Covers field fault 54.
#[tokio::test(start_paused = true)]
async fn a_person_asks_for_a_run_and_for_what_passed_and_gets_each_once() {
    let (server, world) = (server(), World::new(Actions::default()));
    publish(&world, "30 * * * *", 1).await;
    let worker = server.worker(&world).await;
    tick(&worker).await;
    let (schedules, id) = (server.schedules().await, server.only().await);
    for _ in 0..3 {
        schedules.run_now(&id, &Key::new("ann 1").unwrap()).await.unwrap();
        tick(&worker).await;
    }
    assert_eq!(fired(&world).await, slots(&["00:00"]));
    schedules.pause(&id, "ann", "a test").await.unwrap();
    pass(3 * 60).await;
    schedules.resume(&id).await.unwrap();
    let day = |hour: u32| format!("2026-01-01T{hour:02}:00:00Z").parse().unwrap();
    let span = Span { after: day(1), until: day(3) };
    for _ in 0..3 {
        schedules.backfill(&id, span).await.unwrap();
        tick(&worker).await;
    }
    assert_eq!(fired(&world).await, slots(&["00:00", "01:30", "02:30"]));
    pass(31).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["00:00", "01:30", "02:30", "03:30"]));
}

/// Covers field fault 53.
#[tokio::test(start_paused = true)]
async fn a_slot_that_cannot_be_recorded_now_is_recorded_when_the_store_is_back() {
    let (server, world) = (server(), World::new(Actions::default()));
    publish(&world, "30 * * * *", 1).await;
    let worker = world.builder().schedules(server.set().await).build().unwrap();
    tick(&worker).await;
    pass(31).await;
    world.store.on(|op| match op {
        Op::Emit => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    tick(&worker).await;
    assert_eq!(fired(&world).await, []);
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(60)).await;
        tick(&worker).await;
    }
    world.store.heal();
    tokio::time::advance(Duration::from_secs(60)).await;
    tick(&worker).await;
    assert_eq!(fired(&world).await, slots(&["00:30"]));
}

#[tokio::test(start_paused = true)]
async fn a_started_worker_fires_on_time_and_sees_what_is_published_meanwhile() {
    let (server, world) = (server(), World::new(Actions::default()));
    let running = server.worker(&world).await.start().await.unwrap();
    publish(&world, "*/5 * * * *", 1).await;
    until("the slot fires", || world.log().count("compute.run") == 1).await;
    assert_eq!(fired(&world).await, slots(&["00:05"]));
    running.stop(Duration::from_secs(1)).await;
}

//! What people do who look after resources that others declared.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;

use surefoot_kernel_core::{Micros, Timestamp};
use surefoot_sync_core::{
    By, Coordinator as _, Desk, EphemeralSettings, GroupSettings, GroupStart, Jobs, MutexSettings,
    QueueSettings, Resource, ResourceId, ScheduleSpec, Schedules, SyncError, TopicSettings,
    Verdict, WorkId,
};
use surefoot_worker::coordinate::{ProcessOptions, Scheduler};

use super::{CoordinationFactory, eventually, id, key, one, quick, rest, submit};

async fn desk<F: CoordinationFactory>(place: &F) -> Desk {
    Desk::new(Arc::new(place.handle().await))
}

fn ann() -> By {
    By { actor: "ann".to_owned(), reason: "the bank said so".to_owned() }
}

fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

async fn jobs<F: CoordinationFactory>(place: &F) -> Arc<dyn Jobs> {
    place.handle().await.jobs(quick("mail")).await.unwrap()
}

/// Whoever declared it, and whatever its settings are.
pub async fn what_is_there_is_listed_with_how_much_there_is<F: CoordinationFactory>(place: &F) {
    let (handle, desk) = (place.handle().await, desk(place).await);
    assert_eq!(desk.queues().await.unwrap(), []);
    // Whoever only looks creates nothing.
    assert_eq!(desk.notes(10).await.unwrap(), []);
    let there = surefoot_sync_core::Inventory::resources(&handle).await.unwrap();
    assert_eq!(there, []);
    let jobs = handle.jobs(quick("mail")).await.unwrap();
    let ordered =
        QueueSettings::ordered(quick("a.b/c"), surefoot_sync_core::Partitions::new(3).unwrap());
    handle.queue(ordered).await.unwrap();
    handle.queue(QueueSettings::new(quick("orders"))).await.unwrap();
    handle.mutex(MutexSettings::new(id("door"))).await.unwrap();
    handle.schedules(id("house")).await.unwrap();
    handle.ephemeral(EphemeralSettings::new(id("here"))).await.unwrap();
    let topic = TopicSettings { stored_max_bytes: 1 << 24, ..TopicSettings::new(id("news")) };
    let group = GroupSettings::new(key("readers"), GroupStart::All);
    handle.group(topic, group).await.unwrap();
    submit(&jobs, "a").await;
    submit(&jobs, "b").await;
    let held = one(&*jobs).await;
    let queues = desk.queues().await.unwrap();
    let shown: Vec<_> =
        queues.iter().map(|it| (it.resource.as_str(), it.waiting, it.held, it.dead)).collect();
    let expected = [
        ("jobs:mail", 1, 1, 0),
        ("queue:a.b/c", 0, 0, 0),
        ("queue:orders", 0, 0, 0),
        ("group:news/readers", 0, 0, 0),
    ];
    assert_eq!(shown, expected);
    assert!(queues[0].oldest.is_some() && queues[0].oldest_age_ms.is_some_and(|age| age >= 0));
    assert!(queues[1].oldest.is_none() && queues[0].bytes > 0);
    // It is the same work, with the same settings.
    let place = place.handle().await;
    let work = surefoot_sync_core::Inventory::work(&place, &resource("jobs:mail")).await.unwrap();
    assert_eq!(work.settings(), &quick("mail"));
    work.settle(&held, Verdict::Done).await.unwrap();
}

/// Over all processes.
pub async fn a_paused_resource_hands_out_nothing_and_then_goes_on<F: CoordinationFactory>(
    place: &F,
) {
    let (jobs, desk, mail) = (jobs(place).await, desk(place).await, resource("jobs:mail"));
    submit(&jobs, "a").await;
    submit(&jobs, "b").await;
    let held = one(&*jobs).await;
    assert!(desk.pause_queue(&mail, &ann()).await.unwrap().changed);
    assert!(!desk.pause_queue(&mail, &ann()).await.unwrap().changed);
    assert!(desk.queues().await.unwrap()[0].paused);
    jobs.settle(&held, Verdict::Done).await.unwrap();
    submit(&jobs, "c").await;
    assert_eq!(rest(&*jobs, 5).await, []);
    // A declaration is no resumption.
    let again = self::jobs(place).await;
    assert_eq!(rest(&*again, 5).await, []);
    assert!(desk.resume_queue(&mail, &ann()).await.unwrap().changed);
    assert!(!desk.resume_queue(&mail, &ann()).await.unwrap().changed);
    for _ in 0..2 {
        jobs.settle(&one(&*jobs).await, Verdict::Done).await.unwrap();
    }
    let notes = desk.notes(10).await.unwrap();
    let verbs: Vec<_> = notes.iter().map(|note| note.verb.as_str()).collect();
    assert_eq!(verbs, ["resume", "pause"]);
    assert_eq!((notes[0].actor.as_str(), notes[0].reason.as_str()), ("ann", "the bank said so"));
}

/// Covers behaviour 196.
pub async fn a_dead_letter_is_shown_sent_again_and_removed<F: CoordinationFactory>(place: &F) {
    let (jobs, desk, mail) = (jobs(place).await, desk(place).await, resource("jobs:mail"));
    for name in ["a", "b", "c"] {
        submit(&jobs, name).await;
        let reason = format!("no paper for {name}");
        jobs.settle(&one(&*jobs).await, Verdict::DeadLetter { reason }).await.unwrap();
    }
    let dead = desk.dead(None, 10).await.unwrap();
    assert_eq!(dead, desk.dead(Some(&mail), 10).await.unwrap());
    assert_eq!(desk.dead(None, 2).await.unwrap(), dead[..2]);
    let reasons: Vec<_> = dead.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["no paper for a", "no paper for b", "no paper for c"]);
    let ids: Vec<WorkId> = dead.iter().map(|it| WorkId::new(&it.id)).collect();
    assert_eq!(desk.dead_show(&mail, &ids[1]).await.unwrap(), dead[1]);
    desk.redrive((&mail, &ids[1]), None, &ann()).await.unwrap();
    let delivery = one(&*jobs).await;
    assert_eq!((&delivery.key, &delivery.data), (&Some(key("b")), &dead[1].data));
    jobs.settle(&delivery, Verdict::Done).await.unwrap();
    desk.discard((&mail, &ids[0]), &ann()).await.unwrap();
    let error = desk.discard((&mail, &ids[0]), &ann()).await.unwrap_err();
    assert!(matches!(error, SyncError::NotFound { .. }), "{error}");
    assert_eq!(desk.dead(None, 10).await.unwrap(), dead[2..]);
    assert_eq!(rest(&*jobs, 5).await, []);
    let notes = desk.notes(1).await.unwrap();
    assert_eq!(
        (notes[0].verb.as_str(), notes[0].subject.as_deref()),
        ("discard", Some(ids[0].as_str()))
    );
}

/// Covers field faults 51, 54.
pub async fn a_schedule_is_paused_run_and_backfilled<F: CoordinationFactory>(place: &F) {
    let (handle, desk) = (place.handle().await, desk(place).await);
    let house = id("house");
    let schedules = Schedules::new(handle.schedules(house.clone()).await.unwrap());
    let nightly = key("nightly");
    let spec = ScheduleSpec::new(nightly.clone(), "0 3 * * *", Some("Europe/Berlin")).unwrap();
    schedules.create(spec).await.unwrap();
    assert_eq!(desk.schedule_set(None).await.unwrap(), house);
    let shown = desk.schedule(&house, &nightly, 5).await.unwrap();
    assert_eq!((shown.cron.as_str(), shown.timezone.as_str()), ("0 3 * * *", "Europe/Berlin"));
    assert_eq!((shown.next.len(), shown.runs, &shown.paused), (5, 0, &None));
    assert!(shown.next.windows(2).all(|pair| pair[0] < pair[1]));

    assert!(desk.pause_schedule(&house, &nightly, &ann()).await.unwrap().changed);
    assert!(!desk.pause_schedule(&house, &nightly, &ann()).await.unwrap().changed);
    let paused = desk.schedules(&house).await.unwrap()[0].paused.clone().unwrap();
    assert_eq!((paused.by.as_str(), paused.reason.as_str()), ("ann", "the bank said so"));
    let request = key("ann 1");
    assert!(desk.run_schedule(&house, (&nightly, &request), &ann()).await.unwrap().changed);
    assert!(!desk.run_schedule(&house, (&nightly, &request), &ann()).await.unwrap().changed);
    let now = schedules.store().now();
    let week = Micros::from_secs(7 * 86_400).get();
    let from = Timestamp::from_micros(now.micros() - week);
    let backfill = (&nightly, from, now);
    assert!(desk.backfill_schedule(&house, backfill, &ann()).await.unwrap().changed);
    assert!(!desk.backfill_schedule(&house, backfill, &ann()).await.unwrap().changed);
    let error = desk.backfill_schedule(&house, (&nightly, now, from), &ann()).await.unwrap_err();
    assert!(matches!(error, SyncError::InvalidOption { .. }), "{error}");
    let runs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ran = runs.clone();
    let scheduler = Scheduler::new(schedules.store().clone());
    let mut worker = scheduler.process(ProcessOptions::new(2).unwrap(), move |cx| {
        ran.lock().unwrap().push(cx.occasion);
        async { Ok(()) }
    });
    eventually("the run and a week", async || (runs.lock().unwrap().len() == 8).then_some(()))
        .await;
    assert!(desk.resume_schedule(&house, &nightly, &ann()).await.unwrap().changed);
    worker.drain().await;
    assert_eq!(runs.lock().unwrap().len(), 8);
    let shown = desk.schedule(&house, &nightly, 0).await.unwrap();
    assert_eq!((shown.runs, shown.paused), (8, None));
    // What changed nothing is not written down.
    assert!(!desk.resume_schedule(&house, &nightly, &ann()).await.unwrap().changed);
    let notes = desk.notes(10).await.unwrap();
    let verbs: Vec<_> = notes.iter().map(|note| note.verb.as_str()).collect();
    assert_eq!(verbs, ["resume", "backfill", "run", "pause"]);
}

/// A name that is wrong says what would be right.
pub async fn what_is_not_there_is_refused_and_nothing_is_written_down<F: CoordinationFactory>(
    place: &F,
) {
    let (handle, desk) = (place.handle().await, desk(place).await);
    jobs(place).await;
    let error = desk.schedule_set(None).await.unwrap_err();
    assert!(matches!(error, SyncError::NotFound { .. }), "{error}");
    for set in ["one", "two"] {
        handle.schedules(id(set)).await.unwrap();
    }
    let error = desk.schedule_set(None).await.unwrap_err().to_string();
    assert!(error.contains("one") && error.contains("two"), "{error}");
    let (none, by): (ResourceId, By) = (id("none"), ann());
    for missing in ["jobs:none", "queue:mail", "group:a/b"] {
        let error = desk.pause_queue(&resource(missing), &by).await.unwrap_err();
        assert!(matches!(error, SyncError::NotFound { .. }), "{error}");
    }
    let error = desk.pause_queue(&resource("schedules:one"), &by).await.unwrap_err();
    assert!(matches!(error, SyncError::InvalidOption { .. }), "{error}");
    let letter = (&resource("jobs:mail"), &WorkId::new("x"));
    for error in [
        desk.redrive(letter, None, &by).await.unwrap_err(),
        desk.discard(letter, &by).await.unwrap_err(),
        desk.schedules(&none).await.unwrap_err(),
        desk.schedule_set(Some(none.clone())).await.unwrap_err(),
        desk.pause_schedule(&id("one"), &key("x"), &by).await.unwrap_err(),
        desk.run_schedule(&id("one"), (&key("x"), &key("r")), &by).await.unwrap_err(),
    ] {
        assert!(matches!(error, SyncError::NotFound { .. }), "{error}");
    }
    assert_eq!(desk.notes(10).await.unwrap(), []);
}

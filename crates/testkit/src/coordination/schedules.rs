//! Schedules: one record each, and one run at a time, on any number of workers.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use surefoot_kernel_core::{Micros, Timestamp};
use surefoot_sync_core::{
    Backoff, Coordinator as _, Key, Misfire, Occasion, Outcome, Recorded, ScheduleCreated,
    ScheduleRecord, ScheduleSpec, ScheduleStore,
};
use surefoot_worker::coordinate::{ProcessOptions, ScheduleCx, Scheduler, WorkStop};

use super::{CoordinationFactory, eventually, id, key};

async fn store<F: CoordinationFactory>(place: &F) -> Arc<dyn ScheduleStore> {
    place.handle().await.schedules(id("house")).await.unwrap()
}

async fn scheduler<F: CoordinationFactory>(place: &F) -> Scheduler {
    let waits = Backoff::new(vec![Duration::from_millis(50)]);
    Scheduler::new(store(place).await).backoff(waits)
}

fn spec(name: &str) -> ScheduleSpec {
    ScheduleSpec::new(key(name), "*/10 * * * *", Some("Europe/Berlin")).unwrap()
}

/// As if nobody had been there for so long.
async fn age(store: &Arc<dyn ScheduleStore>, id: &Key, span: Micros) {
    eventually("an aged schedule", async || {
        let Recorded { mut record, revision } = store.schedule_load(id).await.unwrap().unwrap();
        record.dealt_until =
            Timestamp::from_micros(record.dealt_until.micros().saturating_sub(span.get()));
        store.schedule_save(&record, revision).await.unwrap()
    })
    .await;
}

fn run_by(
    scheduler: &Scheduler,
    seen: &Arc<StdMutex<Vec<ScheduleCx>>>,
) -> surefoot_worker::coordinate::Scheduling {
    let seen = seen.clone();
    scheduler.process(ProcessOptions::new(4).unwrap(), move |cx| {
        seen.lock().unwrap().push(cx);
        async { Ok(()) }
    })
}

/// Of two who write at once, one is told that it came too late.
pub async fn a_record_is_written_only_over_the_state_that_was_read<F: CoordinationFactory>(
    place: &F,
) {
    let (one, two) = (store(place).await, store(place).await);
    let record = ScheduleRecord::new(spec("a"), one.now());
    let first = one.schedule_save(&record, 0).await.unwrap().unwrap();
    assert_eq!(two.schedule_save(&record, 0).await.unwrap(), None, "it is there");
    let read = two.schedule_load(&key("a")).await.unwrap().unwrap();
    assert_eq!(read, Recorded { record: record.clone(), revision: first });
    let second = two.schedule_save(&record, first).await.unwrap().unwrap();
    assert_eq!(one.schedule_save(&record, first).await.unwrap(), None);
    assert!(!one.schedule_delete(&key("a"), first).await.unwrap());
    assert!(one.schedule_delete(&key("a"), second).await.unwrap());
    assert_eq!(two.schedule_load(&key("a")).await.unwrap(), None);
    assert_eq!(two.schedule_save(&record, second).await.unwrap(), None, "it is gone");
}

/// Whatever their names are.
pub async fn all_schedules_are_listed_in_order<F: CoordinationFactory>(place: &F) {
    let scheduler = scheduler(place).await;
    for name in super::jobs::ODD_KEYS {
        assert_eq!(scheduler.create(spec(name)).await.unwrap(), ScheduleCreated::New);
        assert_eq!(scheduler.create(spec(name)).await.unwrap(), ScheduleCreated::Unchanged);
    }
    let changed = spec("*").misfire(Misfire::All);
    assert_eq!(scheduler.create(changed).await.unwrap(), ScheduleCreated::Changed);
    let mut names: Vec<_> = super::jobs::ODD_KEYS.iter().map(|name| key(name)).collect();
    names.sort();
    let listed = scheduler.list().await.unwrap();
    assert_eq!(listed.iter().map(|record| record.spec.id.clone()).collect::<Vec<_>>(), names);
    for name in super::jobs::ODD_KEYS {
        assert!(scheduler.delete(&key(name)).await.unwrap());
        assert!(!scheduler.delete(&key(name)).await.unwrap());
    }
    assert_eq!(scheduler.list().await.unwrap(), []);
}

/// Each as it was written last.
pub async fn hundreds_of_schedules_are_listed_as_they_are<F: CoordinationFactory>(place: &F) {
    let store = store(place).await;
    let mut revisions = Vec::new();
    for number in 0..300 {
        let record = ScheduleRecord::new(spec(&format!("s{number:03}")), store.now());
        revisions.push(store.schedule_save(&record, 0).await.unwrap().unwrap());
    }
    for number in (0..300).step_by(7) {
        let record =
            store.schedule_load(&key(&format!("s{number:03}"))).await.unwrap().unwrap().record;
        let saved = store.schedule_save(&record, revisions[number]).await.unwrap();
        revisions[number] = saved.unwrap();
    }
    let listed = store.schedule_list().await.unwrap();
    assert_eq!(listed.iter().map(|it| it.revision).collect::<Vec<_>>(), revisions);
}

/// Covers behaviour 193.
/// Covers field faults 59, 60.
pub async fn a_slot_that_nobody_saw_is_run_once_by_one_of_many<F: CoordinationFactory>(place: &F) {
    let (store, first) = (store(place).await, scheduler(place).await);
    first.create(spec("a")).await.unwrap();
    age(&store, &key("a"), Micros::from_secs(3_600)).await;
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(run_by(&scheduler(place).await, &seen));
    }
    let ended = async || {
        let record = store.schedule_load(&key("a")).await.unwrap().unwrap().record;
        record.last_outcome().cloned()
    };
    assert_eq!(eventually("a run", ended).await, Outcome::Succeeded);
    for worker in &mut workers {
        worker.drain().await;
    }
    let seen = seen.lock().unwrap();
    let mut slots: Vec<_> = seen.iter().map(|cx| cx.occasion.clone()).collect();
    slots.dedup();
    // The next slot may have come meanwhile; none came twice.
    assert_eq!(slots.len(), seen.len());
    assert_eq!((seen[0].run, seen[0].attempt), (1, 1));
    let Occasion::Slot(slot) = &seen[0].occasion else { unreachable!() };
    assert_eq!(slot.micros() % 600_000_000, 0);
}

/// What is due longest comes first.
pub async fn a_schedule_that_is_always_due_keeps_no_other_waiting<F: CoordinationFactory>(
    place: &F,
) {
    let (store, scheduler) = (store(place).await, scheduler(place).await);
    // The first by name has much to do, and the other one waits for longer.
    scheduler.create(spec("a").misfire(Misfire::All)).await.unwrap();
    scheduler.create(spec("b")).await.unwrap();
    age(&store, &key("a"), Micros::from_secs(7_200)).await;
    age(&store, &key("b"), Micros::from_secs(86_400)).await;
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let runs = seen.clone();
    let mut worker = scheduler.process(ProcessOptions::new(1).unwrap(), move |cx| {
        runs.lock().unwrap().push(cx.schedule.as_str().to_owned());
        async { Ok(()) }
    });
    eventually("some runs", async || (seen.lock().unwrap().len() > 3).then_some(())).await;
    worker.drain().await;
    assert_eq!(seen.lock().unwrap()[..2], ["b", "a"]);
}

/// Covers field fault 54.
pub async fn a_request_is_one_run_and_its_end_is_told<F: CoordinationFactory>(place: &F) {
    let (asking, working) = (scheduler(place).await, scheduler(place).await);
    asking.create(spec("a")).await.unwrap();
    assert!(asking.run_now(&key("b"), &key("r")).await.is_err(), "there is no such schedule");
    for _ in 0..5 {
        asking.run_now(&key("a"), &key("r1")).await.unwrap();
    }
    asking.run_now(&key("a"), &key("r2")).await.unwrap();
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let mut worker = run_by(&working, &seen);
    for request in ["r1", "r2"] {
        let ended = asking.await_run(&key("a"), &key(request)).await;
        assert_eq!(ended.unwrap(), Outcome::Succeeded);
    }
    asking.run_now(&key("a"), &key("r1")).await.unwrap();
    worker.drain().await;
    let seen = seen.lock().unwrap();
    let asked = |cx: &&ScheduleCx| matches!(cx.occasion, Occasion::Asked(_));
    let runs: Vec<_> =
        seen.iter().filter(asked).map(|cx| (cx.occasion.clone(), cx.attempt)).collect();
    assert_eq!(runs, [(Occasion::Asked(key("r1")), 1), (Occasion::Asked(key("r2")), 1)]);
}

/// And its number stays.
pub async fn a_run_that_fails_is_tried_again_and_then_has_failed<F: CoordinationFactory>(
    place: &F,
) {
    let scheduler = scheduler(place).await;
    scheduler.create(spec("a").attempts(3)).await.unwrap();
    scheduler.run_now(&key("a"), &key("r")).await.unwrap();
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let attempts = seen.clone();
    let mut worker = scheduler.process(ProcessOptions::new(1).unwrap(), move |cx| {
        if matches!(cx.occasion, Occasion::Asked(_)) {
            attempts.lock().unwrap().push((cx.run, cx.attempt));
        }
        async move {
            assert_ne!(cx.attempt, 2, "the second attempt panics");
            Err(WorkStop::retry("no paper"))
        }
    });
    let ended = scheduler.await_run(&key("a"), &key("r")).await.unwrap();
    worker.drain().await;
    assert_eq!(ended, Outcome::Failed("no paper".to_owned()));
    let seen = seen.lock().unwrap();
    let number = seen[0].0;
    assert_eq!(*seen, [(number, 1), (number, 2), (number, 3)]);
}

/// Covers behaviour 209.
pub async fn a_schedule_that_is_created_again_has_no_past<F: CoordinationFactory>(place: &F) {
    let (store, scheduler) = (store(place).await, scheduler(place).await);
    scheduler.create(spec("a")).await.unwrap();
    scheduler.run_now(&key("a"), &key("r")).await.unwrap();
    let (begun, ended) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (begins, ends) = (begun.clone(), ended.clone());
    let mut worker = scheduler.process(ProcessOptions::new(1).unwrap(), move |_| {
        let (begins, ends) = (begins.clone(), ends.clone());
        async move {
            begins.notify_one();
            ends.notified().await;
            Ok(())
        }
    });
    begun.notified().await;
    worker.stop();
    assert!(scheduler.delete(&key("a")).await.unwrap());
    scheduler.create(spec("a")).await.unwrap();
    // The end of a run of the old one is not one of the new one.
    ended.notify_one();
    worker.drain().await;
    let record = store.schedule_load(&key("a")).await.unwrap().unwrap().record;
    assert_eq!((record.runs, &record.current), (0, &None));
    assert_eq!((record.outcome_of(&key("r")), record.last_outcome()), (None, None));
    assert!(store.now().since(record.dealt_until) < Micros::from_secs(600));
}

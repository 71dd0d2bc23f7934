//! Slots of schedules while the server and those who run them die.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{
    Backoff, Coordinator as _, Key, Misfire, Namespace, Occasion, Recorded, ResourceId,
    ScheduleRecord, ScheduleSpec, ScheduleStore,
};
use surefoot_testkit::coordination::eventually;
use surefoot_worker::coordinate::{ProcessOptions, Scheduler};

use crate::dying::{self, Dying, Signal};

const NAMESPACE: &str = "SUREFOOT_TEST_SLOTS_NAMESPACE";
const URL: &str = "SUREFOOT_TEST_SLOTS_URL";
const SCHEDULES: [&str; 3] = ["a", "b", "c"];
/// Slots of each that passed while nobody was there.
const PASSED: i64 = 100;
/// What a slot's work takes, so that there is some left when somebody dies.
const WORK: Duration = Duration::from_millis(30);
const A_MINUTE_US: i64 = 60_000_000;

async fn store(url: &str, namespace: &Namespace) -> Arc<dyn ScheduleStore> {
    let nats = dying::connect(url, namespace).await;
    let id = || ResourceId::new("house").unwrap();
    eventually("the schedules", async || nats.schedules(id()).await.ok()).await
}

fn scheduler(store: &Arc<dyn ScheduleStore>) -> Scheduler {
    let again = Backoff::new(vec![Duration::from_millis(50)]);
    Scheduler::new(store.clone()).backoff(again).hold(Duration::from_secs(1))
}

/// What dies: it runs slots, and says so as each begins. Without its environment it is no test.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_runs_slots() {
    let (Ok(namespace), Ok(url)) = (std::env::var(NAMESPACE), std::env::var(URL)) else { return };
    let store = store(&url, &Namespace::new(namespace).unwrap()).await;
    let scheduling = scheduler(&store).process(ProcessOptions::new(3).unwrap(), async |cx| {
        let Occasion::Slot(slot) = cx.occasion else { return Ok(()) };
        let (schedule, slot) = (cx.schedule, slot.micros());
        writeln!(std::io::stdout().lock(), "\nbegan {schedule} {slot} {} {}", cx.run, cx.attempt)?;
        tokio::time::sleep(WORK).await;
        Ok(())
    });
    // Until it is killed.
    std::future::pending::<()>().await;
    drop(scheduling);
}

/// By schedule and slot, the run and each attempt that began.
type Began = Arc<Mutex<BTreeMap<(String, i64), Vec<(u64, u32)>>>>;

fn worker(servers: &Dying, began: &Began) -> Child {
    let told = BTreeMap::from([(NAMESPACE, servers.namespace.to_string()), (URL, servers.url())]);
    let began = began.clone();
    dying::process("slots::a_process_that_runs_slots", &told, move |line| {
        let Some(rest) = line.strip_prefix("began ") else { return };
        let words: Vec<&str> = rest.split(' ').collect();
        let attempt = (words[2].parse().unwrap(), words[3].parse().unwrap());
        let slot = (words[0].to_owned(), words[1].parse().unwrap());
        began.lock().unwrap().entry(slot).or_default().push(attempt);
    })
}

/// Schedules of every minute, as if nobody had been there for a while.
async fn create(store: &Arc<dyn ScheduleStore>) {
    for name in SCHEDULES {
        let spec = ScheduleSpec::new(Key::new(name).unwrap(), "* * * * *", None).unwrap();
        let spec = spec.misfire(Misfire::All).attempts(1_000);
        let mut record = ScheduleRecord::new(spec, store.now());
        let from = record.created.micros() - PASSED * A_MINUTE_US;
        record.dealt_until = Timestamp::from_micros(from);
        store.schedule_save(&record, 0).await.unwrap().unwrap();
    }
}

async fn record(store: &Arc<dyn ScheduleStore>, name: &str) -> ScheduleRecord {
    let key = Key::new(name).unwrap();
    let load = async || store.schedule_load(&key).await.ok().flatten();
    let Recorded { record, .. } = eventually("a record", load).await;
    record
}

async fn every_slot_is_run_once(mut servers: Dying) {
    let (url, namespace) = (servers.url(), servers.namespace.clone());
    let store = store(&url, &namespace).await;
    create(&store).await;
    let began = Began::default();
    for signal in [Signal::Kill, Signal::Term] {
        let (one, two) = (worker(&servers, &began), worker(&servers, &began));
        some_more(&began).await;
        dying::end(one, signal);
        servers.strike("SCHED_house", signal).await;
        some_more(&began).await;
        dying::end(two, signal);
    }
    let last = worker(&servers, &began);
    for name in SCHEDULES {
        eventually("all slots", async || {
            let record = record(&store, name).await;
            let left = record.next_slots(record.dealt_until, 1).unwrap()[0];
            (record.current.is_none() && left > store.now()).then_some(())
        })
        .await;
    }
    dying::end(last, Signal::Kill);
    for name in SCHEDULES {
        check(&began, &record(&store, name).await).await;
    }
}

/// Until a few slots more have begun, if there are as many left.
async fn some_more(began: &Began) {
    let count = || began.lock().unwrap().len();
    let all = SCHEDULES.len() * usize::try_from(PASSED).unwrap();
    let enough = (count() + 6).min(all);
    eventually("more slots", async || (count() >= enough).then_some(())).await;
}

/// Each minute has one run, in order, whatever attempts that took.
async fn check(began: &Began, record: &ScheduleRecord) {
    let name = record.spec.id.as_str();
    let first = record.created.micros() - PASSED * A_MINUTE_US;
    let first = (first / A_MINUTE_US + 1) * A_MINUTE_US;
    let all = (record.dealt_until.micros() - first) / A_MINUTE_US + 1;
    // One that was just beginning as the last worker died is not told of.
    let least = usize::try_from(all).unwrap() - usize::from(record.current.is_some());
    let runs = eventually("what was said", async || {
        let began = began.lock().unwrap();
        let of = began.iter().filter(|((schedule, _), _)| schedule == name);
        let runs: Vec<_> = of.map(|((_, slot), runs)| (*slot, runs.clone())).collect();
        (runs.len() >= least).then_some(runs)
    })
    .await;
    for (nth, (slot, attempts)) in runs.iter().enumerate() {
        assert_eq!(*slot, first + i64::try_from(nth).unwrap() * A_MINUTE_US, "{name}: none missed");
        let run = u64::try_from(nth).unwrap() + 1;
        assert!(
            attempts.iter().all(|(number, _)| *number == run),
            "{name}: {slot} ran as {attempts:?}"
        );
        let mut distinct: Vec<u32> = attempts.iter().map(|(_, attempt)| *attempt).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), attempts.len(), "{name}: {slot} ran as {attempts:?}");
    }
}

/// Covers field faults 59, 60, 61.
#[tokio::test(flavor = "multi_thread")]
async fn every_slot_is_run_once_while_the_server_and_workers_die() {
    every_slot_is_run_once(Dying::one()).await;
}

/// Covers field faults 60, 61.
#[tokio::test(flavor = "multi_thread")]
async fn every_slot_is_run_once_while_leaders_of_a_cluster_and_workers_die() {
    every_slot_is_run_once(Dying::three()).await;
}

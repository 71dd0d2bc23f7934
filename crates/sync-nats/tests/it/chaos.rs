//! What else holds while servers and workers die: order, dead letters, coalescing and fences.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::Child;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use surefoot_sync_core::{
    Backoff, Coordinator as _, DeadPage, Job, Jobs, Key, Message, Mutex, MutexSettings, Namespace,
    Partitions, Queue, QueueSettings, ResourceId, Submitted, WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_worker::coordinate::{
    JobEnd, ProcessOptions, Processing, WorkStop, process_jobs, process_queue,
};

use crate::dying::{self, Dying, Signal};
use crate::{connect, namespace};

const LANES: [&str; 4] = ["ada", "bob", "cem", "dea"];
const MESSAGES: usize = 60;
const AN_HOUR: Duration = Duration::from_secs(3_600);

fn settings(name: &str) -> WorkSettings {
    WorkSettings {
        ack_wait: Duration::from_secs(1),
        backoff: Backoff::new(vec![Duration::from_millis(50)]),
        attempts_max: 1_000,
        stored_max_bytes: 1 << 24,
        ..WorkSettings::new(ResourceId::new(name).unwrap())
    }
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn is_poison(number: usize) -> bool {
    number % 5 == 2
}

async fn letters(nats: &Nats) -> Option<Arc<dyn Queue>> {
    let settings = QueueSettings::ordered(settings("letters"), Partitions::new(4).unwrap());
    nats.queue(settings).await.ok()
}

/// Sends the next message of its lane, which is known by its number: a repetition is one message all the same.
async fn send(queue: &Arc<dyn Queue>, number: usize) {
    let message = || {
        let message = Message::new(&number).unwrap().ordering_key(key(LANES[number % LANES.len()]));
        message.idempotency_key(key(&format!("letter {number}")))
    };
    eventually("a send", async || queue.send(message()).await.ok()).await;
}

/// By lane, what was handled, each at its first time.
type Handled = Arc<StdMutex<BTreeMap<Key, Vec<usize>>>>;

/// Takes and gives back a lock for ever, and remembers the fences.
async fn lock_for_ever(mutex: Arc<dyn Mutex>, fences: Arc<StdMutex<Vec<u64>>>) {
    loop {
        if let Ok(Some(lock)) = mutex.try_acquire(&key("door")).await {
            fences.lock().unwrap().push(lock.fence);
            let _ = mutex.release(&lock).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Handles messages of lanes, and puts poison aside.
fn read(queue: Arc<dyn Queue>, handled: Handled) -> Processing {
    process_queue(queue, ProcessOptions::new(4).unwrap(), move |cx| {
        let handled = handled.clone();
        async move {
            let number: usize = cx.input()?;
            if number % 7 == 3 && cx.attempt() == 1 {
                return Err(WorkStop::retry("busy"));
            }
            let mut handled = handled.lock().unwrap();
            let lane = handled.entry(cx.key().cloned().unwrap()).or_default();
            if !lane.contains(&number) {
                lane.push(number);
            }
            if is_poison(number) { Err(WorkStop::dead("poison")) } else { Ok(()) }
        }
    })
}

/// Submits what waits for an hour, and of which there is one for its key.
async fn submit_report(jobs: &Arc<dyn Jobs>) -> Submitted {
    let job = || Job::new(key("report"), &1).unwrap().coalesced().after(AN_HOUR);
    eventually("an answer", async || jobs.submit(job()).await.ok()).await
}

async fn everything_holds(mut servers: Dying, strike_every: usize) {
    let nats = servers.connect().await;
    let queue = eventually("the queue", async || letters(&nats).await).await;
    let later = async || nats.jobs(settings("later")).await.ok();
    let later: Arc<dyn Jobs> = eventually("the jobs", later).await;
    let Submitted::Stored(id) = submit_report(&later).await else {
        unreachable!("nothing was there");
    };
    let doors = MutexSettings::new(ResourceId::new("doors").unwrap());
    let doors = doors.ttl(Duration::from_secs(1)).unwrap();
    let mutex = eventually("the locks", async || nats.mutex(doors.clone()).await.ok()).await;
    let fences = Arc::new(StdMutex::new(Vec::new()));
    let locking = tokio::spawn(lock_for_ever(mutex, fences.clone()));
    let handled = Handled::default();
    let mut processing = read(letters(&servers.connect().await).await.unwrap(), handled.clone());
    let mut strikes =
        [("QUEUE_letters", Signal::Kill), ("MUTEX_doors", Signal::Term)].iter().cycle();
    for number in 0..MESSAGES {
        if number % strike_every == 10 {
            let (stream, signal) = strikes.next().unwrap();
            servers.strike(stream, *signal).await;
            assert_eq!(submit_report(&later).await, Submitted::Joined(id.clone()));
        }
        send(&queue, number).await;
    }
    eventually("all letters", async || {
        let depth = queue.depth().await.ok()?;
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
    processing.drain().await;
    let before = fences.lock().unwrap().len();
    eventually("another lock", async || (fences.lock().unwrap().len() > before).then_some(()))
        .await;
    locking.abort();
    for (nth, lane) in LANES.into_iter().enumerate() {
        let sent: Vec<usize> = (nth..MESSAGES).step_by(LANES.len()).collect();
        assert_eq!(handled.lock().unwrap()[&key(lane)], sent, "none was overtaken in {lane}");
    }
    let dead = queue.dead_list(DeadPage::default()).await.unwrap();
    let mut dead: Vec<u64> = dead.iter().filter_map(|letter| letter.data.as_u64()).collect();
    dead.sort_unstable();
    let poison: Vec<u64> = (0..MESSAGES).filter(|it| is_poison(*it)).map(|it| it as u64).collect();
    assert_eq!(dead, poison, "each is put aside, once");
    let fences = fences.lock().unwrap();
    assert!(fences.len() > 1 && fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// Covers behaviours 196, 197, 201, 205.
/// Covers field fault 158.
#[tokio::test(flavor = "multi_thread")]
async fn order_dead_letters_keys_and_fences_hold_while_the_server_dies() {
    everything_holds(Dying::one(), 15).await;
}

/// Covers behaviours 196, 197, 201, 205.
/// Covers field fault 158.
#[tokio::test(flavor = "multi_thread")]
async fn order_dead_letters_keys_and_fences_hold_while_leaders_of_a_cluster_die() {
    everything_holds(Dying::three(), 30).await;
}

const NAMESPACE: &str = "SUREFOOT_TEST_CHAOS_NAMESPACE";
const JOBS: usize = 40;

/// What dies: it does jobs, and says so before each is acknowledged. Without its environment it is no test.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_works() {
    let Ok(namespace) = std::env::var(NAMESPACE) else { return };
    let nats = connect(&Namespace::new(namespace).unwrap()).await;
    let jobs = nats.jobs(settings("mail")).await.unwrap();
    let processing = process_jobs(jobs, ProcessOptions::new(4).unwrap(), async |cx| {
        let number: usize = cx.input()?;
        writeln!(std::io::stdout().lock(), "\nhandled {number}")?;
        Ok(JobEnd::Done)
    });
    // Until it is killed.
    std::future::pending::<()>().await;
    drop(processing);
}

/// A worker of its own process; what it handled is told as it goes.
fn worker(namespace: &Namespace, handled: &Arc<StdMutex<BTreeSet<usize>>>) -> Child {
    let told = BTreeMap::from([(NAMESPACE, namespace.to_string())]);
    let handled = handled.clone();
    dying::process("chaos::a_process_that_works", &told, move |line| {
        if let Some(number) = line.strip_prefix("handled ") {
            handled.lock().unwrap().insert(number.parse().unwrap());
        }
    })
}

/// Covers behaviour 195.
/// Covers field fault 146.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_are_killed_and_ended_under_load_lose_no_job() {
    let namespace = namespace();
    let jobs = connect(&namespace).await.jobs(settings("mail")).await.unwrap();
    let handled = Arc::new(StdMutex::new(BTreeSet::new()));
    let submit = async |number: usize| {
        let job = Job::new(key(&format!("job {number}")), &number).unwrap();
        jobs.submit(job).await.unwrap();
    };
    let rounds = [(Signal::Kill, 0..JOBS / 4), (Signal::Term, JOBS / 4..JOBS / 2)];
    for (signal, numbers) in rounds {
        let before = handled.lock().unwrap().len();
        let child = worker(&namespace, &handled);
        for number in numbers {
            submit(number).await;
        }
        let some = async || (handled.lock().unwrap().len() > before).then_some(());
        eventually("some jobs", some).await;
        dying::end(child, signal);
    }
    for number in JOBS / 2..JOBS {
        submit(number).await;
    }
    let last = worker(&namespace, &handled);
    eventually("an empty stream", async || {
        let depth = jobs.depth().await.unwrap();
        assert_eq!(depth.dead, 0);
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
    let all = async || (handled.lock().unwrap().len() == JOBS).then_some(());
    eventually("all jobs", all).await;
    dying::end(last, Signal::Kill);
    assert_eq!(jobs.repair().await.unwrap(), 0);
}

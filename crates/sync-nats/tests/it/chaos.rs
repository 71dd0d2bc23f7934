//! What else holds while servers and workers die: order, dead letters, coalescing and fences.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use surefoot_sync_core::{
    Backoff, Coordinator as _, DeadPage, Job, Jobs, Key, Message, Mutex, MutexSettings, Namespace,
    Partitions, Queue, QueueSettings, ResourceId, Submitted, WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::Nats as Servers;
use surefoot_worker::coordinate::{JobEnd, ProcessOptions, WorkStop, process_jobs, process_queue};

use crate::{connect, namespace};

const LANES: [&str; 4] = ["ada", "bob", "cem", "dea"];
const MESSAGES: usize = 60;

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

async fn letters(nats: &Nats) -> Arc<dyn Queue> {
    let settings = QueueSettings::ordered(settings("letters"), Partitions::new(4).unwrap());
    nats.queue(settings).await.unwrap()
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

/// Covers behaviours 196, 197, 201, 205.
/// Covers field fault 158.
#[tokio::test(flavor = "multi_thread")]
async fn order_dead_letters_keys_and_fences_hold_while_the_server_dies() {
    let mut server = Servers::given().unwrap().start().unwrap();
    let namespace = namespace();
    let nats = Nats::connect(server.url(), namespace.clone()).await.unwrap();
    let queue = letters(&nats).await;
    let later: Arc<dyn Jobs> = nats.jobs(settings("later")).await.unwrap();
    let waiting = || {
        let job = Job::new(key("report"), &1).unwrap().coalesced();
        job.after(Duration::from_secs(3_600))
    };
    let Submitted::Stored(id) = later.submit(waiting()).await.unwrap() else {
        unreachable!("nothing was there");
    };
    let mutex = MutexSettings::new(ResourceId::new("doors").unwrap());
    let mutex = nats.mutex(mutex.ttl(Duration::from_secs(1)).unwrap()).await.unwrap();
    let fences = Arc::new(StdMutex::new(Vec::new()));
    let locking = tokio::spawn(lock_for_ever(mutex, fences.clone()));
    let handled = Handled::default();
    let mut processing = {
        let handled = handled.clone();
        let worker = Nats::connect(server.url(), namespace).await.unwrap();
        process_queue(letters(&worker).await, ProcessOptions::new(4).unwrap(), move |cx| {
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
    };
    for number in 0..MESSAGES {
        if number % 15 == 10 {
            if number % 2 == 0 {
                server.kill().unwrap()
            } else {
                server.terminate().unwrap()
            }
            server.restart().unwrap();
            let again = eventually("an answer", async || later.submit(waiting()).await.ok()).await;
            assert_eq!(again, Submitted::Joined(id.clone()), "one for its key");
        }
        send(&queue, number).await;
    }
    eventually("all letters", async || {
        let depth = queue.depth().await.ok()?;
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
    processing.drain().await;
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
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "chaos::a_process_that_works", "--nocapture"]);
    let mut child =
        command.env(NAMESPACE, namespace.as_str()).stdout(Stdio::piped()).spawn().unwrap();
    let (said, handled) = (child.stdout.take().unwrap(), handled.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("handled ") {
                handled.lock().unwrap().insert(number.parse().unwrap());
            }
        }
    });
    child
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
    let rounds = [("-KILL", 0..JOBS / 4), ("-TERM", JOBS / 4..JOBS / 2)];
    for (signal, numbers) in rounds {
        let before = handled.lock().unwrap().len();
        let mut child = worker(&namespace, &handled);
        for number in numbers {
            submit(number).await;
        }
        let some = async || (handled.lock().unwrap().len() > before).then_some(());
        eventually("some jobs", some).await;
        let told = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(told.success() && !child.wait().unwrap().success());
    }
    for number in JOBS / 2..JOBS {
        submit(number).await;
    }
    let mut last = worker(&namespace, &handled);
    eventually("an empty stream", async || {
        let depth = jobs.depth().await.unwrap();
        assert_eq!(depth.dead, 0);
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
    let all = async || (handled.lock().unwrap().len() == JOBS).then_some(());
    eventually("all jobs", all).await;
    last.kill().unwrap();
    last.wait().unwrap();
    assert_eq!(jobs.repair().await.unwrap(), 0);
}

//! The death of workers and of the server under load.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use surefoot_sync_core::{
    Backoff, Coordinator as _, Job, Jobs, Key, Receive, ResourceId, Settled, Submitted, Verdict,
    WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::Nats as Servers;
use surefoot_worker::coordinate::{JobEnd, ProcessOptions, WorkStop, process_jobs};

use crate::dying::{Dying, Signal};
use crate::{connect, namespace};

fn settings() -> WorkSettings {
    WorkSettings {
        ack_wait: Duration::from_secs(1),
        backoff: Backoff::new(vec![Duration::from_millis(100)]),
        attempts_max: 50,
        stored_max_bytes: 1 << 24,
        ..WorkSettings::new(ResourceId::new("mail").unwrap())
    }
}

fn job(number: usize) -> Job {
    Job::new(Key::new(format!("job {number}")).unwrap(), &number).unwrap().coalesced()
}

/// Covers behaviour 195.
/// Covers field fault 146.
#[test]
fn a_worker_that_dies_in_a_handler_loses_nothing() {
    let doomed = tokio::runtime::Runtime::new().unwrap();
    let namespace = namespace();
    let (began, begun) = std::sync::mpsc::channel();
    doomed.block_on(async {
        let jobs = connect(&namespace).await.jobs(settings()).await.unwrap();
        jobs.submit(job(1)).await.unwrap();
        let options = ProcessOptions::new(1).unwrap();
        let processing = process_jobs(jobs, options, move |_| {
            let began = began.clone();
            async move {
                began.send(()).unwrap();
                std::future::pending().await
            }
        });
        // It goes on until its runtime dies.
        std::mem::forget(processing);
    });
    begun.recv().unwrap();
    // Nothing of it runs on: no heartbeat, no settlement.
    doomed.shutdown_background();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let jobs = connect(&namespace).await.jobs(settings()).await.unwrap();
        let options = ProcessOptions::new(1).unwrap();
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let seen = attempts.clone();
        let mut processing = process_jobs(jobs, options, move |cx| {
            seen.lock().unwrap().push(cx.attempt());
            async { Ok(JobEnd::Done) }
        });
        eventually("the job", async || (processing.counts().done == 1).then_some(())).await;
        processing.drain().await;
        assert_eq!(*attempts.lock().unwrap(), [2]);
    });
}

/// Covers field faults 144, 147, 151.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_done_however_often_the_server_is_killed() {
    const JOBS: usize = 60;
    let mut server = Servers::given().unwrap().start().unwrap();
    let namespace = namespace();
    let nats = Nats::connect(server.url(), namespace.clone()).await.unwrap();
    let jobs = nats.jobs(settings()).await.unwrap();
    let done = Arc::new(Mutex::new(BTreeSet::new()));
    let handled = done.clone();
    let worker = Nats::connect(server.url(), namespace).await.unwrap();
    let worker = worker.jobs(settings()).await.unwrap();
    let options = ProcessOptions::new(8).unwrap();
    let mut processing = process_jobs(worker, options, move |cx| {
        let done = handled.clone();
        async move {
            let number: usize = cx.input()?;
            // The first attempt of every third fails, and every fourth comes in two parts.
            if number.is_multiple_of(3) && cx.attempt() == 1 && cx.generation() == 0 {
                return Err(WorkStop::retry("busy"));
            }
            if number.is_multiple_of(4) && cx.generation() == 0 {
                let delay = Duration::from_millis(100);
                let again = surefoot_sync_core::Again { delay, input: None };
                return Ok(JobEnd::Again(again));
            }
            done.lock().unwrap().insert(number);
            Ok(JobEnd::Done)
        }
    });
    let mut acknowledged = BTreeSet::new();
    for number in 0..JOBS {
        if number % 20 == 10 {
            server.kill().unwrap();
            server.restart().unwrap();
        }
        let stored = eventually("a submit", async || jobs.submit(job(number)).await.ok()).await;
        assert!(!matches!(stored, Submitted::Duplicate(_)));
        acknowledged.insert(number);
    }
    let all = async || (*done.lock().unwrap() == acknowledged).then_some(());
    eventually("all jobs", all).await;
    nothing_left(&jobs).await;
    processing.drain().await;
    assert_eq!(jobs.repair().await.unwrap(), 0, "nothing was left invisible");
}

async fn nothing_left(jobs: &Arc<dyn Jobs>) {
    eventually("an empty stream", async || {
        let depth = jobs.depth().await.ok()?;
        assert_eq!(depth.dead, 0);
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
}

/// A key is known as long as its work is stored, however the server ends; the window of work that is done goes with the
/// server's memory.
///
/// Covers field fault 149.
#[tokio::test]
async fn a_key_whose_work_waits_is_known_over_the_death_of_the_server() {
    let mut server = Servers::given().unwrap().start().unwrap();
    let nats = Nats::connect(server.url(), namespace()).await.unwrap();
    let jobs = nats.jobs(settings()).await.unwrap();
    let named = || Job::new(Key::new("a").unwrap(), &1).unwrap();
    let Submitted::Stored(id) = jobs.submit(named()).await.unwrap() else {
        unreachable!("nothing was there");
    };
    for is_killed in [true, false] {
        if is_killed {
            server.kill().unwrap();
        } else {
            server.terminate().unwrap();
        }
        server.restart().unwrap();
        let again = eventually("an answer", async || jobs.submit(named()).await.ok()).await;
        assert_eq!(again, Submitted::Duplicate(Some(id.clone())), "killed: {is_killed}");
    }
    assert_eq!(jobs.depth().await.unwrap().waiting, 1);
    // Done: the key is still known to the server that saw it, and to no other.
    let one = Receive { max: 1, wait: Duration::from_secs(60) };
    let delivery = jobs.receive(one).await.unwrap().remove(0);
    assert_eq!(jobs.settle(&delivery, Verdict::Done).await.unwrap(), Settled::Done);
    assert!(matches!(jobs.submit(named()).await.unwrap(), Submitted::Duplicate(_)));
    server.kill().unwrap();
    server.restart().unwrap();
    let anew = eventually("an answer", async || jobs.submit(named()).await.ok()).await;
    assert!(matches!(anew, Submitted::Stored(new) if new != id));
}

/// Covers field fault 144.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_loses_nothing_when_its_leaders_die_one_after_the_other() {
    const JOBS: usize = 30;
    let mut servers = Dying::three();
    let nats = servers.connect().await;
    let jobs = eventually("the jobs", async || nats.jobs(settings()).await.ok()).await;
    let done = Arc::new(Mutex::new(BTreeSet::new()));
    let handled = done.clone();
    let options = ProcessOptions::new(4).unwrap();
    let mut processing = process_jobs(jobs.clone(), options, move |cx| {
        let done = handled.clone();
        async move {
            let number: usize = cx.input()?;
            if cx.attempt() == 1 {
                return Err(WorkStop::retry("busy"));
            }
            done.lock().unwrap().insert(number);
            Ok(JobEnd::Done)
        }
    });
    for number in 0..JOBS {
        if number % 10 == 5 {
            let signal = if number == 15 { Signal::Term } else { Signal::Kill };
            servers.strike("JOB_mail", signal).await;
        }
        eventually("a submit", async || jobs.submit(job(number)).await.ok()).await;
    }
    let all = async || (done.lock().unwrap().len() == JOBS).then_some(());
    eventually("all jobs", all).await;
    nothing_left(&jobs).await;
    processing.drain().await;
}

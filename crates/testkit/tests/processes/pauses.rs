//! Processes that stand still, that are killed together, and that come back under their old name.

use rustix::process::Signal;
use serde_json::json;
use surefoot_kernel_core::{Event, Phase, Run, RunId, RunState};

use crate::app::{SCOPE, SLOW};
use crate::file::File;
use crate::parent::{Child, until};

impl File {
    /// Emits an event that no worker of this process hears of.
    async fn emit(&self, workflow: &str) -> RunId {
        let event = Event::start(workflow, json!({}));
        self.kernel().scope(SCOPE).emit(event).await.unwrap().runs[0]
    }

    async fn until_ended(&self, run: RunId) -> Run {
        self.kernel().await_run(run).await.unwrap()
    }
}

fn result(run: &Run) -> u32 {
    let Phase::Succeeded { result, .. } = &run.phase else { panic!("{run:?}") };
    serde_json::from_value(result.clone()).unwrap()
}

/// A worker that holds the run and whose action does not come back.
async fn holding(file: &File) -> (Child, RunId) {
    let run = file.emit(SLOW).await;
    let child = Child::start(&file.place, "work", None);
    until("the action is called", || file.place.lines("calls").len() == 1);
    (child, run)
}

/// Stops a process where it does not hold the file's lock: it would stop everybody else with it.
async fn stand_still(file: &File, child: &Child) {
    loop {
        child.signal(Signal::STOP);
        if file.is_free().await {
            return;
        }
        child.signal(Signal::CONT);
    }
}

/// Covers field fault 20.
/// Covers field fault 21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stood_still_past_its_lease_changes_nothing() {
    let file = File::new().await;
    let (mut slow, run) = holding(&file).await;
    stand_still(&file, &slow).await;
    let other = Child::start(&file.place, "work", None);
    let ended = file.until_ended(run).await;
    assert_eq!((result(&ended), ended.generation), (other.id(), 2));
    let facts = file.facts(run).await;
    // Now it may go on, and comes back with an answer of its own.
    std::fs::write(file.place.file("go-on"), "").unwrap();
    slow.signal(Signal::CONT);
    slow.tell_to_stop();
    let (said, status) = slow.join();
    assert!(status.success() && said.iter().any(|line| line == "stopped"), "{status} {said:?}");
    assert_eq!((file.run(run).await, file.facts(run).await), (ended, facts));
    file.check().await;
}

/// Covers field fault 8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_two_workers_were_killed_no_run_is_left_alone() {
    for round in 0..4 {
        let mut file = File::new().await;
        let workers: Vec<Child> = (0..2).map(|_| Child::start(&file.place, "load", None)).collect();
        let enough = 4 + 6 * round;
        until("they work", || workers.iter().all(|worker| worker.said().len() > enough));
        workers.iter().for_each(|worker| worker.signal(Signal::KILL));
        for worker in workers {
            file.heard(&worker.join_killed());
        }
        file.check().await;
        file.drain().await;
    }
}

/// Covers field fault 39.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_back_under_its_name_gets_its_orphans_at_the_end_of_their_lease() {
    let file = File::new().await;
    let (mut first, run) = holding(&file).await;
    first.kill();
    first.join_killed();
    let orphan = file.run(run).await;
    let until = orphan.lease().map(|lease| lease.until).unwrap();
    let second = Child::start(&file.place, "work", None);
    let ended = file.until_ended(run).await;
    assert_eq!((ended.state(), result(&ended)), (RunState::Succeeded, second.id()));
    assert_eq!((ended.generation, ended.attempt), (2, 2));
    assert!(ended.ended_at.unwrap() >= until, "it was taken before its lease was over");
}

//! The kill: a worker, in the middle of a charge that is carried out and not answered.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use surefoot_inventory::provider::wire::OpenCall;
use surefoot_kernel_core::RunId;

use super::crew::Hand;
use super::folder::Folder;
use super::stage::Stage;
use super::tally::{Journal, Said};
use super::venue::Venue;
use super::{DemoError, During};

/// How often the provider is asked what it is working on.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A call that is this old may be given up by its worker before the kill reaches it.
const CALL_AGE_MAX_MS: u64 = 2_000;

/// What the kill did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strike {
    /// Charges of that worker that were carried out and not answered.
    pub(super) killed_in_call: usize,
    /// From the kill until all of them were settled in the journal.
    pub(super) recovery: Duration,
}

/// Waits for the cue, kills, and waits until the other worker has explained what the killed one left. `None` if the
/// show ended without a cue.
pub(super) async fn strike(
    stage: &Stage<impl Venue>,
    workers: &mut [Hand],
) -> Result<Option<Strike>, DemoError> {
    let Some((worker, calls)) = wait_for_cue(stage, workers).await? else { return Ok(None) };
    let began = Instant::now();
    workers[worker].kill().await?;
    let (name, pid) = (workers[worker].name.clone(), workers[worker].pid);
    stage.say(&format!(
        "killed `{name}` (process {pid}) while the provider had charged and not answered"
    ));
    let killed = wait_for_silence(stage, pid, &calls).await?;
    stage.say(&format!("charges in its hands, carried out and not answered: {}", killed.len()));
    while !is_explained(stage, &killed).await? {
        if stage.is_over() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let recovery = began.elapsed();
    stage.say(&format!(
        "the other worker has explained them, {} ms after the kill",
        recovery.as_millis()
    ));
    Ok(Some(Strike { killed_in_call: killed.len(), recovery }))
}

/// The worker to kill, and its calls that are carried out and have no answer.
async fn wait_for_cue(
    stage: &Stage<impl Venue>,
    workers: &[Hand],
) -> Result<Option<(usize, Vec<OpenCall>)>, DemoError> {
    while !stage.is_over() {
        let calls = stage.bank().open_calls().await.during("the provider does not answer")?;
        let mut calls = calls;
        calls.retain(|call| call.carried_out && call.age_ms <= CALL_AGE_MAX_MS);
        let cue = calls.iter().find(|call| stage.is_cue(&call.reference)).map(|call| call.worker);
        if let Some(worker) = workers.iter().position(|hand| Some(hand.pid) == cue) {
            calls.retain(|call| Some(call.worker) == cue);
            return Ok(Some((worker, calls)));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(None)
}

/// Waits until the provider has noticed that the caller is gone, and asks its log which of the calls never had an
/// answer: one may have been answered just before the kill.
async fn wait_for_silence(
    stage: &Stage<impl Venue>,
    pid: u32,
    calls: &[OpenCall],
) -> Result<Vec<OpenCall>, DemoError> {
    while !stage.is_over() {
        let open = stage.bank().open_calls().await.during("the provider does not answer")?;
        if open.iter().all(|call| call.worker != pid) {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let answered = answered(stage.folder())?;
    Ok(calls.iter().filter(|call| !answered.contains(&call.effect_key)).cloned().collect())
}

/// The effect keys of all charges that were answered.
fn answered(folder: &Folder) -> Result<BTreeSet<String>, DemoError> {
    let text = fs::read_to_string(folder.requests());
    let text = text.during("the provider's log of requests cannot be read")?;
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let with = |event: &'static str| lines.iter().filter(move |line| line["event"] == event);
    let ended: BTreeSet<Option<u64>> = with("answered").map(|line| line["call"].as_u64()).collect();
    let keys = with("asked").filter(|line| ended.contains(&line["call"].as_u64()));
    Ok(keys
        .filter_map(|line| line["details"]["effect_key"].as_str())
        .map(ToOwned::to_owned)
        .collect())
}

/// Whether the journal says what became of each of them.
async fn is_explained(stage: &Stage<impl Venue>, calls: &[OpenCall]) -> Result<bool, DemoError> {
    let mut journal = Journal::default();
    for call in calls {
        let run: RunId = call.reference.parse().during("the provider names no run")?;
        journal.add(stage.store(), run).await?;
    }
    let is_open =
        |call: &OpenCall| matches!(journal.said(&call.effect_key), None | Some(Said::Open));
    Ok(!calls.iter().any(is_open))
}

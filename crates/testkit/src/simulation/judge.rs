//! What was promised, against what happened.

use std::collections::BTreeMap;

use surefoot_kernel_core::{
    EffectClass, EffectKey, Fact, LoadRequest, Run, RunId, RunStore, StepKey,
};

use super::play::text;
use super::script::Script;
use crate::matrix::{Did, Entry, Provider};
use crate::suite::{StoreFactory, check_invariants};

/// Everything that is not as promised.
pub(super) async fn judge<F: StoreFactory>(
    script: &Script,
    store: &F::Store,
    runs: &[Run],
    provider: &Provider,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let log = provider.log();
    let orders = script.orders().len();
    if runs.len() != orders {
        wrong.push(format!("{orders} orders have {} runs", runs.len()));
    }
    let mut keys = BTreeMap::new();
    for run in runs {
        match completed(store, run.id).await {
            Ok(steps) => {
                for step in steps {
                    keys.insert(run.effect_key(&step).to_string(), (run.id, step));
                }
            }
            Err(why) => wrong.push(why),
        }
    }
    effects(&log, &keys, &mut wrong);
    writes::<F>(store, &log, runs, &mut wrong).await;
    // It says by a panic what is wrong, which a test shows.
    check_invariants(store).await;
    wrong
}

/// The steps of a run that have an outcome.
async fn completed<S: RunStore>(store: &S, run: RunId) -> Result<Vec<StepKey>, String> {
    let stored = store.run_load(LoadRequest { run, after: None }).await.map_err(text)?;
    let journal = stored.ok_or_else(|| format!("{run} is gone"))?.journal.map_err(text)?;
    let facts = journal.into_iter().flat_map(|entry| entry.facts);
    let step = |fact| {
        let Fact::StepCompleted { step, .. } = fact else { return None };
        Some(step)
    };
    Ok(facts.filter_map(step).collect())
}

/// No effect twice, none missing, none under a foreign key.
fn effects(log: &[Entry], keys: &BTreeMap<String, (RunId, StepKey)>, wrong: &mut Vec<String>) {
    let mut carried_out: BTreeMap<&EffectKey, (u64, &Entry)> = BTreeMap::new();
    let mut called = BTreeMap::new();
    for entry in log {
        let Some(key) = &entry.key else { continue };
        match entry.did {
            Did::CarriedOut => carried_out.entry(key).or_insert((0, entry)).0 += 1,
            Did::Called => drop(called.insert(key, entry)),
            Did::Asked | Did::Wrote(_) | Did::PassedFence(_) => {}
        }
    }
    for (key, (times, entry)) in &carried_out {
        if *times > 1 {
            wrong.push(format!("an effect is carried out {times} times: {entry:?}"));
        }
        if !keys.contains_key(key.as_str()) {
            wrong.push(format!("an effect belongs to no recorded step: {entry:?}"));
        }
    }
    for (key, entry) in called {
        if keys.contains_key(key.as_str()) && !carried_out.contains_key(key) {
            wrong.push(format!("an effect is recorded and was not carried out: {entry:?}"));
        }
    }
}

/// A transactional step's write is there once, and a fenced one at all.
async fn writes<F: StoreFactory>(
    store: &F::Store,
    log: &[Entry],
    runs: &[Run],
    wrong: &mut Vec<String>,
) {
    let mut there: BTreeMap<String, u64> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.class == EffectClass::Transactional) {
        let Did::Wrote(row) = &entry.did else { continue };
        if F::read_row(store, row).await.is_some() {
            let run = row.split(' ').next().unwrap_or_default().to_owned();
            *there.entry(run).or_default() += 1;
        }
    }
    for run in runs {
        let booked = there.get(&run.id.to_string()).copied().unwrap_or_default();
        if booked != 1 {
            wrong.push(format!("the booking of {} is there {booked} times", run.id));
        }
        let noted = run.effect_key(&StepKey::from("steps.6"));
        if F::read_row(store, noted.as_str()).await.is_none() {
            wrong.push(format!("the note of {} is missing", run.id));
        }
    }
}

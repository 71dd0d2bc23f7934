//! What was promised, against what happened.

use std::collections::BTreeMap;

use surefoot_kernel_core::{
    EffectClass, EffectKey, Fact, LoadRequest, Run, RunId, RunState, RunStore, StepKey,
};

use super::play::text;
use super::script::Script;
use crate::matrix::{Did, Entry, Provider};
use crate::suite::{StoreFactory, check_invariants};

/// The steps with an outcome, by their effect keys.
type Outcomes = BTreeMap<String, (RunId, StepKey)>;

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
    let roots = runs.iter().filter(|run| run.origin.parent.is_none()).count();
    if roots != orders {
        wrong.push(format!("{orders} orders have {roots} runs"));
    }
    let mut outcomes = Outcomes::new();
    for run in runs {
        match completed(store, run.id).await {
            Ok(steps) => {
                for step in steps {
                    outcomes.insert(run.effect_key(&step).to_string(), (run.id, step));
                }
            }
            Err(why) => wrong.push(why),
        }
    }
    effects(script, &log, (&outcomes, runs), &mut wrong);
    writes::<F>(store, &log, (&outcomes, runs), &mut wrong).await;
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

/// No effect twice, none missing, none dropped, none under a foreign key.
fn effects(
    script: &Script,
    log: &[Entry],
    (outcomes, runs): (&Outcomes, &[Run]),
    wrong: &mut Vec<String>,
) {
    let mut carried_out: BTreeMap<&EffectKey, (u64, &Entry)> = BTreeMap::new();
    let mut called = BTreeMap::new();
    for entry in log {
        let Some(key) = &entry.key else { continue };
        match entry.did {
            Did::CarriedOut => carried_out.entry(key).or_insert((0, entry)).0 += 1,
            Did::Called => drop(called.insert(key, entry)),
            Did::Asked | Did::Wrote(_) | Did::PassedFence(_) | Did::Attended(_) => {}
        }
    }
    for (key, (times, entry)) in &carried_out {
        let run = runs.iter().find(|run| Some(run.id) == entry.run);
        if *times > 1 {
            wrong.push(format!("an effect is carried out {times} times: {entry:?}"));
        }
        if run.is_none_or(|run| run.effect_key(&entry.step) != **key) {
            wrong.push(format!("an effect belongs to no step: {entry:?}"));
        }
        // Whoever cancels may lose the outcome of what can be repeated; never that of an ambiguous action.
        let may_be_dropped = entry.class == EffectClass::Idempotent
            && run.is_some_and(|run| run.state() == RunState::Canceled);
        if !outcomes.contains_key(key.as_str()) && !may_be_dropped {
            wrong.push(format!("an effect has no outcome: {entry:?}"));
        }
    }
    for (key, entry) in called {
        let is_declined = entry.class == EffectClass::Ambiguous && script.declines(key);
        let is_there = carried_out.contains_key(key);
        if is_declined && is_there {
            wrong.push(format!("an effect is declined and was carried out: {entry:?}"));
        }
        if outcomes.contains_key(key.as_str()) && !is_there && !is_declined {
            wrong.push(format!("an effect is recorded and was not carried out: {entry:?}"));
        }
    }
}

/// A transactional step's write is there where its outcome is, once, and a fenced one at all.
async fn writes<F: StoreFactory>(
    store: &F::Store,
    log: &[Entry],
    (outcomes, runs): (&Outcomes, &[Run]),
    wrong: &mut Vec<String>,
) {
    let mut there: BTreeMap<(String, String), u64> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.class == EffectClass::Transactional) {
        let Did::Wrote(row) = &entry.did else { continue };
        if F::read_row(store, row).await.is_some() {
            let mut parts = row.split(' ').map(str::to_owned);
            let place = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            *there.entry(place).or_default() += 1;
        }
    }
    for run in runs.iter().filter(|run| run.origin.parent.is_none()) {
        let is_done =
            |step: &str| outcomes.contains_key(run.effect_key(&StepKey::from(step)).as_str());
        let place = (run.id.to_string(), super::shop::BOOK.to_owned());
        let booked = there.get(&place).copied().unwrap_or_default();
        if booked != u64::from(is_done(super::shop::BOOK)) {
            wrong.push(format!("the booking of {} is there {booked} times", run.id));
        }
        let noted = run.effect_key(&StepKey::from(super::shop::NOTE));
        if is_done(super::shop::NOTE) && F::read_row(store, noted.as_str()).await.is_none() {
            wrong.push(format!("the note of {} is missing", run.id));
        }
    }
}

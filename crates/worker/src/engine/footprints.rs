//! Which plans this worker can run.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::Micros;
use surefoot_kernel_core::plan::Footprint;

/// Judgements that are remembered; each distinct footprint is judged once.
const JUDGED_MAX: usize = 4_096;
/// Footprints published in this process that no run has needed yet.
const LEARNED_MAX: usize = 256;

/// What the modules of a worker offer, and what of it is wanted.
pub(crate) struct Footprints {
    offers: Vec<Footprint>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    judged: HashMap<Footprint, Judged>,
    /// Hashes that runs need and that this worker can run.
    wanted: BTreeSet<String>,
    learned: VecDeque<String>,
    listed_at: Option<Micros>,
}

struct Judged {
    hash: String,
    is_offered: bool,
}

impl Footprints {
    pub(crate) fn new(offers: Vec<Footprint>) -> Self {
        Self { offers, state: Mutex::default() }
    }

    pub(crate) fn offers(&self) -> &[Footprint] {
        &self.offers
    }

    /// The hashes to claim.
    pub(crate) fn claimable(&self) -> Vec<String> {
        let state = self.state();
        let both: BTreeSet<&String> = state.wanted.iter().chain(&state.learned).collect();
        both.into_iter().cloned().collect()
    }

    /// Whether the list of the store's footprints is older than that.
    pub(crate) fn is_older_than(&self, age: Micros, now: Micros) -> bool {
        let listed_at = self.state().listed_at;
        listed_at.is_none_or(|at| now.get() - at.get() > age.get())
    }

    /// Judges what the runs of the store need. Says whether something is claimable that was not before.
    pub(crate) fn list(&self, footprints: Vec<Footprint>, now: Micros) -> bool {
        let mut state = self.state();
        state.listed_at = Some(now);
        let mut wanted = BTreeSet::new();
        for footprint in footprints {
            let judged = self.judge(&mut state, footprint);
            if judged.is_offered {
                wanted.insert(judged.hash.clone());
            }
        }
        let is_new =
            wanted.iter().any(|hash| !state.wanted.contains(hash) && !state.learned.contains(hash));
        state.wanted = wanted;
        is_new
    }

    /// Whether this worker can run one of them.
    pub(crate) fn offers_any(&self, footprints: &[Footprint]) -> bool {
        let mut state = self.state();
        footprints.iter().any(|footprint| self.judge(&mut state, footprint.clone()).is_offered)
    }

    /// A version was published in this process: its runs are claimable before the next list.
    pub(crate) fn learn(&self, footprint: &Footprint) {
        let mut state = self.state();
        let judged = self.judge(&mut state, footprint.clone());
        if judged.is_offered {
            let hash = judged.hash.clone();
            state.learned.retain(|known| *known != hash);
            state.learned.push_front(hash);
            state.learned.truncate(LEARNED_MAX);
        }
    }

    fn judge<'s>(&self, state: &'s mut State, footprint: Footprint) -> &'s Judged {
        if state.judged.len() >= JUDGED_MAX {
            state.judged.clear();
        }
        state.judged.entry(footprint).or_insert_with_key(|footprint| Judged {
            hash: footprint.hash(),
            is_offered: self.offers.iter().any(|offered| footprint.is_contained_in(offered)),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(module: &str, uses: &[(&str, &str)]) -> Footprint {
        let pair = |(name, hash): &(&str, &str)| ((*name).to_owned(), (*hash).to_owned());
        Footprint { module: module.to_owned(), uses: uses.iter().map(pair).collect() }
    }

    #[test]
    fn only_what_a_module_contains_is_claimable() {
        let offer = footprint("inventory", &[("action/a", "1"), ("action/b", "2")]);
        let footprints = Footprints::new(vec![offer]);
        let fits = footprint("inventory", &[("action/a", "1")]);
        let changed = footprint("inventory", &[("action/a", "9")]);
        let foreign = footprint("payroll", &[]);
        let list = vec![fits.clone(), changed, foreign];
        assert!(footprints.list(list.clone(), Micros::ZERO));
        assert!(!footprints.list(list, Micros::ZERO));
        assert_eq!(footprints.claimable(), [fits.hash()]);
    }

    #[test]
    fn what_was_published_here_is_claimable_before_the_next_list() {
        let footprints = Footprints::new(vec![footprint("inventory", &[("action/a", "1")])]);
        let published = footprint("inventory", &[]);
        footprints.learn(&published);
        footprints.learn(&footprint("payroll", &[]));
        assert_eq!(footprints.claimable(), [published.hash()]);
        assert!(footprints.is_older_than(Micros::ZERO, Micros::ZERO));
    }
}

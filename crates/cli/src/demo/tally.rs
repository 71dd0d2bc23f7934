//! The two logs of a show, and whether they agree: the provider's own, and the kernel's journal.

use std::collections::BTreeMap;
use std::fs;

use surefoot_inventory::APP;
use surefoot_inventory::provider::wire::Charge;
use surefoot_kernel_core::{
    EffectKey, Fact, JournalEntry, LoadRequest, Mode, RunFilter, RunId, RunRow, RunState, SaidBy,
    StepKey, TxStore,
};

use super::folder::Folder;
use super::{DemoError, During};

/// Runs of one page.
const PAGE: u32 = 500;

/// What the journal says about a charge that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Nobody knows.
    Open,
    /// It was carried out; whose word that is.
    Confirmed(SaidBy),
    /// It was not.
    Not,
}

/// What the journal says about every charge of a show, by effect key.
#[derive(Debug, Default)]
pub(super) struct Journal(BTreeMap<String, Said>);

/// What the provider carried out, by effect key: how often, and the last receipt.
#[derive(Debug, Default)]
pub(super) struct Books(BTreeMap<String, (u32, Charge)>);

/// The two logs side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    /// Distinct keys in the provider's log.
    pub(super) provider: usize,
    /// Confirmed in the journal.
    pub(super) confirmed: usize,
    /// Announced in the journal and not settled.
    pub(super) open: usize,
    /// Confirmed by asking the provider afterwards.
    pub(super) reconciled: usize,
    /// Carried out and in neither list of the journal, or confirmed and not carried out.
    pub(super) lost: usize,
    /// Carried out more than once under one key.
    pub(super) repeated: usize,
}

impl Journal {
    /// Reads every run of the show.
    pub(super) async fn read(store: &impl TxStore) -> Result<Self, DemoError> {
        let mut journal = Self::default();
        for row in runs(store, Vec::new()).await? {
            journal.add(store, row.run.id).await?;
        }
        Ok(journal)
    }

    /// Reads one run.
    pub(super) async fn add(&mut self, store: &impl TxStore, run: RunId) -> Result<(), DemoError> {
        let stored = store.run_load(LoadRequest { run, after: None }).await;
        let stored = stored.during("a run cannot be read")?;
        if let Some(stored) = stored {
            let entries = stored.journal.during("the journal of a run cannot be read")?;
            self.fold(run, &entries);
        }
        Ok(())
    }

    fn fold(&mut self, run: RunId, entries: &[JournalEntry]) {
        for fact in entries.iter().flat_map(|entry| &entry.facts) {
            match fact {
                // Only ambiguous calls are marked, and the application has one ambiguous action.
                Fact::CallMarked { step, .. } => {
                    self.0.insert(key(run, step), Said::Open);
                }
                Fact::StepCompleted { step, by, .. } => {
                    self.settle(run, step, Said::Confirmed(*by));
                }
                Fact::StepFailed { step, effect: Some(_), .. }
                | Fact::NothingHappened { step, .. } => self.settle(run, step, Said::Not),
                Fact::InputsComputed { .. }
                | Fact::BranchTaken { .. }
                | Fact::Charged(_)
                | Fact::ValuesResolved { .. }
                | Fact::StepPlanned { .. }
                | Fact::OutcomeUnknown { .. }
                | Fact::OutputRefused { .. }
                | Fact::StepFailed { effect: None, .. }
                | Fact::DeadlineSet { .. }
                | Fact::CancelRequested(_)
                | Fact::AttentionCalled { .. }
                | Fact::ReconcileAsked { .. }
                | Fact::Retried
                | Fact::Ended { .. }
                | Fact::Claimed { .. }
                | Fact::TakenOver { .. }
                | Fact::FenceRaised
                | Fact::Released { .. }
                | Fact::Requeued { .. }
                | Fact::Parked { .. }
                | Fact::Woken { .. } => {}
            }
        }
    }

    /// Steps that were never marked are no charges.
    fn settle(&mut self, run: RunId, step: &StepKey, said: Said) {
        if let Some(known) = self.0.get_mut(&key(run, step)) {
            *known = said;
        }
    }

    /// What it says about one charge.
    pub(super) fn said(&self, effect_key: &str) -> Option<Said> {
        self.0.get(effect_key).copied()
    }

    fn count(&self, is: impl Fn(Said) -> bool) -> usize {
        self.0.values().filter(|said| is(**said)).count()
    }
}

impl Books {
    /// Reads the provider's log.
    pub(super) fn read(folder: &Folder) -> Result<Self, DemoError> {
        let text = fs::read_to_string(folder.charges());
        let text = text.during("the provider's log cannot be read")?;
        let mut books = Self::default();
        for line in text.lines() {
            let charge = serde_json::from_str(line);
            books.add(charge.during("the provider's log has a line that is no charge")?);
        }
        Ok(books)
    }

    fn add(&mut self, charge: Charge) {
        let times = self.0.get(&charge.effect_key).map_or(0, |(times, _)| *times);
        self.0.insert(charge.effect_key.clone(), (times + 1, charge));
    }

    /// The charge of a key.
    pub(super) fn find(&self, effect_key: &str) -> Option<&Charge> {
        self.0.get(effect_key).map(|(_, charge)| charge)
    }
}

impl Tally {
    /// Compares.
    pub(super) fn of(books: &Books, journal: &Journal) -> Self {
        let unknown = books
            .0
            .keys()
            .filter(|key| !matches!(journal.said(key), Some(Said::Open | Said::Confirmed(_))));
        let is_confirmed = |said: &Said| matches!(said, Said::Confirmed(_));
        let imagined = journal
            .0
            .iter()
            .filter(|(key, said)| is_confirmed(said) && !books.0.contains_key(*key));
        Self {
            provider: books.0.len(),
            confirmed: journal.count(|said| is_confirmed(&said)),
            open: journal.count(|said| said == Said::Open),
            reconciled: journal.count(|said| said == Said::Confirmed(SaidBy::Reconcile)),
            lost: unknown.count() + imagined.count(),
            repeated: books.0.values().filter(|(times, _)| *times > 1).count(),
        }
    }
}

/// The runs of the show in some states; none is all.
pub(super) async fn runs(
    store: &impl TxStore,
    states: Vec<RunState>,
) -> Result<Vec<RunRow>, DemoError> {
    let app = Some(APP.into());
    let mut filter =
        RunFilter { app, states, mode: Some(Mode::Execute), limit: PAGE, ..RunFilter::default() };
    let mut rows = Vec::new();
    loop {
        let page = store.run_list(filter.clone()).await.during("the runs cannot be listed")?;
        rows.extend(page.rows);
        if page.next.is_none() {
            return Ok(rows);
        }
        filter.cursor = page.next;
    }
}

fn key(run: RunId, step: &StepKey) -> String {
    EffectKey::of(run, step).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(effect_key: &str) -> Charge {
        Charge {
            effect_key: effect_key.to_owned(),
            id: "ch_1".to_owned(),
            cents: 1,
            currency: "EUR".to_owned(),
            card: "card-good".to_owned(),
            reference: "run".to_owned(),
        }
    }

    #[track_caller]
    fn check(books: &[&str], journal: &[(&str, Said)], lost: usize, repeated: usize) {
        let mut all = Books::default();
        books.iter().for_each(|key| all.add(charge(key)));
        let journal = journal.iter().map(|(key, said)| ((*key).to_owned(), *said)).collect();
        let tally = Tally::of(&all, &Journal(journal));
        assert_eq!((tally.lost, tally.repeated), (lost, repeated), "{tally:?}");
    }

    #[test]
    fn every_disagreement_is_counted() {
        let confirmed = Said::Confirmed(SaidBy::Action);
        check(&["a", "b"], &[("a", confirmed), ("b", Said::Open), ("c", Said::Not)], 0, 0);
        check(&["a"], &[], 1, 0);
        check(&["a"], &[("a", Said::Not)], 1, 0);
        check(&[], &[("a", confirmed)], 1, 0);
        check(&["a", "a"], &[("a", confirmed)], 0, 1);
        check(&[], &[("a", Said::Open)], 0, 0);
    }
}

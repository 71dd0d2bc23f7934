//! The world outside: what actions did there, in order, whoever asked for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::{EffectClass, EffectKey, RunId, StepKey};

use super::people::Verb;

/// What an action did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    /// Its `run` was called.
    Called,
    /// The provider carried the effect out: for the first time under this key.
    CarriedOut,
    /// The provider was asked what became of it.
    Asked,
    /// It wrote a row with this key, on the kernel's transaction: whether that committed is another question.
    Wrote(String),
    /// The fence let it through, on a transaction of its own, in this generation.
    PassedFence(u64),
    /// Not the action: a person had a word about it. Whether the store has heard it is another question.
    Attended(Verb),
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which process, from 1 in the order of their starts.
    pub process: u32,
    /// What the action promises.
    pub class: EffectClass,
    /// Its run; a pure action does not know it.
    pub run: Option<RunId>,
    /// Its step.
    pub step: StepKey,
    /// The effect key that it was given; pure and transactional actions have none.
    pub key: Option<EffectKey>,
    /// What it did.
    pub did: Did,
}

/// A provider that logs everything and outlives every process. Clones are the same provider.
#[derive(Debug, Clone, Default)]
pub struct Provider(Arc<Mutex<Vec<Entry>>>);

impl Provider {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.entries().clone()
    }

    /// Whether it has carried out an effect under this key.
    #[must_use]
    pub fn knows(&self, key: &EffectKey) -> bool {
        let is_it = |entry: &Entry| entry.did == Did::CarriedOut && entry.key.as_ref() == Some(key);
        self.entries().iter().any(is_it)
    }

    /// What was done under this key, in order.
    #[must_use]
    pub fn done(&self, key: &EffectKey) -> Vec<Did> {
        let entries = self.entries();
        let of_key = entries.iter().filter(|entry| entry.key.as_ref() == Some(key));
        of_key.map(|entry| entry.did.clone()).collect()
    }

    pub(crate) fn add(&self, entry: Entry) {
        self.entries().push(entry);
    }

    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The one way a run is written.

use crate::{
    Amounts, Fact, Receipt, RestoreInvalid, Run, Stamp, StepCharge, StepKey, Timestamp, apply,
};

/// One write of one run: what it was decided on, what the run is then, and what the journal gets. Stores turn it
/// into rows, atomically; they never look into the facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The store refuses the commit if the row has another generation or revision.
    pub before: Stamp,
    /// The run after all facts.
    pub after: Run,
    /// What is appended to the journal; absent if no fact is journaled.
    pub journal: Option<JournalText>,
    /// What is charged to the budget of the root run, with it or not at all.
    pub charge: Option<Amounts>,
    /// The steps whose outcome it records. The signal on which one of them rests is spent with it; a run that ends
    /// without an outcome, because it was canceled or given up, spends none.
    pub outcomes: Vec<StepKey>,
    /// Written with it, for what a person did.
    pub audit: Option<Audit>,
}

/// Facts as text, encoded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalText {
    /// Journaled facts of the run before these.
    pub seq: u64,
    /// How many these are.
    pub count: u64,
    /// A JSON array.
    pub facts: String,
}

/// Who did what to a run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Who.
    pub actor: String,
    /// The verb: `cancel`, `resolve`, `retry`.
    pub verb: String,
    /// Why.
    pub reason: String,
    /// JSON: what the verb was given.
    pub details: String,
}

/// What a store answers to a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The run as stored. Differs from the commit's `after` only where a park found its signal already there.
    pub run: Run,
    /// Opens the commands that waited for these facts.
    pub receipt: Receipt,
    /// The store's time.
    pub now: Timestamp,
}

/// A row of the journal, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// Journaled facts of the run before these.
    pub seq: u64,
    /// The writer's generation.
    pub generation: u64,
    /// The store's time.
    pub at: Timestamp,
    /// In order.
    pub facts: Vec<Fact>,
}

impl Commit {
    /// Applies facts to a run and encodes those that are journaled.
    #[must_use]
    pub fn new(before: &Run, facts: &[Fact]) -> Self {
        let after = facts.iter().fold(before.clone(), apply);
        Self::of(before.stamp(), after, facts)
    }

    /// A commit whose facts were applied already, since `before` was the stored row.
    #[must_use]
    pub fn of(before: Stamp, mut after: Run, facts: &[Fact]) -> Self {
        // What an ended run absorbed did not happen: it is not journaled either.
        let happened = usize::try_from(after.seq.saturating_sub(before.seq)).unwrap_or(usize::MAX);
        let journaled = facts.iter().filter(|fact| fact.is_journaled());
        let journaled: Vec<&Fact> = journaled.take(happened).collect();
        let journal = (!journaled.is_empty()).then(|| JournalText {
            seq: before.seq,
            count: journaled.len() as u64,
            // Facts hold JSON values and text only: encoding them cannot fail.
            facts: serde_json::to_string(&journaled).unwrap_or_default(),
        });
        let charge = charge_of(&journaled);
        let outcomes = journaled.iter().filter_map(|fact| fact.outcome_of()).cloned().collect();
        after.revision = before.revision.saturating_add(1);
        let bytes = journal.as_ref().map_or(0, |journal| journal.facts.len() as u64);
        after.journal_bytes = after.journal_bytes.saturating_add(bytes);
        Self { before, after, journal, charge, outcomes, audit: None }
    }

    /// With the audit row of the person who did it.
    #[must_use]
    pub fn audited(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }
}

/// What facts charge in all.
fn charge_of(facts: &[&Fact]) -> Option<Amounts> {
    let mut charge = None;
    for fact in facts {
        if let Fact::Charged(StepCharge { amounts, .. }) = fact {
            charge.get_or_insert_with(Amounts::default).add_all(amounts);
        }
    }
    charge
}

impl JournalEntry {
    /// Reads a stored row.
    ///
    /// # Errors
    /// [`RestoreInvalid`] if the text is not what a kernel wrote, or of a kind this build does not know.
    pub fn read(
        seq: u64,
        generation: u64,
        at: Timestamp,
        facts: &str,
    ) -> Result<Self, RestoreInvalid> {
        match crate::payload::from_stored(facts) {
            Ok(facts) => Ok(Self { seq, generation, at, facts }),
            Err(error) => {
                let error = error.to_string();
                // What a reader of JSON would have taken instead is of no use to anybody.
                let why = error.split(", expected one of").next().unwrap_or(&error);
                Err(RestoreInvalid { what: format!("journal row {seq} cannot be read: {why}") })
            }
        }
    }

    /// Whether rows follow each other without a gap, from `seq` on, up to `end`.
    ///
    /// # Errors
    /// [`RestoreInvalid`] names the first gap.
    pub fn check_contiguous(entries: &[Self], seq: u64, end: u64) -> Result<(), RestoreInvalid> {
        let mut expected = seq;
        for entry in entries {
            if entry.seq != expected {
                let what = format!("journal row {expected} is missing, the next is {}", entry.seq);
                return Err(RestoreInvalid { what });
            }
            expected = expected.saturating_add(entry.facts.len() as u64);
        }
        if expected == end {
            Ok(())
        } else {
            let what = format!("the run has {end} recorded facts, the journal has {expected}");
            Err(RestoreInvalid { what })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, End, Mode, Origin, RunId, Scope, VersionId, WorkflowKey};

    #[test]
    fn what_an_ended_run_absorbs_is_not_journaled() {
        let id = RunId::from_bytes([1; 16]);
        let origin = Origin {
            app: App::from("shop"),
            scope: Scope::from("north"),
            workflow: WorkflowKey::from("restock"),
            version: VersionId::from_bytes([2; 16]),
            footprint: String::new(),
            mode: Mode::Execute,
            event: None,
            trigger: None,
            occurred_at: Timestamp::default(),
            root: id,
            parent: None,
            created_at: Timestamp::default(),
        };
        let inputs = Fact::InputsComputed { inputs: serde_json::json!({}) };
        let ended = Fact::Ended { end: End::Canceled, at: Timestamp::default() };
        let commit = Commit::new(&Run::new(id, origin), &[inputs.clone(), ended, inputs.clone()]);
        assert_eq!((commit.after.seq, commit.journal.as_ref().unwrap().count), (2, 2));
        assert_eq!(commit.outcomes, []);
        let late = Commit::new(&commit.after, &[inputs]);
        assert_eq!((late.after.seq, late.journal), (2, None));
    }
}

//! A run as a row: how its state becomes columns, and how a row is read back.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type};
use uuid::Uuid;

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, Attention, EffectState, Failure, Lease, Micros, Mode, OpenEffect, Origin, Parent, Phase,
    Resume, Run, RunId, RunState, Scope, StepKey, StoreError, Timestamp, Todo, Wait, Wake,
    WorkflowKey,
};

use crate::error::Fault;
use crate::keys::Key;

/// Counters of the core are far below this; PostgreSQL has signed integers only.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// JSON text of something that is read back whole.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault(StoreError::Refused(Box::new(error))))
}

pub(crate) fn json_opt<T: Serialize>(value: Option<&T>) -> Result<Option<String>, Fault> {
    value.map(json).transpose()
}

/// What of a row a write needs to know before it.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) id: RunId,
    pub(crate) generation: u64,
    pub(crate) revision: u64,
    pub(crate) state: RunState,
    pub(crate) lease: Option<Lease>,
    pub(crate) claim_nonce: Option<i64>,
    pub(crate) canceled: bool,
    pub(crate) has_effect: bool,
    /// The signal that ended the open step's wait, and that step.
    pub(crate) signal: Option<i64>,
    pub(crate) resume_step: Option<StepKey>,
    /// Whether it was the end of that step's children.
    pub(crate) by_children: bool,
    /// Whether it is a child that is held back.
    pub(crate) held: bool,
}

impl Head {
    /// Reads what `run/heads` selects.
    pub(crate) fn read(row: &PgRow) -> Result<Self, Fault> {
        let fields = Fields::of(row)?;
        let resume: Option<Resume> = fields.opt_json("resume")?;
        Ok(Self {
            id: fields.run,
            generation: fields.count("generation")?,
            revision: fields.count("revision")?,
            state: fields.state()?,
            lease: fields.lease()?,
            claim_nonce: fields.get("claim_nonce")?,
            canceled: fields.get("canceled")?,
            has_effect: fields.get("has_effect")?,
            signal: fields.get("signal")?,
            by_children: resume.as_ref().is_some_and(|resume| resume.wake == Wake::Children),
            resume_step: resume.map(|resume| resume.step),
            held: fields.get::<Option<i64>>("claimable_at")? == Some(Timestamp::MAX.micros()),
        })
    }
}

/// Reads a whole row: what a write needs, and the run. The result is left null.
pub(crate) fn read_run(row: &PgRow) -> Result<(Head, Run), Fault> {
    let fields = Fields::of(row)?;
    let effect = fields.effect()?;
    let run = Run {
        id: fields.run,
        origin: Arc::new(fields.origin()?),
        generation: fields.count("generation")?,
        revision: fields.count("revision")?,
        seq: fields.count("seq")?,
        journal_bytes: fields.count("journal_bytes")?,
        attempt: fields.count("attempt")?,
        failures: fields.small("failures")?,
        step_attempt: fields.small("step_attempt")?,
        started_at: fields.opt_time("started_at")?,
        ended_at: fields.opt_time("ended_at")?,
        cancel: fields.opt_json("cancel")?,
        deadline: fields.opt_json("deadline")?,
        charged: fields.opt_json("charged")?,
        resume: fields.opt_json("resume")?,
        last_failure: fields.opt_json("last_failure")?,
        phase: fields.phase(effect)?,
    };
    let head = Head {
        id: fields.run,
        generation: run.generation,
        revision: run.revision,
        state: run.state(),
        lease: run.lease().cloned(),
        claim_nonce: fields.get("claim_nonce")?,
        canceled: run.cancel.is_some(),
        has_effect: run.effect().is_some(),
        signal: fields.get("signal")?,
        resume_step: run.resume.as_ref().map(|resume| resume.step.clone()),
        by_children: run.resume.as_ref().is_some_and(|resume| resume.wake == Wake::Children),
        held: run.is_held(),
    };
    Ok((head, run))
}

/// What a state has beside columns of its own.
#[derive(Serialize, Deserialize)]
struct Sentence {
    message: Option<String>,
}

/// JSON text of what a phase has beside columns of its own.
pub(crate) fn detail_of(phase: &Phase) -> Result<Option<String>, Fault> {
    match phase {
        Phase::Queued { .. } | Phase::Running { .. } => Ok(None),
        Phase::Waiting(wait) => json(wait).map(Some),
        Phase::NeedsAttention(Attention { error, .. }) | Phase::Failed { error, .. } => {
            json(error).map(Some)
        }
        Phase::Succeeded { message, .. } | Phase::Canceled { message } => {
            json(&Sentence { message: message.clone() }).map(Some)
        }
    }
}

/// Typed access to a row of a run; what cannot be read names the run.
pub(crate) struct Fields<'r> {
    row: &'r PgRow,
    pub(crate) run: RunId,
}

impl<'r> Fields<'r> {
    pub(crate) fn of(row: &'r PgRow) -> Result<Self, Fault> {
        Ok(Self { row, run: RunId::of_key(row.try_get("id")?) })
    }

    fn corrupt(&self, what: String) -> Fault {
        Fault(StoreError::Corrupt { run: self.run, what })
    }

    pub(crate) fn get<T>(&self, column: &str) -> Result<T, Fault>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        let read = self.row.try_get(column);
        read.map_err(|error| self.corrupt(format!("column {column}: {error}")))
    }

    pub(crate) fn count(&self, column: &str) -> Result<u64, Fault> {
        let number: i64 = self.get(column)?;
        number
            .try_into()
            .map_err(|_| self.corrupt(format!("column {column}: {number} is negative")))
    }

    fn small(&self, column: &str) -> Result<u32, Fault> {
        let number: i64 = self.get(column)?;
        number
            .try_into()
            .map_err(|_| self.corrupt(format!("column {column}: {number} is out of range")))
    }

    pub(crate) fn time(&self, column: &str) -> Result<Timestamp, Fault> {
        self.get(column).map(Timestamp::from_micros)
    }

    fn opt_time(&self, column: &str) -> Result<Option<Timestamp>, Fault> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_micros))
    }

    fn id<K: Key>(&self, column: &str) -> Result<K, Fault> {
        self.get::<Uuid>(column).map(K::of_key)
    }

    fn opt_id<K: Key>(&self, column: &str) -> Result<Option<K>, Fault> {
        Ok(self.get::<Option<Uuid>>(column)?.map(K::of_key))
    }

    pub(crate) fn text(&self, column: &str) -> Result<String, Fault> {
        self.get(column)
    }

    fn opt_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Fault> {
        let Some(text) = self.get::<Option<&str>>(column)? else { return Ok(None) };
        let read = from_stored(text);
        read.map(Some).map_err(|error| self.corrupt(format!("column {column}: {error}")))
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, Fault> {
        let missing = || self.corrupt(format!("column {column} is empty"));
        self.opt_json(column)?.ok_or_else(missing)
    }

    pub(crate) fn state(&self) -> Result<RunState, Fault> {
        self.get::<&str>("state")?.parse().map_err(|what| self.corrupt(what))
    }

    fn origin(&self) -> Result<Origin, Fault> {
        let mode = self.get::<&str>("mode")?;
        let known = [Mode::Execute, Mode::DryRun].into_iter().find(|known| known.as_str() == mode);
        let parent = match self.opt_id("parent_run")? {
            None => None,
            Some(run) => Some(Parent {
                run,
                step: self.text("parent_step")?.into(),
                index: self.small("parent_index")?,
                depth: self.small("parent_depth")?,
            }),
        };
        Ok(Origin {
            app: App::from(self.text("app")?),
            scope: Scope::from(self.text("scope")?),
            workflow: WorkflowKey::from(self.text("workflow")?),
            version: self.id("version")?,
            footprint: self.text("footprint")?,
            mode: known.ok_or_else(|| self.corrupt(format!("`{mode}` is not a mode")))?,
            event: self.opt_id("event")?,
            trigger: self.get("trigger_kind")?,
            occurred_at: self.time("occurred_at")?,
            root: self.id("root")?,
            parent,
            created_at: self.time("created_at")?,
        })
    }

    fn lease(&self) -> Result<Option<Lease>, Fault> {
        let Some(owner) = self.opt_id("lease_owner")? else { return Ok(None) };
        Ok(Some(Lease {
            owner,
            until: self.time("lease_until")?,
            length: Micros::new(self.get("lease_length")?),
        }))
    }

    fn effect(&self) -> Result<Option<OpenEffect>, Fault> {
        let Some(step) = self.get::<Option<String>>("effect_step")? else { return Ok(None) };
        let state = self.get::<&str>("effect_state")?;
        let known = EFFECT_STATES.iter().copied().find(|known| known.as_str() == state);
        Ok(Some(OpenEffect {
            step: StepKey::from(step),
            action: self.text("effect_action")?,
            state: known
                .ok_or_else(|| self.corrupt(format!("`{state}` is not a state of an effect")))?,
            since: self.time("effect_since")?,
            evidence: self.get("effect_evidence")?,
        }))
    }

    fn phase(&self, effect: Option<OpenEffect>) -> Result<Phase, Fault> {
        let todo = |effect: Option<OpenEffect>| effect.map_or(Todo::Steps, Todo::Reconcile);
        Ok(match self.state()? {
            RunState::Queued => {
                Phase::Queued { ready_at: self.time("claimable_at")?, todo: todo(effect) }
            }
            RunState::Running => {
                let missing = || self.corrupt("a running run without a lease".to_owned());
                let lease = self.lease()?.ok_or_else(missing)?;
                Phase::Running { lease, todo: todo(effect) }
            }
            RunState::Waiting => Phase::Waiting(self.json::<Wait>("detail")?),
            RunState::NeedsAttention => {
                let error = self.json::<Failure>("detail")?;
                Phase::NeedsAttention(Attention { error, effect })
            }
            RunState::Succeeded => {
                let message = self.json::<Sentence>("detail")?.message;
                Phase::Succeeded { result: Value::Null, message }
            }
            RunState::Failed => {
                Phase::Failed { error: self.json::<Failure>("detail")?, abandoned: effect }
            }
            RunState::Canceled => {
                Phase::Canceled { message: self.json::<Sentence>("detail")?.message }
            }
        })
    }
}

const EFFECT_STATES: [EffectState; 6] = [
    EffectState::Marked,
    EffectState::Ambiguous,
    EffectState::Succeeded,
    EffectState::Failed,
    EffectState::NotPerformed,
    EffectState::AbandonedUnknown,
];

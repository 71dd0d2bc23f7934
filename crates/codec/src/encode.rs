//! The way in.

use serde_json::{Map, Value};
use surefoot_kernel_core::payload::{Payload, from_stored};
use surefoot_kernel_core::{
    Audit, CheckedEvent, CheckedSignal, Children, Commit, Fact, JournalText, NewTask, StoreError,
    TaskEnd, actor_of,
};

use crate::hidden::HiddenParts;
use crate::parts::{self, Part};
use crate::store::Site;
use crate::{CodecError, CodecFault, PayloadCodec, PayloadKind, envelope};

/// Encodes what belongs to one site.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'c> {
    codec: &'c dyn PayloadCodec,
    site: Site<'c>,
}

impl<'c> Encoder<'c> {
    pub(crate) const fn new(codec: &'c dyn PayloadCodec, site: Site<'c>) -> Self {
        Self { codec, site }
    }

    fn text(&self, kind: PayloadKind, plain: &str) -> Result<String, CodecFault> {
        let encoded = self.codec.encode(&self.site.place(kind), plain);
        let encoded = encoded.map_err(|error| CodecFault::Encode { kind, error })?;
        if encoded.contains('\0') {
            let why = "what it gave has a NUL, which no store keeps".to_owned();
            return Err(CodecFault::Encode { kind, error: CodecError::Refused { why } });
        }
        Ok(envelope::wrap(self.site.scope.is_none(), &encoded))
    }

    fn part(&self, kind: PayloadKind, part: Part<'_>) -> Result<(), CodecFault> {
        match part {
            Part::Text(text) => *text = self.text(kind, text)?,
            // What is nothing is kept as nothing: lists leave results null that they did not read.
            Part::Value(Value::Null) => {}
            Part::Value(value) => *value = Value::String(self.text(kind, &value.to_string())?),
        }
        Ok(())
    }

    /// Data and context keep their bytes inside of the encoded text.
    pub(crate) fn event(&self, mut event: CheckedEvent) -> Result<CheckedEvent, CodecFault> {
        event.data = self.payload(PayloadKind::EventData, event.data)?;
        event.context = self.payload(PayloadKind::EventContext, event.context)?;
        event.authorization = self.authorization(event.authorization)?;
        Ok(event)
    }

    pub(crate) fn signal(&self, mut signal: CheckedSignal) -> Result<CheckedSignal, CodecFault> {
        signal.data = self.payload(PayloadKind::SignalData, signal.data)?;
        Ok(signal)
    }

    /// What is kept of a task's request.
    pub(crate) fn task(&self, mut new: NewTask) -> Result<NewTask, CodecFault> {
        new.request = self.payload(PayloadKind::TaskRequest, new.request)?;
        Ok(new)
    }

    /// What is kept of how a task ended.
    pub(crate) fn task_end(&self, end: TaskEnd) -> Result<TaskEnd, CodecFault> {
        Ok(match end {
            TaskEnd::Succeeded { output } => {
                TaskEnd::Succeeded { output: self.payload(PayloadKind::TaskOutput, output)? }
            }
            TaskEnd::Failed { code, message } => {
                TaskEnd::Failed { code, message: self.text(PayloadKind::Message, &message)? }
            }
            TaskEnd::Again { .. } | TaskEnd::GivenBack { .. } => end,
        })
    }

    fn payload(&self, kind: PayloadKind, payload: Payload) -> Result<Payload, CodecFault> {
        if payload.value().is_null() {
            return Ok(payload);
        }
        let text = Value::String(self.text(kind, payload.text())?);
        Payload::from_value(&text).map_err(|error| {
            let error = CodecError::Refused { why: error.to_string() };
            CodecFault::Encode { kind, error }
        })
    }

    /// A store takes the actor from the authorization: it finds the encoded one where it looks for it.
    pub(crate) fn authorization(
        &self,
        authorization: Option<Value>,
    ) -> Result<Option<Value>, CodecFault> {
        let is_nothing =
            |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let Some(value) = authorization.as_ref().filter(|value| !is_nothing(value)) else {
            return Ok(authorization);
        };
        let mut kept = Map::new();
        if let Some(actor) = actor_of(Some(value)) {
            let actor = self.text(PayloadKind::Actor, &actor.to_string())?;
            kept.insert("actor".to_owned(), Value::String(actor));
        }
        let whole = self.text(PayloadKind::Authorization, &value.to_string())?;
        kept.insert("encoded".to_owned(), Value::String(whole));
        Ok(Some(Value::Object(kept)))
    }

    pub(crate) fn children(&self, children: &Children) -> Result<Children, CodecFault> {
        children.with_inputs(|inputs| {
            if inputs == "null" {
                return Ok(inputs.to_owned());
            }
            let text = self.text(PayloadKind::EventData, inputs)?;
            Ok(Value::String(text).to_string())
        })
    }

    /// The numbers of a commit are those of the plain run: what limits look at does not change.
    pub(crate) fn commit(
        &self,
        mut commit: Commit,
        mut hidden: HiddenParts,
    ) -> Result<Commit, StoreError> {
        parts::of_run(&mut commit.after, &mut |kind, mut part| {
            if hidden.put_back(kind, &mut part) { Ok(()) } else { self.part(kind, part) }
        })?;
        commit.journal = commit.journal.map(|journal| self.journal(journal)).transpose()?;
        commit.audit = commit.audit.map(|audit| self.audit(audit)).transpose()?;
        Ok(commit)
    }

    fn journal(&self, journal: JournalText) -> Result<JournalText, StoreError> {
        let refused = |error: serde_json::Error| StoreError::Refused(Box::new(error));
        let mut facts: Vec<Fact> = from_stored(&journal.facts).map_err(refused)?;
        for fact in &mut facts {
            parts::of_fact(fact, &mut |kind, part| self.part(kind, part))?;
        }
        let facts = serde_json::to_string(&facts).map_err(refused)?;
        Ok(JournalText { facts, ..journal })
    }

    fn audit(&self, audit: Audit) -> Result<Audit, CodecFault> {
        let text = self.text(PayloadKind::AuditDetails, &audit.details)?;
        Ok(Audit { details: Value::String(text).to_string(), ..audit })
    }
}

//! The way out.

use serde_json::Value;
use surefoot_kernel_core::payload::{Payload, from_stored};
use surefoot_kernel_core::{
    AuditRow, ChildResult, Invocation, JournalEntry, OpenEffect, Run, SignalRow, Task, TaskState,
};

use crate::parts::{self, Part};
use crate::store::Site;
use crate::{CodecError, CodecFault, PayloadCodec, PayloadKind, envelope, hidden};

/// Decodes what belongs to one site. It goes on behind a payload that cannot be decoded, with a placeholder in its
/// place: whoever reads decides what that means.
pub(crate) struct Decoder<'c> {
    codec: &'c dyn PayloadCodec,
    site: Site<'c>,
    redacts: bool,
    /// The first that could not be decoded.
    fault: Option<CodecFault>,
}

impl<'c> Decoder<'c> {
    pub(crate) const fn new(codec: &'c dyn PayloadCodec, site: Site<'c>, redacts: bool) -> Self {
        Self { codec, site, redacts, fault: None }
    }

    /// The first payload that could not be decoded so far.
    pub(crate) fn take_fault(&mut self) -> Option<CodecFault> {
        self.fault.take()
    }

    pub(crate) fn run(&mut self, run: &mut Run) {
        self.visit(|visit| parts::of_run(run, visit));
    }

    pub(crate) fn invocation(&mut self, invocation: &mut Invocation) {
        self.visit(|visit| parts::of_invocation(invocation, visit));
    }

    pub(crate) fn journal(&mut self, journal: &mut [JournalEntry]) {
        for fact in journal.iter_mut().flat_map(|entry| &mut entry.facts) {
            self.visit(|visit| parts::of_fact(fact, visit));
        }
    }

    pub(crate) fn child(&mut self, child: &mut ChildResult) {
        self.visit(|visit| parts::of_child(child, visit));
    }

    pub(crate) fn effect(&mut self, effect: &mut OpenEffect) {
        self.visit(|visit| parts::of_effect(effect, visit));
    }

    pub(crate) fn signal(&mut self, row: &mut SignalRow) {
        self.part(PayloadKind::SignalData, Part::Value(&mut row.data));
    }

    /// Details are JSON text; the encoded ones are a JSON string.
    pub(crate) fn audit(&mut self, row: &mut AuditRow) {
        let kept = from_stored::<Value>(&row.details);
        let kept = kept.ok().and_then(|value| value.as_str().map(str::to_owned));
        let kept = kept.filter(|text| envelope::unwrap(text).is_some());
        let mut details = match kept {
            Some(text) => Value::String(text),
            None if self.redacts => from_stored(&row.details).unwrap_or_default(),
            None => return,
        };
        self.part(PayloadKind::AuditDetails, Part::Value(&mut details));
        row.details = details.to_string();
    }

    pub(crate) fn task(&mut self, task: &mut Task) {
        self.payload(PayloadKind::TaskRequest, &mut task.request);
        match &mut task.state {
            TaskState::Succeeded { output } => self.payload(PayloadKind::TaskOutput, output),
            TaskState::Failed { message, .. } => {
                self.part(PayloadKind::Message, Part::Text(message));
            }
            TaskState::Queued | TaskState::Running | TaskState::Canceled => {}
        }
    }

    /// Byte for byte as it was encoded: it may be compared.
    fn payload(&mut self, kind: PayloadKind, payload: &mut Payload) {
        let Some(kept) = payload.value().as_str().filter(|it| envelope::unwrap(it).is_some())
        else {
            return;
        };
        let mut text = kept.to_owned();
        self.part(kind, Part::Text(&mut text));
        match Payload::parse(&text) {
            Ok(plain) => *payload = plain,
            // A placeholder is none either: then there is a fault already.
            Err(_) => {
                let error = CodecError::Damaged { why: "it is no JSON".to_owned() };
                self.fault.get_or_insert(CodecFault::Decode { kind, error });
            }
        }
    }

    /// Decodes one part, and says whether what is shown of it is not all there is.
    pub(crate) fn hides(&mut self, kind: PayloadKind, part: Part<'_>) -> bool {
        self.part(kind, part);
        self.fault.take().is_some() || self.redacts
    }

    fn visit(&mut self, parts: impl FnOnce(&mut parts::Visit<'_>) -> Result<(), CodecFault>) {
        // Nothing is refused here: what cannot be decoded is remembered.
        let _ = parts(&mut |kind, part| {
            self.part(kind, part);
            Ok(())
        });
    }

    fn part(&mut self, kind: PayloadKind, mut part: Part<'_>) {
        match self.decoded(kind, &mut part) {
            Ok(()) if self.redacts => self.redact(kind, part),
            Ok(()) => {}
            Err((kept, fault)) => {
                part.set(Value::String(hidden::placeholder(&kept)));
                self.fault.get_or_insert(fault);
            }
        }
    }

    /// Replaces a kept text by what it stands for; a plain one was stored before there was a codec.
    fn decoded(&self, kind: PayloadKind, part: &mut Part<'_>) -> Result<(), (String, CodecFault)> {
        let Some((is_app_wide, encoded)) = part.text().and_then(envelope::unwrap) else {
            return Ok(());
        };
        // A run resumes from a signal without knowing whether that was app-wide: the text does.
        let scope = self.site.scope.filter(|_| !is_app_wide);
        let plain = self.codec.decode(&Site { scope, ..self.site }.place(kind), encoded);
        let value = plain.and_then(|plain| match part {
            Part::Text(_) => Ok(Value::String(plain)),
            Part::Value(_) => json(&plain),
        });
        match value {
            Ok(value) => {
                part.set(value);
                Ok(())
            }
            Err(error) => {
                let kept = part.text().unwrap_or_default().to_owned();
                Err((kept, CodecFault::Decode { kind, error }))
            }
        }
    }

    fn redact(&self, kind: PayloadKind, mut part: Part<'_>) {
        let value = part.take();
        if !value.is_null() {
            part.set(self.codec.redact(&self.site.place(kind), value));
        }
    }
}

fn json(plain: &str) -> Result<Value, CodecError> {
    // The parser's words could quote the payload.
    from_stored(plain).map_err(|error| CodecError::Damaged {
        why: format!("it is no JSON at line {}, column {}", error.line(), error.column()),
    })
}

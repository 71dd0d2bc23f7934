//! What a handle does not show of a run: what it cannot decode, and what it redacts. A run is read, decided on and
//! written as a whole, so a write has to put back what its writer could not see.

use serde_json::Value;
use surefoot_kernel_core::{Run, canonical};

use crate::PayloadKind;
use crate::decode::Decoder;
use crate::parts::{self, Part};

const BEFORE: &str = "(cannot be decoded; the kept text has the hash ";
const AFTER: &str = ")";

/// What stands where a text cannot be decoded. It names that text, so that it is not taken for another one.
pub(crate) fn placeholder(kept: &str) -> String {
    let hash = canonical::hash(&Value::String(kept.to_owned()));
    format!("{BEFORE}{hash}{AFTER}")
}

/// Whether something in a run may be a placeholder. People may write one too: then no kept text has its hash.
pub(crate) fn has_placeholders(run: &mut Run) -> bool {
    let is_one = |text: &str| text.starts_with(BEFORE) && text.ends_with(AFTER);
    let mut found = false;
    parts::all_of_run(run, |_, part| {
        found |= part.text().is_some_and(is_one);
    });
    found
}

/// The parts of a stored row that look different to the writer.
#[derive(Debug, Default)]
pub(crate) struct HiddenParts(Vec<Hidden>);

#[derive(Debug)]
struct Hidden {
    kind: PayloadKind,
    shown: Value,
    kept: Value,
}

impl HiddenParts {
    /// Of a row as the store has it, to whoever reads it through this decoder.
    pub(crate) fn of(mut row: Run, mut decoder: Decoder<'_>) -> Self {
        let mut parts = Vec::new();
        parts::all_of_run(&mut row, |kind, mut part| {
            let kept = part.value();
            if decoder.hides(kind, part.reborrow()) {
                parts.push(Hidden { kind, shown: part.value(), kept });
            }
        });
        Self(parts)
    }

    /// Puts the kept form of a part back, if the part still looks as it was shown.
    ///
    /// Parts come in the same order as in the stored row, and a decision drops parts or keeps them: of two of a kind
    /// that look the same, each comes back to its own place.
    pub(crate) fn put_back(&mut self, kind: PayloadKind, part: &mut Part<'_>) -> bool {
        let is_it = |hidden: &Hidden| hidden.kind == kind && part.is(&hidden.shown);
        let Some(at) = self.0.iter().position(is_it) else { return false };
        part.set(self.0.remove(at).kept);
        true
    }
}

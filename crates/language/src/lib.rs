//! The authoring language and the typed half of Surefoot: YAML to plans, action traits, modules.

mod bind;
mod check;
mod compile;
mod diagnostic;
mod expression;
mod manifest;
mod source;
mod yaml;

pub use bind::{Bindings, bind, compile_and_bind};
pub use compile::{Compiled, Ir, compile};
pub use diagnostic::{FINDING_CODES, Finding, Findings, Related, Severity};
pub use manifest::{
    ActionDecl, InputDecl, Limits, Manifest, ManifestFinding, NotAManifest, RESERVED_ACTION_NAMES,
    RESERVED_TRIGGER_KINDS, TriggerDecl,
};
pub use source::Span;
pub use yaml::{KEY_MAX_CHARS, SOURCE_MAX_CHARS, SOURCE_MAX_DEPTH, SOURCE_MAX_NODES};

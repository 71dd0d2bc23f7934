//! The authoring language and the typed half of Surefoot: YAML to plans, action traits, modules.

mod manifest;

pub use manifest::{
    ActionDecl, InputDecl, Limits, Manifest, ManifestFinding, NotAManifest, RESERVED_ACTION_NAMES,
    RESERVED_TRIGGER_KINDS, TriggerDecl,
};

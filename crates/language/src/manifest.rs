//! The manifest: what an application's module offers to authors, as plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use surefoot_kernel_core::plan::{Footprint, InputType, ModuleRef, RetryPolicy};
use surefoot_kernel_core::{EffectClass, Micros, canonical};

/// Names that an action may not have: they mean something else where an action's name stands.
pub const RESERVED_ACTION_NAMES: &[&str] = &[
    "if",
    "then",
    "else",
    "switch",
    "cases",
    "default",
    "forEach",
    "as",
    "do",
    "setVariable",
    "succeed",
    "fail",
    "delay",
    "waitFor",
    "runWorkflow",
    "runWorkflows",
    "saveAs",
    "label",
    "timeout",
    "retry",
    "catch",
];

/// Kinds that a trigger of an application may not have.
pub const RESERVED_TRIGGER_KINDS: &[&str] = &["schedule", "start"];

/// What an application's module offers, without any code: enough to compile against.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The module's id; never blank.
    pub id: String,
    /// The module's version, from 1.
    pub version: u32,
    /// What a workflow of this module may not exceed.
    #[serde(default)]
    pub limits: Limits,
    /// Input kinds of the application, beside the built-in types.
    #[serde(default)]
    pub inputs: Vec<InputDecl>,
    /// Trigger kinds.
    #[serde(default)]
    pub triggers: Vec<TriggerDecl>,
    /// Actions.
    #[serde(default)]
    pub actions: Vec<ActionDecl>,
}

/// An input kind of the application.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputDecl {
    /// What authors write as `type`.
    pub name: String,
    /// JSON Schema of its options.
    pub schema: Value,
}

/// A trigger kind of the application.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerDecl {
    /// What authors write under `triggers`.
    pub kind: String,
    /// The event type that it listens to.
    pub event: String,
    /// JSON Schema of the event's data.
    pub schema: Value,
}

/// An action of the application.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionDecl {
    /// What authors write as the step's key.
    pub name: String,
    /// What it does, for people.
    #[serde(default)]
    pub about: String,
    /// What it promises.
    pub class: EffectClass,
    /// JSON Schema of its config.
    pub input: Value,
    /// JSON Schema of its output.
    pub output: Value,
    /// When a failed attempt is tried again.
    #[serde(default)]
    pub retry: RetryPolicy,
    /// How long `NotFound` of a reconcile proves nothing. Ambiguous actions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_after: Option<Micros>,
}

/// What a workflow may not exceed.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Declared inputs; 100 by default.
    pub inputs: u32,
    /// Steps, the inner ones counted too; 1,000 by default.
    pub steps: u32,
    /// Nesting of steps, the top level is 1; 16 by default.
    pub depth: u32,
    /// Expressions; 5,000 by default.
    pub expressions: u32,
    /// Items of one `forEach`; 100 by default.
    pub loop_items: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inputs: 100, steps: 1_000, depth: 16, expressions: 5_000, loop_items: 100 }
    }
}

macro_rules! setters {
    ($($name:ident: $doc:literal),* $(,)?) => {
        impl Limits {
            $(#[doc = $doc] #[must_use] pub const fn $name(mut self, $name: u32) -> Self {
                self.$name = $name;
                self
            })*

            /// Every limit with the name that it has in JSON.
            #[must_use]
            pub fn each(self) -> [(&'static str, u32); 5] {
                [
                    ("inputs", self.inputs),
                    ("steps", self.steps),
                    ("depth", self.depth),
                    ("expressions", self.expressions),
                    ("loopItems", self.loop_items),
                ]
            }
        }
    };
}

setters! {
    inputs: "With this many declared inputs at most.",
    steps: "With this many steps at most.",
    depth: "With steps nested this deep at most.",
    expressions: "With this many expressions at most.",
    loop_items: "With this many items of one `forEach` at most.",
}

/// Something that is wrong with a manifest itself, whatever a workflow says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFinding {
    /// Stable.
    pub code: &'static str,
    /// Where, as in `actions.loadItem.retry`.
    pub path: String,
    /// What, in a sentence.
    pub message: String,
}

impl fmt::Display for ManifestFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (at `{}`)", self.code, self.message, self.path)
    }
}

/// A text is not a manifest.
#[derive(Debug, thiserror::Error)]
#[error("not a manifest: {0}")]
pub struct NotAManifest(#[from] serde_json::Error);

impl Manifest {
    /// Canonical JSON, declarations sorted by name: the order of declaration carries no meaning.
    #[must_use]
    pub fn to_json(&self) -> String {
        canonical::canonical(&self.sorted_value())
    }

    /// Reads what [`Manifest::to_json`] wrote.
    ///
    /// # Errors
    /// The text is not JSON, lacks a member or has an unknown one. [`Manifest::findings`] judges the content.
    pub fn from_json(text: &str) -> Result<Self, NotAManifest> {
        Ok(serde_json::from_str(text)?)
    }

    /// Lower-case hexadecimal SHA-256 of the canonical JSON.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash(&self.sorted_value())
    }

    /// Id and version.
    #[must_use]
    pub fn module(&self) -> ModuleRef {
        ModuleRef { id: self.id.clone(), version: self.version }
    }

    /// The action of a name.
    #[must_use]
    pub fn action(&self, name: &str) -> Option<&ActionDecl> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// The trigger of a kind.
    #[must_use]
    pub fn trigger(&self, kind: &str) -> Option<&TriggerDecl> {
        self.triggers.iter().find(|trigger| trigger.kind == kind)
    }

    /// The application's input kind of a name.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<&InputDecl> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Everything that the module offers: what a worker compares the footprints of plans with.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        Footprint { module: self.id.clone(), uses: self.offered() }
    }

    /// The part of [`Manifest::footprint`] with these keys, such as `action/loadItem`; unknown ones are left out.
    #[must_use]
    pub fn footprint_of(&self, used: &BTreeSet<String>) -> Footprint {
        let mut uses = self.offered();
        uses.retain(|name, _| used.contains(name));
        Footprint { module: self.id.clone(), uses }
    }

    fn offered(&self) -> BTreeMap<String, String> {
        let actions = self.actions.iter().map(|it| (format!("action/{}", it.name), it.hash()));
        let inputs = self.inputs.iter().map(|it| (format!("input/{}", it.name), it.hash()));
        let triggers = self.triggers.iter().map(|it| (format!("trigger/{}", it.kind), it.hash()));
        actions.chain(inputs).chain(triggers).collect()
    }

    fn sorted_value(&self) -> Value {
        let mut sorted = self.clone();
        sorted.actions.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.inputs.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.triggers.sort_by(|a, b| a.kind.cmp(&b.kind));
        serde_json::to_value(sorted).unwrap_or(Value::Null)
    }

    /// What is wrong with the manifest itself: duplicate or reserved names, a blank id, version 0, a limit of 0,
    /// a retry policy that makes no sense.
    #[must_use]
    pub fn findings(&self) -> Vec<ManifestFinding> {
        let mut found = Vec::new();
        self.check_identity(&mut found);
        let actions: Vec<&str> = self.actions.iter().map(|it| it.name.as_str()).collect();
        check_names("actions", &actions, |name| RESERVED_ACTION_NAMES.contains(&name), &mut found);
        let inputs: Vec<&str> = self.inputs.iter().map(|it| it.name.as_str()).collect();
        let built_in = |name: &str| InputType::ALL.iter().any(|known| known.as_str() == name);
        check_names("inputs", &inputs, built_in, &mut found);
        let kinds: Vec<&str> = self.triggers.iter().map(|it| it.kind.as_str()).collect();
        check_names("triggers", &kinds, |name| RESERVED_TRIGGER_KINDS.contains(&name), &mut found);
        for action in &self.actions {
            action.check_policy(&mut found);
        }
        for trigger in self.triggers.iter().filter(|it| it.event.trim().is_empty()) {
            let path = format!("triggers.{}.event", trigger.kind);
            found.push(finding("MANIFEST_EVENT_BLANK", path, "an event type may not be blank"));
        }
        found
    }

    fn check_identity(&self, found: &mut Vec<ManifestFinding>) {
        if self.id.trim().is_empty() {
            found.push(finding("MANIFEST_ID_BLANK", "id", "the module's id may not be blank"));
        }
        if self.version == 0 {
            found.push(finding("MANIFEST_VERSION_ZERO", "version", "versions count from 1"));
        }
        for (name, _) in self.limits.each().into_iter().filter(|(_, limit)| *limit == 0) {
            let message = "a limit of 0 would refuse every workflow";
            found.push(finding("MANIFEST_LIMIT_ZERO", format!("limits.{name}"), message));
        }
    }
}

impl ActionDecl {
    /// The semantic hash: effect class and schemas, without titles and descriptions.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash(&json!({
            "class": self.class.as_str(),
            "input": without_prose(&self.input),
            "output": without_prose(&self.output),
        }))
    }

    fn check_policy(&self, found: &mut Vec<ManifestFinding>) {
        let retry = &self.retry;
        let path = format!("actions.{}", self.name);
        if !(1..=100).contains(&retry.attempts) {
            let message = "`attempts` is from 1 to 100";
            found.push(finding("MANIFEST_RETRY_INVALID", format!("{path}.retry"), message));
        }
        if !retry.factor.is_finite() || retry.factor < 1.0 {
            let message = "`factor` is a finite number of at least 1";
            found.push(finding("MANIFEST_RETRY_INVALID", format!("{path}.retry"), message));
        }
        if retry.first > retry.max {
            let message = "`first` may not be longer than `max`";
            found.push(finding("MANIFEST_RETRY_INVALID", format!("{path}.retry"), message));
        }
        if self.settle_after.is_some() && self.class != EffectClass::Ambiguous {
            let message = "only an ambiguous action has a `settleAfter`";
            found.push(finding("MANIFEST_SETTLE_AFTER", format!("{path}.settleAfter"), message));
        }
    }
}

impl InputDecl {
    /// The semantic hash: the schema without titles and descriptions.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash(&json!({ "schema": without_prose(&self.schema) }))
    }
}

impl TriggerDecl {
    /// The semantic hash: event type and schema, without titles and descriptions.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash(&json!({ "event": self.event, "schema": without_prose(&self.schema) }))
    }
}

fn finding(
    code: &'static str,
    path: impl Into<String>,
    message: impl Into<String>,
) -> ManifestFinding {
    ManifestFinding { code, path: path.into(), message: message.into() }
}

/// `[A-Za-z_][A-Za-z0-9_]*`: what authors can write without quotes, and refer to in an expression.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

fn check_names(
    list: &str,
    names: &[&str],
    is_reserved: impl Fn(&str) -> bool,
    found: &mut Vec<ManifestFinding>,
) {
    let mut seen = BTreeSet::new();
    for &name in names {
        let path = format!("{list}.{name}");
        if !is_name(name) {
            let message =
                format!("`{name}` is no name: letters, digits and `_`, not starting with a digit");
            found.push(finding("MANIFEST_NAME_INVALID", path.clone(), message));
        }
        if is_reserved(name) {
            let message = format!("`{name}` is reserved: it has a meaning of its own in workflows");
            found.push(finding("MANIFEST_NAME_RESERVED", path.clone(), message));
        }
        if !seen.insert(name) {
            let message = format!("`{name}` is declared twice");
            found.push(finding("MANIFEST_NAME_DUPLICATE", path, message));
        }
    }
}

/// Keywords whose members are named by the schema's author: a property may well be called `title`.
const NAMED_SCHEMAS: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose values are data, not schemas.
const DATA: &[&str] = &["const", "enum", "default", "examples", "required", "dependentRequired"];

/// A schema without the `title`s and `description`s that are there for people only.
fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(members_without_prose(members)),
        Value::Array(items) => Value::Array(items.iter().map(without_prose).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn members_without_prose(members: &Map<String, Value>) -> Map<String, Value> {
    let is_kept = |(key, _): &(&String, &Value)| !matches!(key.as_str(), "title" | "description");
    let strip = |(key, value): (&String, &Value)| {
        let key = key.as_str();
        let stripped = if DATA.contains(&key) {
            value.clone()
        } else if let (true, Some(named)) = (NAMED_SCHEMAS.contains(&key), value.as_object()) {
            named.iter().map(|(name, it)| (name.clone(), without_prose(it))).collect()
        } else {
            without_prose(value)
        };
        (key.to_owned(), stripped)
    };
    members.iter().filter(is_kept).map(strip).collect()
}

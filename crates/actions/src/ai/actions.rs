//! The four actions: what each tells the model, and what it makes of the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use surefoot_kernel_core::Code;
use surefoot_language::{
    Access, ActionResult, ConfigRemark, Cost, Idempotent, IdempotentCx, PlanResult, StepCx, Stop,
};

use super::request::{AiMessage, AiRequest, AiUsage};
use super::task::{Ai, AiTuning, Asked, cost, planned};
use super::{AI_LABELS_MAX, AI_TEXTS_MAX, AI_UNREADABLE};
use crate::config::{Draft, refused};

/// What an action tells a model, and what it makes of the answer: the rest is the same for all.
macro_rules! ai_action {
    ($(#[$doc:meta])* $name:ident = $key:literal, $about:literal, $what:literal;
     $input:ty => $output:ty; $ask:expr; $take:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name {
            ai: Ai,
        }

        impl $name {
            /// With the place where tasks are kept.
            #[must_use]
            pub const fn new(ai: Ai) -> Self {
                Self { ai }
            }

            fn asked(input: &$input) -> Result<Asked<'_>, String> {
                let ask: fn(&$input) -> Result<Asked<'_>, String> = $ask;
                ask(input)
            }

            fn request(&self, input: &$input) -> Result<AiRequest, String> {
                self.ai.request(Self::asked(input)?)
            }

            /// What is wrong with a config, whatever the module offers.
            fn refusal(config: Value) -> Option<String> {
                let input: $input = serde_json::from_value(config).ok()?;
                Self::asked(&input).and_then(|asked| asked.check()).err()
            }
        }

        impl Idempotent for $name {
            const NAME: &'static str = $key;
            const ABOUT: &'static str = $about;
            type Input = $input;
            type Output = $output;

            async fn authorize(&self, _: &StepCx, input: &$input) -> ActionResult<Access> {
                let checked = self.request(input).map(|_| Access::Allowed);
                checked.map_err(|why| Stop::fail(Code::CONFIG_INVALID, why))
            }

            async fn run(&self, cx: &IdempotentCx, input: $input) -> ActionResult<$output> {
                let kept = self.ai.outcome(cx, self.request(&input)).await?;
                let take: fn(String, Value, (String, AiUsage)) -> Option<$output> = $take;
                take(kept.text, kept.value, (kept.model, kept.usage))
                    .ok_or_else(|| Stop::fail(AI_UNREADABLE, "the task's output is not what its step asked for"))
            }

            async fn plan(&self, _: &StepCx, input: &$input) -> PlanResult<$output> {
                Ok(planned($what, self.request(input)))
            }

            fn cost(&self, _: &$input) -> Cost {
                cost()
            }
        }
    };
}

/// What a text is asked for.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct GenerateInput {
    /// What the model is asked.
    #[schemars(length(min = 1))]
    pub prompt: String,
    /// What it is told before.
    #[serde(default)]
    pub system: Option<String>,
    /// How it is asked.
    #[serde(flatten)]
    pub tuning: AiTuning,
}

/// A model's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GenerateOutput {
    /// As they came.
    pub text: String,
    /// Who said them.
    pub model: String,
    /// What was used.
    pub usage: AiUsage,
}

ai_action! {
    /// Has a model write a text.
    GenerateText = "generateText", "Has a model write a text.", "Generate a text";
    GenerateInput => GenerateOutput;
    |input| {
        let system = input.system.iter().map(AiMessage::system);
        let messages = system.chain([AiMessage::user(&input.prompt)]).collect();
        Ok(Asked { tuning: &input.tuning, messages, schema: None })
    };
    |text, _, (model, usage)| Some(GenerateOutput { text, model, usage })
}

/// A text and the labels among which one is chosen.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ClassifyInput {
    /// What is classified.
    pub text: String,
    /// 2 to 100 of them, all different.
    #[schemars(length(min = 2, max = 100))]
    pub labels: Vec<String>,
    /// What the labels mean, and anything else the model should know.
    #[serde(default)]
    pub instructions: Option<String>,
    /// How it is asked.
    #[serde(flatten)]
    pub tuning: AiTuning,
}

/// The label that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClassifyOutput {
    /// One of those that were given.
    pub label: String,
    /// Who chose it.
    pub model: String,
    /// What was used.
    pub usage: AiUsage,
}

ai_action! {
    /// Has a model choose one label for a text.
    Classify = "classify", "Has a model choose one of several labels for a text.", "Classify a text";
    ClassifyInput => ClassifyOutput;
    |input| {
        let labels = distinct(&input.labels)?;
        let told = "Choose the one label that fits the text best.";
        let messages = told_of(told, input.instructions.as_ref(), &input.text);
        let properties = json!({ "label": { "type": "string", "enum": labels } });
        Ok(Asked { tuning: &input.tuning, messages, schema: Some(closed(&properties, "label")) })
    };
    |_, value, (model, usage)| {
        Some(ClassifyOutput { label: value.get("label")?.as_str()?.to_owned(), model, usage })
    }
}

/// Texts and the labels among which one is chosen for each.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ClassifyManyInput {
    /// 1 to 200 of them.
    #[schemars(length(min = 1, max = 200))]
    pub texts: Vec<String>,
    /// 2 to 100 of them, all different.
    #[schemars(length(min = 2, max = 100))]
    pub labels: Vec<String>,
    /// What the labels mean, and anything else the model should know.
    #[serde(default)]
    pub instructions: Option<String>,
    /// How it is asked.
    #[serde(flatten)]
    pub tuning: AiTuning,
}

/// The labels that were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClassifyManyOutput {
    /// One for each text, in their order.
    pub labels: Vec<String>,
    /// Who chose them.
    pub model: String,
    /// What was used.
    pub usage: AiUsage,
}

ai_action! {
    /// Has a model choose one label for each of several texts, in one call.
    ClassifyMany = "classifyMany",
    "Has a model choose one of several labels for each of several texts, in one call.",
    "Classify texts";
    ClassifyManyInput => ClassifyManyOutput;
    |input| {
        let labels = distinct(&input.labels)?;
        let count = input.texts.len();
        if !(1..=AI_TEXTS_MAX).contains(&count) {
            return Err(format!("`texts` has 1 to {AI_TEXTS_MAX} texts, not {count}"));
        }
        let told = "The text is a JSON list of texts. Choose for each of them, in their order, the one label that fits best.";
        let texts = json!(input.texts).to_string();
        let messages = told_of(told, input.instructions.as_ref(), &texts);
        let items = json!({ "type": "string", "enum": labels });
        let list = json!({ "type": "array", "items": items, "minItems": count, "maxItems": count });
        let properties = json!({ "labels": list });
        Ok(Asked { tuning: &input.tuning, messages, schema: Some(closed(&properties, "labels")) })
    };
    |_, value, (model, usage)| {
        let labels = serde_json::from_value(value.get("labels")?.clone()).ok()?;
        Some(ClassifyManyOutput { labels, model, usage })
    }
}

/// A text and the shape of what is to be found in it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ExtractInput {
    /// In which it is looked for.
    pub text: String,
    /// The JSON Schema of an object. What comes back fits it.
    pub schema: serde_json::Map<String, Value>,
    /// Anything else the model should know.
    #[serde(default)]
    pub instructions: Option<String>,
    /// How it is asked.
    #[serde(flatten)]
    pub tuning: AiTuning,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExtractOutput {
    /// It fits the schema.
    pub value: Value,
    /// Who found it.
    pub model: String,
    /// What was used.
    pub usage: AiUsage,
}

ai_action! {
    /// Has a model find data of a given shape in a text.
    Extract = "extract", "Has a model find data of a given shape in a text.", "Extract data";
    ExtractInput => ExtractOutput;
    |input| {
        if input.schema.get("type") != Some(&json!("object")) {
            return Err("`schema` describes an object: give it `type: object`".to_owned());
        }
        let told = "Find the data that the schema describes in the text. Invent nothing.";
        let messages = told_of(told, input.instructions.as_ref(), &input.text);
        let schema = Some(Value::Object(input.schema.clone()));
        Ok(Asked { tuning: &input.tuning, messages, schema })
    };
    |_, value, (model, usage)| Some(ExtractOutput { value, model, usage })
}

/// What a step of one of them would refuse, of as much of its config as is written.
pub(crate) fn judge(action: &str, draft: &Draft) -> Vec<ConfigRemark> {
    let config = draft.filled(|pointer| match pointer.split('/').nth(1).unwrap_or_default() {
        "schema" => ("/schema".to_owned(), Some(json!({ "type": "object" }))),
        "labels" if pointer == "/labels" => (pointer.to_owned(), Some(json!(["a", "b"]))),
        "texts" if pointer == "/texts" => (pointer.to_owned(), Some(json!(["a"]))),
        // Each as another one: which of them are equal is not known.
        "labels" | "texts" | "text" | "prompt" => (pointer.to_owned(), Some(json!(pointer))),
        other => (format!("/{other}"), None),
    });
    let refusal = match action {
        GenerateText::NAME => GenerateText::refusal(config),
        Classify::NAME => Classify::refusal(config),
        ClassifyMany::NAME => ClassifyMany::refusal(config),
        Extract::NAME => Extract::refusal(config),
        _ => None,
    };
    refusal.map(|why| refused("", why)).into_iter().collect()
}

fn told_of(told: &str, instructions: Option<&String>, text: &str) -> Vec<AiMessage> {
    let more = instructions.map_or_else(String::new, |more| format!("\n\n{more}"));
    let told =
        format!("{told} Answer with JSON that fits the given schema, and nothing else.{more}");
    vec![AiMessage::system(told), AiMessage::user(text)]
}

fn distinct(labels: &[String]) -> Result<&[String], String> {
    if !(2..=AI_LABELS_MAX).contains(&labels.len()) {
        return Err(format!("`labels` has 2 to {AI_LABELS_MAX} labels, not {}", labels.len()));
    }
    let twice = labels.iter().enumerate().find(|(at, label)| {
        label.trim().is_empty() || labels.iter().take(*at).any(|other| other == *label)
    });
    match twice {
        None => Ok(labels),
        Some((_, label)) => Err(format!("the label `{label}` is blank, or stands twice")),
    }
}

/// An object with these properties, one of them, and nothing else.
fn closed(properties: &Value, required: &str) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": false,
    })
}

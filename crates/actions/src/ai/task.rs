//! From a step to its task and back: what the four actions have in common.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{Code, NewTask, TaskState, TaskStore};
use surefoot_language::{ActionResult, Cost, IdempotentCx, Planned, Stop};

use super::output::validator;
use super::request::{AI_REQUEST_MAX_BYTES, AiMessage, AiOutput, AiRequest};
use super::{AI_CALLS, AI_CANCELED, AI_TASKS, AI_UNREADABLE};

/// How long a step waits before it looks for itself. No limit for the task: it is found again and waited for on.
const LOOK_AFTER: Duration = Duration::from_secs(3_600);

/// Where tasks are kept, and how models are asked where a step does not say.
#[derive(Clone)]
pub struct Ai {
    store: Arc<dyn TaskStore>,
    model: String,
    models: Vec<String>,
    kind: String,
}

/// The kind of the tasks of a lane.
pub(super) fn kind_of(lane: &str) -> String {
    format!("{AI_TASKS}/{lane}")
}

impl Ai {
    /// On the store of the runs, with the model that is asked where a step names none.
    pub fn new(store: impl TaskStore + 'static, model: impl Into<String>) -> Self {
        let (model, kind) = (model.into(), AI_TASKS.to_owned());
        Self { store: Arc::new(store), model, models: Vec::new(), kind }
    }

    /// Opens tasks in a lane of their own: only an [`AiWorker`](super::AiWorker) of the same lane does them. For models
    /// that not every worker of the app can ask.
    #[must_use]
    pub fn lane(mut self, lane: impl AsRef<str>) -> Self {
        self.kind = kind_of(lane.as_ref());
        self
    }

    /// Steps may also name this model. Without any, they may name none.
    #[must_use]
    pub fn allow_model(mut self, model: impl Into<String>) -> Self {
        self.models.push(model.into());
        self
    }

    fn model(&self, wanted: Option<&String>) -> Result<String, String> {
        match wanted {
            None => Ok(self.model.clone()),
            Some(model) if *model == self.model || self.models.contains(model) => Ok(model.clone()),
            Some(model) => Err(format!("this module offers no model `{model}`")),
        }
    }

    /// What would be pinned.
    pub(super) fn request(&self, asked: Asked<'_>) -> Result<AiRequest, String> {
        asked.check()?;
        let Asked { tuning, messages, schema } = asked;
        let request = AiRequest {
            model: self.model(tuning.model.as_ref())?,
            messages,
            schema,
            max_tokens: tuning.max_tokens,
            temperature: tuning.temperature,
        };
        let bytes = serde_json::to_string(&request).map_err(|error| error.to_string())?.len();
        if bytes > AI_REQUEST_MAX_BYTES {
            return Err(format!(
                "the request has {bytes} bytes of JSON, the limit is {AI_REQUEST_MAX_BYTES}"
            ));
        }
        Ok(request)
    }

    /// Opens or finds the step's task, and waits for its end.
    pub(super) async fn outcome(
        &self,
        cx: &IdempotentCx,
        request: Result<AiRequest, String>,
    ) -> ActionResult<AiOutput> {
        let request = request.map_err(|why| Stop::fail(Code::CONFIG_INVALID, why))?;
        let new = NewTask {
            app: cx.app().clone(),
            scope: cx.scope().clone(),
            run: cx.run_id(),
            step: cx.step_key().clone(),
            kind: self.kind.clone(),
            request: Payload::from_value(&serde_json::to_value(&request)?)?,
        };
        let task = self.store.task_open(new).await?;
        match &task.state {
            TaskState::Queued | TaskState::Running => Err(Stop::wait_for(task.wait(LOOK_AFTER))),
            TaskState::Succeeded { output } => AiOutput::deserialize(output.value())
                .map_err(|error| Stop::fail(AI_UNREADABLE, error.to_string())),
            TaskState::Failed { code, message } => Err(Stop::fail(code.clone(), message.clone())),
            TaskState::Canceled => {
                Err(Stop::fail(AI_CANCELED, "the task was canceled with an earlier end of its run"))
            }
        }
    }
}

impl fmt::Debug for Ai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ai").field("model", &self.model).finish_non_exhaustive()
    }
}

/// What authors may say of how a model is asked.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AiTuning {
    /// One of those that the module offers.
    #[serde(default)]
    pub model: Option<String>,
    /// Tokens of the answer at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_tokens: Option<u32>,
    /// 0 to 2.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
}

/// What a step asks.
pub(super) struct Asked<'a> {
    pub(super) tuning: &'a AiTuning,
    pub(super) messages: Vec<AiMessage>,
    pub(super) schema: Option<Value>,
}

impl Asked<'_> {
    /// Whatever the module offers.
    pub(super) fn check(&self) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |schema| validator(schema).map(drop))
    }
}

pub(super) fn planned<T>(what: &str, request: Result<AiRequest, String>) -> Planned<T> {
    match request {
        Ok(request) => {
            let told: usize = request.messages.iter().map(|message| message.content.len()).sum();
            Planned::new(format!("{what}: ask `{}` with {told} bytes of text", request.model))
        }
        Err(why) => Planned::new(what.to_owned()).issue(why),
    }
}

pub(super) fn cost() -> Cost {
    Cost::of(AI_CALLS, 1)
}

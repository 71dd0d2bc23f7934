//! Messages to topics: published under the step's effect key, which the broker recognises.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_kernel_core::Code;
use surefoot_language::{
    Access, ActionResult, Cost, Idempotent, IdempotentCx, PlanResult, Planned, StepCx, Stop,
};
use surefoot_sync_core::{Key, SyncError, Topic, TopicEvent};

/// A topic must recognise a key at least this long: longer than a step is tried again by itself, leases included.
pub const DEDUPE_WINDOW_MIN: Duration = Duration::from_secs(3_600);
/// The broker did not answer, or its topic is full.
pub const MESSAGE_UNAVAILABLE: &str = "MESSAGE_UNAVAILABLE";
/// The message does not fit into its topic.
pub const MESSAGE_REFUSED: &str = "MESSAGE_REFUSED";
/// The dimension of the effect budget to which each message charges 1.
pub const MESSAGES: &str = "messages";

/// A message to publish.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct MessageInput {
    /// One of the topics that the module offers.
    pub topic: String,
    /// What readers get.
    pub data: Value,
    /// Whose it is, 1 to 96 bytes; the run's scope where nothing is said.
    #[serde(default)]
    #[schemars(length(min = 1, max = 96))]
    pub tenant: Option<String>,
}

/// Where a message is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessageOutput {
    /// The place behind it, from which a reader goes on.
    pub cursor: String,
}

/// A topic forgets a key before the step that used it is given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the topic `{topic}` recognises a key for {got_s} s only: declare it with a dedupe window of at least {min_s} s",
    min_s = DEDUPE_WINDOW_MIN.as_secs()
)]
pub struct ShortWindow {
    /// Which one.
    pub topic: String,
    /// Its window, in seconds.
    pub got_s: u64,
}

/// Publishes a message with the effect key as its id: a repeat inside the topic's dedupe window is the same message.
#[derive(Clone, Default)]
pub struct PublishMessage {
    topics: BTreeMap<String, Arc<dyn Topic>>,
}

impl PublishMessage {
    /// To no topic yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// To one more topic, by the name that authors write.
    ///
    /// # Errors
    /// [`ShortWindow`]: it would take a repeat for another message.
    pub fn topic(
        mut self,
        name: impl Into<String>,
        topic: Arc<dyn Topic>,
    ) -> Result<Self, ShortWindow> {
        let (name, window) = (name.into(), topic.settings().dedupe_window);
        if window < DEDUPE_WINDOW_MIN {
            return Err(ShortWindow { topic: name, got_s: window.as_secs() });
        }
        self.topics.insert(name, topic);
        Ok(self)
    }

    fn find(&self, cx: &StepCx, input: &MessageInput) -> Result<(&Arc<dyn Topic>, Key), String> {
        let known = self.topics.get(&input.topic);
        let topic = known.ok_or_else(|| format!("there is no topic `{}`", input.topic))?;
        let tenant = input.tenant.as_deref().unwrap_or_else(|| cx.scope().as_str());
        Ok((topic, Key::new(tenant).map_err(|error| error.to_string())?))
    }
}

impl fmt::Debug for PublishMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishMessage").field("topics", &self.topics.keys()).finish()
    }
}

impl Idempotent for PublishMessage {
    const NAME: &'static str = "publishMessage";
    const ABOUT: &'static str = "Publishes a message to a topic.";
    type Input = MessageInput;
    type Output = MessageOutput;

    async fn authorize(&self, cx: &StepCx, input: &MessageInput) -> ActionResult<Access> {
        let found = self.find(cx, input).map(|_| Access::Allowed);
        found.map_err(|why| Stop::fail(Code::CONFIG_INVALID, why))
    }

    async fn run(&self, cx: &IdempotentCx, input: MessageInput) -> ActionResult<MessageOutput> {
        let invalid = |why| Stop::fail(Code::CONFIG_INVALID, why);
        let (topic, tenant) = self.find(cx, &input).map_err(invalid)?;
        let message = TopicEvent::new(tenant, &input.data).map_err(stop)?;
        let key = Key::new(cx.effect_key().as_str()).map_err(stop)?;
        let published = topic.publish(message.idempotency_key(key)).await.map_err(stop)?;
        Ok(MessageOutput { cursor: published.cursor.to_string() })
    }

    async fn plan(&self, cx: &StepCx, input: &MessageInput) -> PlanResult<MessageOutput> {
        let bytes = input.data.to_string().len();
        let planned = Planned::new(format!("Publish {bytes} bytes to `{}`", input.topic));
        Ok(match self.find(cx, input) {
            Ok(_) => planned,
            Err(why) => planned.issue(why),
        })
    }

    fn cost(&self, _: &MessageInput) -> Cost {
        Cost::of(MESSAGES, 1)
    }
}

fn stop(error: SyncError) -> Stop {
    let message = error.to_string();
    if matches!(error, SyncError::Unavailable { .. } | SyncError::StoreFull { .. }) {
        Stop::retry(MESSAGE_UNAVAILABLE, message)
    } else {
        Stop::fail(MESSAGE_REFUSED, message)
    }
}

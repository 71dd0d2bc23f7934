//! Creating what is declared, and comparing what is there. Nothing that exists is changed.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::SyncError;

use crate::api::{Api, Failure, code, lost};
use crate::names;

/// What is different in each stream that is created: it tells one from another of the same name.
const INCARNATION: &str = "sync.incarnation";
const STREAM_REMEDY: &str =
    "declare it as it is, or under another id; deleting the stream loses what it holds";
const CONSUMER_REMEDY: &str =
    "declare it as it is, or delete the consumer: the work stays in the stream";

/// A pause has an end for the server; a person's has none.
const PAUSED_UNTIL: &str = "2200-01-01T00:00:00Z";

/// A stream that is there.
#[derive(Debug, Clone)]
pub(crate) struct StreamInfo {
    /// Another one in each stream that is created.
    pub(crate) incarnation: u64,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// The server's time.
    pub(crate) now: Timestamp,
}

/// A consumer that is there.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct ConsumerInfo {
    #[serde(default)]
    pub(crate) num_ack_pending: u64,
    #[serde(default)]
    pub(crate) num_pending: u64,
    #[serde(default)]
    pub(crate) ack_floor: Floor,
    #[serde(default)]
    pub(crate) paused: bool,
}

/// Up to where everything is settled.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Floor {
    #[serde(default)]
    pub(crate) stream_seq: u64,
}

#[derive(Deserialize)]
struct Answer {
    config: Map<String, Value>,
    #[serde(default)]
    state: State,
    #[serde(default)]
    ts: Option<String>,
}

#[derive(Deserialize, Default)]
struct State {
    #[serde(default)]
    messages: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    first_seq: u64,
    #[serde(default)]
    last_seq: u64,
}

impl Answer {
    fn info(&self) -> StreamInfo {
        let now = self.ts.as_deref().and_then(|text| text.parse().ok());
        let metadata = self.config.get("metadata");
        let incarnation = metadata.and_then(|all| all.get(INCARNATION)).and_then(Value::as_str);
        let incarnation = incarnation.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        StreamInfo {
            incarnation: incarnation.unwrap_or_default(),
            bytes: self.state.bytes,
            messages: self.state.messages,
            first_seq: self.state.first_seq,
            last_seq: self.state.last_seq,
            now: now.unwrap_or_default(),
        }
    }
}

/// A stream as it is declared: the fields that matter, by the server's names.
#[derive(Debug, Clone)]
pub(crate) struct Stream<'a> {
    pub(crate) resource: &'a str,
    pub(crate) config: Map<String, Value>,
    /// What only matters when it is created.
    pub(crate) creation: Map<String, Value>,
}

impl Stream<'_> {
    fn name(&self) -> &str {
        self.config.get("name").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Creates a stream, or finds it as it is declared.
pub(crate) async fn stream(api: &Api, stream: &Stream<'_>) -> Result<StreamInfo, SyncError> {
    let operation = "create a stream";
    let mut config = stream.config.clone();
    config.extend(stream.creation.clone());
    if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
        metadata.insert(INCARNATION.to_owned(), json!(names::incarnation()));
    }
    let subject = format!("$JS.API.STREAM.CREATE.{}", stream.name());
    match api.insist::<Answer>(operation, &subject, &config).await? {
        Ok(answer) => {
            // An older server in the cluster drops what it does not know.
            if let Some(drift) = drift(&stream.config, &answer.config) {
                return Err(SyncError::UnsupportedServer {
                    found: format!("a server that made {} {}", drift.field, drift.found),
                    required: format!("{} {}", drift.field, drift.declared),
                    feature: "this resource",
                });
            }
            Ok(answer.info())
        }
        Err(error) if error.code == code::STREAM_EXISTS => {
            let (found, info) = stream_config(api, stream.name()).await?;
            drift(&stream.config, &found)
                .map_or(Ok(info), |drift| Err(drift.into_error(stream.resource, STREAM_REMEDY)))
        }
        Err(error) => Err(Failure::Refused(error).into_error(operation)),
    }
}

/// A stream with its settings, if it is there.
pub(crate) async fn stream_if_there(
    api: &Api,
    name: &str,
) -> Result<Option<(Map<String, Value>, StreamInfo)>, SyncError> {
    let operation = "tell about a stream";
    let subject = format!("$JS.API.STREAM.INFO.{name}");
    match api.insist::<Answer>(operation, &subject, &json!({})).await? {
        Ok(answer) => {
            let info = answer.info();
            Ok(Some((answer.config, info)))
        }
        Err(error) if error.code == code::NO_STREAM => Ok(None),
        Err(error) => Err(Failure::Refused(error).into_error(operation)),
    }
}

/// The settings of all streams of the account.
pub(crate) async fn streams(api: &Api) -> Result<Vec<Map<String, Value>>, SyncError> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        total: usize,
        #[serde(default)]
        streams: Option<Vec<Answer>>,
    }
    let operation = "list streams";
    let mut all = Vec::new();
    loop {
        let body = json!({ "offset": all.len() });
        let page = api.insist::<Page>(operation, "$JS.API.STREAM.LIST", &body).await?;
        let page = page.map_err(|error| Failure::Refused(error).into_error(operation))?;
        let streams = page.streams.unwrap_or_default();
        let is_last = streams.is_empty();
        all.extend(streams.into_iter().map(|answer| answer.config));
        if is_last || all.len() >= page.total {
            return Ok(all);
        }
    }
}

/// Looks at a stream.
pub(crate) async fn stream_info(api: &Api, name: &str) -> Result<StreamInfo, SyncError> {
    Ok(stream_config(api, name).await?.1)
}

async fn stream_config(
    api: &Api,
    name: &str,
) -> Result<(Map<String, Value>, StreamInfo), SyncError> {
    let operation = "tell about a stream";
    let subject = format!("$JS.API.STREAM.INFO.{name}");
    match api.insist::<Answer>(operation, &subject, &json!({})).await? {
        Ok(answer) => {
            let info = answer.info();
            Ok((answer.config, info))
        }
        Err(error) if error.code == code::NO_STREAM => Err(lost(name)),
        Err(error) => Err(Failure::Refused(error).into_error(operation)),
    }
}

/// Creates a consumer, or finds it as it is declared.
pub(crate) async fn consumer(
    api: &Api,
    resource: &str,
    stream: &str,
    config: &Map<String, Value>,
) -> Result<(), SyncError> {
    #[derive(Deserialize)]
    struct Answer {
        config: Map<String, Value>,
    }
    let operation = "create a consumer";
    let name = config.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{name}");
    if let Some(filter) = config.get("filter_subject").and_then(Value::as_str) {
        subject = format!("{subject}.{filter}");
    }
    let body = json!({ "stream_name": stream, "config": config, "action": "create" });
    let found = match api.insist::<Answer>(operation, &subject, &body).await? {
        Ok(answer) => answer,
        Err(error) if error.code == code::CONSUMER_EXISTS => {
            let subject = format!("$JS.API.CONSUMER.INFO.{stream}.{name}");
            let found = api.insist::<Answer>(operation, &subject, &json!({})).await?;
            found.map_err(|error| Failure::Refused(error).into_error(operation))?
        }
        Err(error) => return Err(Failure::Refused(error).into_error(operation)),
    };
    drift(config, &found.config)
        .map_or(Ok(()), |drift| Err(drift.into_error(resource, CONSUMER_REMEDY)))
}

/// The settings of a consumer that is there.
pub(crate) async fn consumer_config(
    api: &Api,
    stream: &str,
    name: &str,
) -> Result<Map<String, Value>, SyncError> {
    #[derive(Deserialize)]
    struct Answer {
        config: Map<String, Value>,
    }
    let operation = "tell about a consumer";
    let subject = format!("$JS.API.CONSUMER.INFO.{stream}.{name}");
    let answer = api.insist::<Answer>(operation, &subject, &json!({})).await?;
    Ok(answer.map_err(|error| Failure::Refused(error).into_error(operation))?.config)
}

/// Has a consumer hand out nothing, or again.
pub(crate) async fn pause(
    api: &Api,
    stream: &str,
    name: &str,
    paused: bool,
) -> Result<(), SyncError> {
    let operation = "pause a consumer";
    let subject = format!("$JS.API.CONSUMER.PAUSE.{stream}.{name}");
    let body = if paused { json!({ "pause_until": PAUSED_UNTIL }) } else { json!({}) };
    let answer = api.insist::<Value>(operation, &subject, &body).await?;
    answer.map(|_| ()).map_err(|error| Failure::Refused(error).into_error(operation))
}

/// Looks at a consumer.
pub(crate) async fn consumer_info(
    api: &Api,
    stream: &str,
    name: &str,
) -> Result<ConsumerInfo, SyncError> {
    let operation = "tell about a consumer";
    let subject = format!("$JS.API.CONSUMER.INFO.{stream}.{name}");
    let info = api.insist(operation, &subject, &json!({})).await?;
    info.map_err(|error| Failure::Refused(error).into_error(operation))
}

/// The first setting that differs.
#[derive(Debug, PartialEq, Eq)]
struct Drift {
    field: String,
    declared: String,
    found: String,
}

impl Drift {
    fn into_error(self, resource: &str, remedy: &'static str) -> SyncError {
        let Self { field, declared, found } = self;
        SyncError::ResourceDrift { resource: resource.to_owned(), field, declared, found, remedy }
    }
}

/// Compares what is declared, field by field; what is not declared is the server's business.
fn drift(declared: &Map<String, Value>, found: &Map<String, Value>) -> Option<Drift> {
    for (field, wanted) in declared {
        let there = found.get(field).unwrap_or(&Value::Null);
        if let (Value::Object(wanted), Value::Object(there)) = (wanted, there) {
            if let Some(inner) = drift(wanted, there) {
                let field = format!("{field}.{}", inner.field);
                return Some(Drift { field, ..inner });
            }
        } else if normal(wanted) != normal(there) {
            let (declared, found) = (wanted.to_string(), there.to_string());
            return Some(Drift { field: field.clone(), declared, found });
        }
    }
    None
}

/// What the server leaves out, or writes in another way for the same.
fn normal(value: &Value) -> Value {
    match value {
        Value::Bool(false) => Value::Null,
        Value::Number(number) if number.as_i64() == Some(0) || number.as_i64() == Some(-1) => {
            Value::Null
        }
        Value::String(text) if text.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(declared: Value, found: Value) -> Option<(String, String, String)> {
        let (Value::Object(declared), Value::Object(found)) = (declared, found) else {
            unreachable!()
        };
        drift(&declared, &found).map(|it| (it.field, it.declared, it.found))
    }

    #[test]
    fn only_what_is_declared_is_compared_and_defaults_are_equal() {
        let declared =
            json!({ "max_msgs": -1, "deny_purge": false, "metadata": { "sync.id": "a" } });
        let found = json!({
            "max_msgs": 0, "num_replicas": 3,
            "metadata": { "sync.id": "a", "_nats.level": "2", "sync.incarnation": "x" },
        });
        assert_eq!(check(declared, found), None);
    }

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let declared = json!({ "a": 1, "metadata": { "sync.attempts": "5" } });
        let found = json!({ "a": 1, "metadata": { "sync.attempts": "3" } });
        let expected =
            ("metadata.sync.attempts".to_owned(), "\"5\"".to_owned(), "\"3\"".to_owned());
        assert_eq!(check(declared, found), Some(expected));
        let missing = check(json!({ "allow_msg_ttl": true }), json!({}));
        assert_eq!(missing.unwrap().2, "null");
    }
}

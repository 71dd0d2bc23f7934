//! What all streams have in common.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::connect::Nats;

/// The version of what is stored.
pub(crate) const SCHEMA: &str = "1";

/// Name, kind and true id of a stream, kept in files.
pub(crate) fn base(nats: &Nats, name: &str, kind: &str, id: &str) -> Map<String, Value> {
    let mut config = Map::new();
    set(
        &mut config,
        json!({
            "name": name,
            "storage": "file",
            "num_replicas": nats.replicas,
            "metadata": {
                "sync.kind": kind,
                "sync.id": id,
                "sync.owner": nats.namespace.as_str(),
                "sync.schema": SCHEMA,
            },
        }),
    );
    config
}

/// As the server counts time.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds fields.
pub(crate) fn set(config: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        config.extend(fields);
    }
}

//! The description of the API in OpenAPI 3.1, made of the table of routes and of the types that they take and give.

use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use surefoot_operator::schema;

use super::PREFIX;
use super::route::{Answer, OnRevision, Route};
use crate::access::Role;
use crate::problem::TYPE_PREFIX;
use crate::request::NameShape;

/// Where the described shapes stand.
const DEFINITIONS: &str = "/components/schemas";

/// What a status says, of every operation that may answer so.
const STATUSES: &[(&str, &str)] = &[
    ("400", "A parameter, a header or the body is malformed, unknown or out of range."),
    ("401", "No token, or one that is not known."),
    ("403", "A viewer acts, a cookie is used to act, or the request comes from another site."),
    ("404", "There is no such run, event, version, workflow, scope or app."),
    ("408", "The request took too long to be read or answered."),
    ("409", "It is refused as things stand, or somebody else was faster; the sentence says why."),
    ("412", "It was changed since the revision that was looked at; nothing was changed."),
    ("413", "The body, a payload or an output is too large."),
    ("415", "The body is not JSON."),
    ("421", "Without a token, requests are answered at loopback names only."),
    ("422", "A payload, an output or a source is not acceptable; the sentence says where."),
    ("428", "The header `If-Match` is missing."),
    ("431", "The address and the headers are too large, or there are too many headers."),
    ("500", "What is stored cannot be read by this build."),
    ("503", "The store cannot be used just now, or nobody knows whether it was done."),
];

/// Statuses of an operation of these methods.
const OF_ALL: &[&str] = &["400", "401", "404", "408", "421", "431", "500", "503"];
const OF_ACTING: &[&str] = &["403", "409", "412", "413", "415", "422"];

pub(super) fn document(routes: &[Route]) -> Value {
    let mut given = generator(SchemaSettings::for_serialize);
    let mut taken = generator(SchemaSettings::for_deserialize);
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut given, &mut taken);
        let path = paths.entry(format!("{PREFIX}{}", route.path)).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    let mut schemas = taken.take_definitions(false);
    schemas.append(&mut given.take_definitions(false));
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Surefoot",
            "version": "1",
            "summary": "Look at durable workflows, and act on them.",
            "description": "What an operator can see and do. Answers are those of `surefoot --json`. Errors are problem \
                            details (RFC 9457).",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A token with the role viewer or operator." },
            },
        },
    })
}

fn generator(contract: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.meta_schema = None;
        it.definitions_path = DEFINITIONS.into();
    });
    contract(settings).into_generator()
}

fn operation(route: &Route, given: &mut SchemaGenerator, taken: &mut SchemaGenerator) -> Value {
    let role = match route.role() {
        Role::Viewer => "Viewers may.",
        Role::Operator => "Operators only.",
    };
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": role,
        "tags": [tag(route.path)],
        "parameters": parameters(route, taken),
        "responses": answers(route, given),
    });
    if let (Some(body), Some(operation)) = (route.body, operation.as_object_mut()) {
        let schema = body(taken);
        let content = json!({ "application/json": { "schema": schema } });
        operation.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
    }
    operation
}

/// The first word of a path.
fn tag(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}

fn parameters(route: &Route, taken: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| in_path(name, taken))
        .collect();
    parameters.extend(route.on_revision.map(if_match));
    if let Some(query) = route.query {
        parameters.extend(in_query(query(taken).to_value()));
    }
    parameters
}

fn if_match(which: OnRevision) -> Value {
    let seen = "The revision that was looked at, in quotes: the `ETag` of the run";
    let revision = "\"(0|[1-9][0-9]{0,18})\"";
    let (about, pattern) = match which {
        OnRevision::Seen => (format!("{seen}."), format!("^{revision}$")),
        OnRevision::SeenOrAny => {
            (format!("{seen}; `*` is wherever it stands."), format!("^({revision}|\\*)$"))
        }
    };
    json!({
        "name": "If-Match",
        "in": "header",
        "required": true,
        "description": about,
        "schema": { "type": "string", "pattern": pattern },
        "example": "\"7\"",
    })
}

fn in_path(name: &str, taken: &mut SchemaGenerator) -> Value {
    let (about, schema) = match name {
        "run" => ("The run's id.", taken.subschema_for::<schema::RunId>().to_value()),
        "event" => ("The event's id.", taken.subschema_for::<schema::EventId>().to_value()),
        "version" => ("The version's id.", taken.subschema_for::<schema::VersionId>().to_value()),
        "step" => {
            ("The step's key, as in `steps.2.do.0#3`.", json!({ "type": "string", "minLength": 1 }))
        }
        _ => ("The workflow's key.", taken.subschema_for::<NameShape>().to_value()),
    };
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

fn in_query(shape: Value) -> Vec<Value> {
    let needed: Vec<Value> =
        shape.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = shape.get("properties").cloned() else {
        return Vec::new();
    };
    let described = properties.into_iter().map(|(name, mut schema)| {
        let about = schema.as_object_mut().and_then(|it| it.remove("description"));
        let is_list = schema.get("type").is_some_and(|kind| kind == "array");
        let mut parameter = json!({
            "name": name,
            "in": "query",
            "required": needed.contains(&Value::String(name.clone())),
            "description": about.unwrap_or_default(),
            "schema": without_null(schema),
        });
        if let (true, Some(parameter)) = (is_list, parameter.as_object_mut()) {
            parameter.insert("style".to_owned(), json!("form"));
            parameter.insert("explode".to_owned(), json!(false));
        }
        parameter
    });
    described.collect()
}

/// A parameter is there or not; it is never null.
fn without_null(mut schema: Value) -> Value {
    let Some(it) = schema.as_object_mut() else { return schema };
    if it.get("default").is_some_and(Value::is_null) {
        it.remove("default");
    }
    if let Some(Value::Array(kinds)) = it.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [one] = kinds.as_slice() {
            let one = one.clone();
            it.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(each)) = it.get_mut("anyOf") {
        each.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
        if let [one] = each.as_slice() {
            return one.clone();
        }
    }
    schema
}

fn answers(route: &Route, given: &mut SchemaGenerator) -> Value {
    let mut answers = Map::new();
    answers.insert("200".to_owned(), done(route.answer, given));
    let mut statuses: Vec<&str> = OF_ALL.to_vec();
    if route.method != Method::GET {
        statuses.extend(OF_ACTING);
    }
    if route.on_revision.is_some() {
        statuses.push("428");
    }
    statuses.sort_unstable();
    for status in statuses {
        let reference = json!({ "$ref": format!("#/components/responses/{status}") });
        answers.insert(status.to_owned(), reference);
    }
    Value::Object(answers)
}

fn done(answer: Answer, given: &mut SchemaGenerator) -> Value {
    match answer {
        Answer::Json(shape) => json!({
            "description": "Done.",
            "content": { "application/json": { "schema": shape(given) } },
        }),
        Answer::Revisioned(shape) => json!({
            "description": "Done.",
            "headers": {
                "ETag": {
                    "description": "The run's revision, for `If-Match`.",
                    "schema": { "type": "string", "pattern": "^\"[0-9]+\"$" },
                },
            },
            "content": { "application/json": { "schema": shape(given) } },
        }),
        Answer::Events => json!({
            "description": "Server-sent events, until the client ends them or nothing follows.",
            "content": { "text/event-stream": { "schema": { "type": "string" } } },
        }),
    }
}

fn responses() -> Value {
    let each = STATUSES.iter().map(|(status, about)| {
        let content = json!({
            "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } }
        });
        ((*status).to_owned(), json!({ "description": about, "content": content }))
    });
    Value::Object(each.collect())
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Why a request was not carried out (RFC 9457). Unless it says so, nothing was changed.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {
                "type": "string",
                "description": "Stable: what a program goes by.",
                "pattern": format!("^{TYPE_PREFIX}[a-z-]+$"),
            },
            "title": { "type": "string", "description": "The status in words." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string", "description": "What happened, where, and what to do." },
            "code": { "type": "string", "description": "The kernel's error code, where there is one." },
            "revision": { "type": "integer", "minimum": 0, "description": "Where the run stands now." },
            "state": { "type": "string", "description": "In which state the run is now." },
            "findings": { "type": "array", "items": { "type": "object" } },
        },
    })
}

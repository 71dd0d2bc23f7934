//! A module to compile against, and one function that shows what the compiler says.

use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Value, json};
use surefoot_kernel_core::EffectClass;
use surefoot_kernel_core::plan::Plan;
use surefoot_language::{
    ActionDecl, Bindings, Compiled, Findings, Limits, Manifest, TriggerDecl, compile,
    compile_and_bind,
};

/// The workflow that the language's description shows.
pub(crate) const EXAMPLE: &str = include_str!("example.yaml");

fn object(properties: Value, required: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn action(name: &str, class: EffectClass, input: Value, output: Value) -> ActionDecl {
    ActionDecl {
        name: name.to_owned(),
        about: format!("Does {name}."),
        class,
        input,
        output,
        retry: surefoot_kernel_core::plan::RetryPolicy::default(),
        settle_after: None,
    }
}

fn stock() -> Value {
    object(
        json!({
            "onHand": { "type": "integer" },
            "minimum": { "type": "integer" },
            "supplier": { "type": ["string", "null"] },
            "state": { "type": "string" },
            "warehouses": { "type": "array", "items": object(json!({ "id": { "type": "string" } }), json!(["id"])) },
        }),
        json!(["onHand", "minimum", "state", "warehouses"]),
    )
}

/// Three ways to tell somebody something.
fn channel() -> Value {
    let variant = |kind: &str, member: &str, schema: Value| {
        object(
            json!({ "kind": { "const": kind }, member: schema, "urgent": { "type": "boolean" } }),
            json!(["kind", member]),
        )
    };
    json!({ "oneOf": [
        variant("mail", "address", json!({ "type": "string", "minLength": 3 })),
        variant("phone", "number", json!({ "type": "string" })),
        variant("rooms", "ids", json!({ "type": "array", "items": { "type": "integer" } })),
    ]})
}

pub(crate) fn manifest() -> Manifest {
    let text = || json!({ "type": "string" });
    let none = || json!({ "type": "null" });
    let item = || object(json!({ "item": text() }), json!(["item"]));
    let reserve =
        object(json!({ "item": text(), "warehouse": text() }), json!(["item", "warehouse"]));
    let charge = object(
        json!({ "amount": { "type": "number", "minimum": 0 }, "currency": { "enum": ["EUR", "USD"] } }),
        json!(["amount", "currency"]),
    );
    let email = object(
        json!({ "to": text(), "subject": text(), "copies": { "type": "array", "items": text() } }),
        json!(["to"]),
    );
    let any = || json!({ "type": "object" });
    let id = || object(json!({ "id": text() }), json!(["id"]));
    Manifest {
        id: "inventory".to_owned(),
        version: 1,
        limits: Limits::default(),
        inputs: Vec::new(),
        triggers: vec![TriggerDecl {
            kind: "itemChanged".to_owned(),
            event: "inventory.itemChanged".to_owned(),
            schema: object(
                json!({ "itemId": text(), "count": { "type": "integer" } }),
                json!(["itemId", "count"]),
            ),
        }],
        actions: vec![
            action("loadItem", EffectClass::Transactional, item(), stock()),
            action(
                "priceOrder",
                EffectClass::Pure,
                object(json!({ "stock": any() }), json!(["stock"])),
                any(),
            ),
            action("chargeCard", EffectClass::Ambiguous, charge, id()),
            action("reserveStock", EffectClass::Transactional, reserve, none()),
            action("sendEmail", EffectClass::Idempotent, email, none()),
            action(
                "notify",
                EffectClass::Idempotent,
                object(json!({ "via": channel() }), json!(["via"])),
                none(),
            ),
            action("noop", EffectClass::Pure, object(json!({}), json!([])), none()),
            action("anything", EffectClass::Pure, any(), json!(true)),
        ],
    }
}

/// One line for each finding, and its related places, help and path below it.
pub(crate) fn show(findings: &Findings) -> String {
    let mut shown = String::new();
    for found in findings {
        let severity = format!("{:?}", found.severity).to_lowercase();
        let place =
            format!("{}:{}-{}:{}", found.line, found.column, found.end_line, found.end_column);
        let _ = writeln!(shown, "{place} {severity} {}: {}", found.code, found.message);
        if !found.path.is_empty() {
            let _ = writeln!(shown, "  at: {}", found.path);
        }
        for related in &found.related {
            let _ = writeln!(shown, "  related: {} {}", related.span.start, related.message);
        }
        if let Some(help) = &found.help {
            let _ = writeln!(shown, "  help: {}", help.replace('\n', "\n    "));
        }
    }
    shown
}

/// Compiles against [`manifest`] and compares what is said.
#[track_caller]
pub(crate) fn check(source: &str, expected: Expect) {
    check_with(&manifest(), source, expected);
}

#[track_caller]
pub(crate) fn check_with(manifest: &Manifest, source: &str, expected: Expect) {
    expected.assert_eq(&show(&compiled(manifest, source).findings));
}

/// Compares what is said about a step that stands alone in a workflow.
#[track_caller]
pub(crate) fn check_step(step: &str, expected: Expect) {
    check(&workflow(step), expected);
}

/// A workflow of these steps.
pub(crate) fn workflow(steps: &str) -> String {
    let steps: String = steps.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "inputs:\n  item: {{ type: text, required: true }}\n  order: {{ type: object }}\n  count: {{ type: integer }}\nsteps:\n{steps}"
    )
}

/// Compiles, and holds the two things that are true of every compilation.
pub(crate) fn compiled(manifest: &Manifest, source: &str) -> Compiled {
    let compiled = compile(source, Some(manifest));
    assert_eq!(compiled.ir.is_some(), compiled.findings.is_ok());
    let _ = compiled.findings.to_string();
    compiled
}

#[track_caller]
pub(crate) fn plan(source: &str) -> Plan {
    compile_and_bind(source, &manifest(), &Bindings::new())
        .unwrap_or_else(|findings| panic!("{findings}"))
}

/// The plan of these steps alone.
#[track_caller]
pub(crate) fn plan_of(steps: &str) -> Plan {
    plan(&workflow(steps))
}

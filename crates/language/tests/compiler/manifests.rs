//! Manifests: what is wrong with them, their hashes, and compiling without one.

use expect_test::expect;
use serde_json::json;
use surefoot_language::{ActionDecl, Limits, Manifest, compile};

use crate::support::*;

fn named(name: &str) -> ActionDecl {
    ActionDecl { name: name.to_owned(), ..manifest().actions.remove(0) }
}

/// Covers behaviour 25.
#[test]
fn a_reserved_name_in_the_module_is_reported_whatever_the_source_uses() {
    let mut manifest = manifest();
    manifest.actions.extend(["if", "switch", "forEach", "saveAs", "delay"].map(named));
    check_with(
        &manifest,
        "steps:\n  - noop: {}\n",
        expect![[r#"
        1:1-1:1 error MANIFEST_NAME_RESERVED: the module is wrong: `if` is reserved: it has a meaning of its own in workflows (at `actions.if`)
        1:1-1:1 error MANIFEST_NAME_RESERVED: the module is wrong: `switch` is reserved: it has a meaning of its own in workflows (at `actions.switch`)
        1:1-1:1 error MANIFEST_NAME_RESERVED: the module is wrong: `forEach` is reserved: it has a meaning of its own in workflows (at `actions.forEach`)
        1:1-1:1 error MANIFEST_NAME_RESERVED: the module is wrong: `saveAs` is reserved: it has a meaning of its own in workflows (at `actions.saveAs`)
        1:1-1:1 error MANIFEST_NAME_RESERVED: the module is wrong: `delay` is reserved: it has a meaning of its own in workflows (at `actions.delay`)
    "#]],
    );
}

/// Covers behaviour 26.
#[test]
fn a_module_that_contradicts_itself_is_reported() {
    let mut manifest = manifest();
    manifest.id = " ".to_owned();
    manifest.version = 0;
    manifest.limits = Limits::default().steps(0).loop_items(0);
    manifest.actions.push(named("noop"));
    manifest.actions.push(named("no-name"));
    manifest.actions[0].retry.attempts = 0;
    manifest.actions[1].retry.factor = f64::NAN;
    manifest.triggers.push(manifest.triggers[0].clone());
    let shown: Vec<String> = manifest.findings().iter().map(ToString::to_string).collect();
    expect![[r#"
        MANIFEST_ID_BLANK: the module's id may not be blank (at `id`)
        MANIFEST_VERSION_ZERO: versions count from 1 (at `version`)
        MANIFEST_LIMIT_ZERO: a limit of 0 would refuse every workflow (at `limits.steps`)
        MANIFEST_LIMIT_ZERO: a limit of 0 would refuse every workflow (at `limits.loopItems`)
        MANIFEST_NAME_DUPLICATE: `noop` is declared twice (at `actions.noop`)
        MANIFEST_NAME_INVALID: `no-name` is no name: letters, digits and `_`, not starting with a digit (at `actions.no-name`)
        MANIFEST_NAME_DUPLICATE: `itemChanged` is declared twice (at `triggers.itemChanged`)
        MANIFEST_RETRY_INVALID: `attempts` is from 1 to 100 (at `actions.loadItem.retry`)
        MANIFEST_RETRY_INVALID: `factor` is a finite number of at least 1 (at `actions.priceOrder.retry`)"#]].assert_eq(&shown.join("\n"));
    assert!(compile(EXAMPLE, Some(&manifest)).ir.is_none());
}

#[test]
fn a_schema_that_is_none_is_reported_where_it_is_used() {
    let mut manifest = manifest();
    manifest.actions[0].input = json!({ "type": 5 });
    check_with(
        &manifest,
        EXAMPLE,
        expect![[r#"
        7:5-7:13 error MANIFEST_SCHEMA: the module's schema of `loadItem` is wrong: 5 is not valid under any of the schemas listed in the 'anyOf' keyword
          at: steps.0.loadItem
    "#]],
    );
}

#[test]
fn without_a_manifest_everything_else_is_checked_and_the_gap_is_named_once() {
    let compiled = compile(
        "inputs:\n  table: { type: table, source: x }\ntriggers:\n  whatever: { with: { table: \"${{ trigger.x }}\" } }\nsteps:\n  - doThis: { a: \"${{ inputs.table }}\" }\n    saveAs: x\n  - doThat: { a: \"${{ x.y.z }}\", b: \"${{ y }}\" }\n  - if: maybe\n    then: []\n",
        None,
    );
    expect![[r#"
        8:42-8:43 error UNKNOWN_NAME: nothing here is called `y`
          at: steps.1.doThat.b
          help: known here: `x`, `inputs`, `context`, `bindings`, `run`
        9:9-9:14 error NOT_AN_EXPRESSION: a condition is exactly one expression
          at: steps.2.if
          help: write "${{ maybe }}"
        10:11-10:13 error STEPS_EMPTY: `then` has no steps
          at: steps.2.then
          help: a branch that does nothing is left out
        1:1-1:1 note NO_MANIFEST: checked without a manifest: names of actions, triggers and input types, and the configs of actions, were not checked; the default limits were. The application's `manifest().to_json()` writes one
    "#]].assert_eq(&show(&compiled.findings));
    let compiled = compile(EXAMPLE, None);
    expect![[r#"
        1:1-1:1 note NO_MANIFEST: checked without a manifest: names of actions, triggers and input types, and the configs of actions, were not checked; the default limits were. The application's `manifest().to_json()` writes one
    "#]].assert_eq(&show(&compiled.findings));
    assert!(compiled.ir.is_some());
}

#[test]
fn json_round_trips_and_unknown_members_are_refused() {
    let manifest = manifest();
    let json = manifest.to_json();
    let read = Manifest::from_json(&json).unwrap();
    assert_eq!(read.to_json(), json);
    assert_eq!(read.hash(), manifest.hash());
    assert!(json.contains("\"loopItems\":100"));
    assert!(Manifest::from_json("{}").is_err());
    assert!(Manifest::from_json(&json.replacen("\"limits\"", "\"limit\"", 1)).is_err());
}

/// Covers behaviour 60.
#[test]
fn the_order_of_declaration_carries_no_meaning() {
    let mut turned = manifest();
    turned.actions.reverse();
    assert_eq!(turned.to_json(), manifest().to_json());
    assert_eq!(turned.hash(), manifest().hash());
}

#[test]
fn prose_is_no_part_of_a_footprint_but_a_property_called_title_is() {
    let mut action = named("a");
    action.input = json!({
        "title": "T", "description": "D",
        "properties": { "title": { "type": "string", "description": "D" } },
        "required": ["title"],
    });
    let first = action.hash();
    action.about = "Other words.".to_owned();
    action.input["title"] = json!("Other");
    action.input["properties"]["title"]["description"] = json!("Other");
    assert_eq!(action.hash(), first);
    action.input["properties"]["title"]["type"] = json!("number");
    assert_ne!(action.hash(), first);
}

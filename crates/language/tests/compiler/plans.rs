//! What a valid source becomes.

use std::collections::BTreeMap;

use expect_test::{expect, expect_file};
use surefoot_kernel_core::plan::Plan;
use surefoot_language::{Bindings, Manifest, bind, compile, compile_and_bind};

use crate::support::*;

#[test]
fn the_example_of_the_language_compiles_to_a_plan() {
    let plan = plan(EXAMPLE);
    let json = serde_json::to_string_pretty(&plan).unwrap();
    expect_file!["example.plan.json"].assert_eq(&format!("{json}\n"));
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

/// Covers behaviour 55.
#[test]
fn the_same_input_gives_the_same_bytes() {
    let bytes = || serde_json::to_vec(&plan(EXAMPLE)).unwrap();
    assert_eq!(bytes(), bytes());
}

/// Covers behaviour 56.
#[test]
fn the_order_of_keys_changes_the_source_but_not_the_steps() {
    let one = plan_of("- chargeCard: { amount: \"${{ inputs.count }}\", currency: EUR }");
    let two = plan_of("- chargeCard: { currency: EUR, amount: \"${{ inputs.count }}\" }");
    assert_eq!(one.steps, two.steps);
    assert_ne!(one.hashes.source, two.hashes.source);
    assert_ne!(one.hash(), two.hash());
}

const BOUND: &str = "- anything: { a: \"${{ bindings.table.Orders }}\", b: \"${{ bindings.user['Ann B'] }}\", c: \"${{ bindings.table.Items }}\" }";

fn catalog() -> [(&'static str, &'static str, &'static str); 4] {
    [
        ("table", "Orders", "t1"),
        ("user", "Ann B", "u1"),
        ("table", "Items", "t2"),
        ("table", "Other", "t3"),
    ]
}

/// Covers behaviour 57.
#[test]
fn bindings_are_sorted_and_only_the_used_ones_are_kept() {
    let with = |bindings: Bindings, (kind, name, id)| bindings.with(kind, name, id);
    let forwards = catalog().into_iter().fold(Bindings::new(), with);
    let backwards = catalog().into_iter().rev().fold(Bindings::new(), with);
    let plan = |bindings| compile_and_bind(&workflow(BOUND), &manifest(), bindings).unwrap();
    let (one, two) = (plan(&forwards), plan(&backwards));
    assert_eq!(serde_json::to_vec(&one).unwrap(), serde_json::to_vec(&two).unwrap());
    expect![[r#"{"table":{"Items":"t2","Orders":"t1"},"user":{"Ann B":"u1"}}"#]]
        .assert_eq(&serde_json::to_string(&one.bindings).unwrap());
    let renamed = Bindings::from(BTreeMap::from([
        (
            "table".to_owned(),
            BTreeMap::from([
                ("Orders".to_owned(), "t1".to_owned()),
                ("Items".to_owned(), "t2".to_owned()),
            ]),
        ),
        ("user".to_owned(), BTreeMap::from([("Ann B".to_owned(), "u1".to_owned())])),
    ]));
    let other = plan(&renamed);
    assert_eq!(other.bindings, one.bindings);
    assert_ne!(other.hashes.catalog, one.hashes.catalog);
}

/// Covers behaviour 42.
/// Covers behaviour 43.
/// Covers behaviour 44.
#[test]
fn a_binding_is_one_visible_name() {
    let source = workflow(
        "- anything: { a: \"${{ bindings.table.Ordesr }}\", b: \"${{ bindings.table.t1 }}\", c: \"${{ bindings.user['Ann B'] }}\", d: \"${{ bindings.chat.x }}\" }",
    );
    let bindings = Bindings::new()
        .with("table", "Orders", "t1")
        .with("user", "Ann B", "u1")
        .with("user", "Ann B", "u2");
    let findings = compile_and_bind(&source, &manifest(), &bindings).unwrap_err();
    expect![[r#"
        6:25-6:46 error BINDING_UNKNOWN: there is no table called `Ordesr`
          at: steps.0.anything.a
          help: did you mean `Orders`?
        6:60-6:77 error BINDING_UNKNOWN: there is no table called `t1`
          at: steps.0.anything.b
        6:91-6:113 error BINDING_AMBIGUOUS: `Ann B` is ambiguous: there are several user of this name
          at: steps.0.anything.c
          help: rename one of them
        6:127-6:142 error BINDING_UNKNOWN: there is no chat called `x`
          at: steps.0.anything.d
    "#]].assert_eq(&show(&findings));
}

#[test]
fn a_workflow_is_bound_against_the_manifest_that_it_was_compiled_against() {
    let other = Manifest { version: 2, ..manifest() };
    let refuse = |ir| show(&bind(&ir, &manifest(), &Bindings::new()).unwrap_err());
    let without = compile(EXAMPLE, None).ir.unwrap();
    let against_another = compile(EXAMPLE, Some(&other)).ir.unwrap();
    expect![[r#"
        1:1-1:1 error MANIFEST_MISMATCH: the workflow was not compiled against this manifest
          help: compile it again
    "#]]
    .assert_eq(&refuse(without));
    expect![[r#"
        1:1-1:1 error MANIFEST_MISMATCH: the workflow was not compiled against this manifest
          help: compile it again
    "#]]
    .assert_eq(&refuse(against_another));
}

/// Covers field fault 104.
#[test]
fn a_value_written_as_json_reads_as_the_same_value() {
    for value in [
        "1e3",
        "\"1e3\"",
        "\"+1e3\"",
        "1000.0",
        "1000",
        "\"1000\"",
        "null",
        "\"~\"",
        "\"\\u00e4\"",
        "[1, {\"a\": \"yes\"}]",
    ] {
        let source = format!("- anything: {{ a: {value} }}");
        let step = serde_json::to_value(&plan_of(&source).steps[0]).unwrap();
        let read = &step["action"]["config"]["literal"]["a"];
        let meant: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(*read, meant, "{value}");
        assert_eq!(
            plan_of(&format!("- anything: {{ a: {read} }}")).steps,
            plan_of(&source).steps,
            "{value}"
        );
    }
}

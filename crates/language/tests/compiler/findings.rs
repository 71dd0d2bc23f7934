//! How findings are shown.

use expect_test::{expect, expect_file};
use surefoot_language::{Bindings, FINDING_CODES, compile, compile_and_bind};

use crate::support::*;

/// Ten different mistakes, one a line or two.
const TEN: &str = include_str!("ten_mistakes.yaml");

/// Covers behaviour 12.
#[test]
fn ten_mistakes_are_all_shown_at_their_places_in_one_pass() {
    let compiled = compile(TEN, Some(&manifest()));
    expect![[r#"
        3:19-3:24 error UNKNOWN_INPUT_TYPE: there is no input type `money`
          at: inputs.amount.type
          help: the types are text, number, integer, bool, time, list, object
        6:5-6:9 error INPUT_NOT_BOUND: the trigger does not bind the required input `item`
          at: triggers.itemChanged
          help: add `item:` to the trigger's `with`
        6:13-6:17 error UNKNOWN_INPUT: there is no input `itme`
          at: triggers.itemChanged.with.itme
          help: did you mean `item`?
        8:5-8:13 error UNKNOWN_ACTION: there is no action `laodItem`
          at: steps.0.laodItem
          help: did you mean `loadItem`?
        10:27-10:31 error CONFIG_TYPE: a number is wanted here; this is a text
          at: steps.1.chargeCard.amount
          help: write it without quotes: 12
        11:14-11:18 error DURATION: `soon` is not a duration
          at: steps.1.timeout
          help: write it like `500ms`, `30s`, `5m`, `2h` or `7d`, or several from the longest to the shortest unit, like `2h30m`
        12:29-12:29 error EXPRESSION_SYNTAX: expected a value, found the end
          at: steps.2.if
          help: a value is a name, a number, 'text', `true`, `false`, `null` or `(...)`
        13:11-13:13 error STEPS_EMPTY: `then` has no steps
          at: steps.2.then
          help: a branch that does nothing is left out
        14:27-14:32 error UNKNOWN_NAME: nothing here is called `owner`
          at: steps.3.sendEmail.to
          help: known here: `stock`, `inputs`, `context`, `bindings`, `run`
        14:38-14:45 error CONFIG_UNKNOWN_KEY: unknown key `subjekt`
          at: steps.3.sendEmail.subjekt
          help: did you mean `subject`?
    "#]]
    .assert_eq(&show(&compiled.findings));
    assert_eq!(compiled.findings.as_slice().len(), 10);
    assert!(compiled.findings.iter().all(|found| found.help.is_some()));
}

#[test]
fn findings_render_as_excerpts() {
    let findings = compile_and_bind(TEN, &manifest(), &Bindings::new()).unwrap_err();
    expect_file!["ten_mistakes.txt"].assert_eq(&format!("{findings}\n"));
    assert!(findings.render("a.yaml", true).contains("\u{1b}["));
    assert!(!findings.render("a.yaml", false).contains('\u{1b}'));
}

#[test]
fn the_json_of_findings_has_the_shape_of_check() {
    let compiled = compile("steps:\n  - noop: { größe: 1 }\n", Some(&manifest()));
    expect![[r#"
        {
          "findings": [
            {
              "code": "CONFIG_UNKNOWN_KEY",
              "column": 13,
              "end_column": 18,
              "end_line": 2,
              "help": null,
              "line": 2,
              "message": "unknown key `größe`",
              "path": "steps.0.noop.größe",
              "severity": "error"
            }
          ],
          "ok": false
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&compiled.findings.to_json()).unwrap());
}

/// The words in capitals between quotes in the source files: codes, each in the table.
#[test]
fn every_code_is_in_the_table_and_every_row_is_used() {
    let mut used = std::collections::BTreeSet::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("codes.rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let is_code = |word: &&str| FINDING_CODES.iter().any(|(code, _)| code == word);
                let passed =
                    text.split("error(").chain(text.split("warning(")).chain(text.split("note("));
                for argument in
                    passed.skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'))
                {
                    let code = argument.split('"').next().unwrap();
                    let is_capital = code.len() > 3
                        && code.chars().all(|it| it.is_ascii_uppercase() || it == '_');
                    assert!(!is_capital || is_code(&code), "{code} is not in the table");
                }
                used.extend(text.split('"').filter(is_code).map(str::to_owned));
            }
        }
    }
    let unused = FINDING_CODES.iter().filter(|(code, _)| !used.contains(*code));
    assert_eq!(unused.count(), 0, "{:?} are used", used.len());
    assert!(
        FINDING_CODES.is_sorted_by(|one, two| one.0.replace('_', " ") < two.0.replace('_', " "))
    );
}

#[test]
fn a_step_whose_value_lacks_its_key_is_told_how_to_write_it() {
    check_step(
        "- delay: 5s\n- delay: \"2026-11-29T16:00:00Z\"\n- delay: soon\n- fail: Sold \\ out",
        expect![[r#"
            6:12-6:14 error NOT_A_MAPPING: the value of `delay` is a mapping; this is a text
              at: steps.0.delay
              help: write `delay: { for: 5s }`
            7:12-7:34 error NOT_A_MAPPING: the value of `delay` is a mapping; this is a text
              at: steps.1.delay
              help: write `delay: { until: "2026-11-29T16:00:00Z" }`
            8:12-8:16 error NOT_A_MAPPING: the value of `delay` is a mapping; this is a text
              at: steps.2.delay
              help: write `delay: { for: 2h }` or `delay: { until: "2026-11-29T16:00:00Z" }`
            9:11-9:21 error NOT_A_MAPPING: the value of `fail` is a mapping; this is a text
              at: steps.3.fail
              help: write `fail: { message: "Sold \\ out" }`
        "#]],
    );
}

#[test]
fn a_function_that_does_not_exist_is_named_with_those_that_do() {
    check_step(
        "- setVariable: { name: a, value: \"${{ sise('x') }}\" }\n- setVariable: { name: b, value: \"${{ translate('x') }}\" }",
        expect![[r#"
            6:41-6:45 error UNKNOWN_FUNCTION: there is no function `sise`
              at: steps.0.setVariable.value
              help: did you mean `size`?
            7:41-7:50 error UNKNOWN_FUNCTION: there is no function `translate`
              at: steps.1.setVariable.value
              help: the functions are `now`, `has`, `size`, `string`, `number`, `json`, `lower`, `upper`, `trim`, `contains`, `startsWith`, `endsWith`, `sameText`, `includes`, `join`, `split`, `keys`, `min`, `max`, `round`, `plus`
        "#]],
    );
}

#[test]
fn a_misspelt_member_of_an_event_is_found() {
    check(
        "inputs:\n  item: { type: text }\n  more: { type: text }\ntriggers:\n  itemChanged:\n    with: { item: \"${{ trigger.itmeId }}\", more: \"${{ trigger.itemId }}\" }\nsteps:\n  - noop: {}\n",
        expect![[r#"
            6:32-6:38 error UNKNOWN_MEMBER: there is no member `itmeId` here
              at: triggers.itemChanged.with.item
              help: did you mean `itemId`?
        "#]],
    );
    let mut open = manifest();
    open.triggers[0].schema = serde_json::json!({ "properties": { "itemId": {}, "inner": { "properties": { "id": {} } } } });
    let source = "inputs:\n  item: { type: text }\n  more: { type: text }\n  else: { type: text }\ntriggers:\n  itemChanged:\n    with: { item: \"${{ trigger.itmeId }}\", more: \"${{ trigger.inner.it }}\", else: \"${{ trigger.itemId.x }}\" }\nsteps:\n  - noop: {}\n";
    check_with(
        &open,
        source,
        expect![[r#"
        7:32-7:38 error UNKNOWN_MEMBER: there is no member `itmeId` here
          at: triggers.itemChanged.with.item
          help: did you mean `itemId`?
        7:69-7:71 error UNKNOWN_MEMBER: there is no member `it` here
          at: triggers.itemChanged.with.more
          help: did you mean `id`?
    "#]],
    );
    open.triggers[0].schema["additionalProperties"] = true.into();
    check_with(
        &open,
        source,
        expect![[r#"
        7:69-7:71 error UNKNOWN_MEMBER: there is no member `it` here
          at: triggers.itemChanged.with.more
          help: did you mean `id`?
    "#]],
    );
}

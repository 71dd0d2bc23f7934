//! Configs against the schemas of their actions.

use expect_test::expect;
use schemars::JsonSchema;
use surefoot_kernel_core::expr::Template;
use surefoot_language::{ConfigRemark, Manifest, close_schema, compile_judged};

use crate::support::*;

#[test]
fn missing_and_unknown_keys_are_reported_where_they_belong() {
    check_step(
        "- sendEmail: { subjct: a }\n- loadItem: {}\n- loadItem: { item: a, nope: b }",
        expect![[r#"
            6:5-6:14 error CONFIG_MISSING_KEY: the key `to` is missing
              at: steps.0.sendEmail
              help: add `to:`
            6:18-6:24 error CONFIG_UNKNOWN_KEY: unknown key `subjct`
              at: steps.0.sendEmail.subjct
              help: did you mean `subject`?
            7:5-7:13 error CONFIG_MISSING_KEY: the key `item` is missing
              at: steps.1.loadItem
              help: add `item:`
            8:26-8:30 error CONFIG_UNKNOWN_KEY: unknown key `nope`
              at: steps.2.loadItem.nope
        "#]],
    );
}

/// Covers field fault 105.
#[test]
fn a_number_where_a_text_is_wanted_asks_for_quotes() {
    check_step(
        "- sendEmail: { to: 491234, subject: true, copies: [a, 5, null] }",
        expect![[r#"
            6:22-6:28 error CONFIG_TYPE: a text is wanted here; this is a number
              at: steps.0.sendEmail.to
              help: write "491234" in quotes if it is a text
            6:39-6:43 error CONFIG_TYPE: a text is wanted here; this is a bool
              at: steps.0.sendEmail.subject
              help: write "true" in quotes if it is a text
            6:57-6:58 error CONFIG_TYPE: a text is wanted here; this is a number
              at: steps.0.sendEmail.copies.1
              help: write "5" in quotes if it is a text
            6:60-6:64 error CONFIG_TYPE: a text is wanted here; this is null
              at: steps.0.sendEmail.copies.2
              help: write "null" in quotes if it is a text
        "#]],
    );
    check_step(
        "- chargeCard: { amount: \"5\", currency: EURO }\n- chargeCard: { amount: -1, currency: EUR }",
        expect![[r#"
            6:27-6:30 error CONFIG_TYPE: a number is wanted here; this is a text
              at: steps.0.chargeCard.amount
              help: write it without quotes: 5
            6:42-6:46 error CONFIG_VALUE: one of `EUR`, `USD` is wanted here
              at: steps.0.chargeCard.currency
              help: did you mean `EUR`?
            7:27-7:29 error CONFIG_VALUE: this value is less than the minimum of 0
              at: steps.1.chargeCard.amount
        "#]],
    );
}

#[test]
fn an_expression_stands_for_any_value_that_it_may_yield() {
    check_step(
        "- sendEmail: { to: \"${{ context.owner }}\", copies: \"${{ context.copies }}\" }\n- chargeCard: { amount: \"${{ inputs.count }}\", currency: \"${{ context.currency }}\" }\n- notify: { via: \"${{ context.via }}\" }\n- notify: { via: { kind: \"${{ context.kind }}\", address: \"${{ context.address }}\" } }\n- notify: { via: { kind: rooms, ids: [1, \"${{ inputs.count }}\"] } }",
        expect![[r#"
            7:27-7:48 warning MAY_BE_MISSING: the input `count` may be missing, and then the step fails
              at: steps.1.chargeCard.amount
              help: write `inputs.count ?? ...`, ask `has(inputs.count)` before, or make it required
        "#]],
    );
}

#[test]
fn an_expression_that_can_never_fit_is_reported() {
    check_step(
        "- sendEmail: { to: \"${{ inputs.count }}\", copies: [ \"${{ inputs.order }}\" ] }\n- notify: { via: \"${{ inputs.item }}\" }\n- notify: { via: { kind: rooms, ids: [ \"${{ inputs.item }}\" ] } }",
        expect![[r#"
            6:22-6:43 error CONFIG_TYPE: a text is wanted here; the expression gives a number
              at: steps.0.sendEmail.to
            6:55-6:76 error CONFIG_TYPE: a text is wanted here; the expression gives an object
              at: steps.0.sendEmail.copies.0
            7:20-7:40 error CONFIG_TYPE: no variant of what is wanted here is a text
              at: steps.1.notify.via
            8:42-8:62 error CONFIG_TYPE: a number is wanted here; the expression gives a text
              at: steps.2.notify.via.ids.0
        "#]],
    );
}

/// Covers behaviour 31.
#[test]
fn of_a_union_only_the_closest_variant_is_reported() {
    check_step(
        "- notify: { via: { kind: mail, address: 5 } }",
        expect![[r#"
        6:43-6:44 error CONFIG_TYPE: a text is wanted here; this is a number
          at: steps.0.notify.via.address
          help: write "5" in quotes if it is a text
    "#]],
    );
    check_step(
        "- notify: { via: { kind: phone, nubmer: \"1\" } }",
        expect![[r#"
            6:15-6:18 error CONFIG_MISSING_KEY: the key `number` is missing
              at: steps.0.notify.via
              help: add `number:`
            6:35-6:41 error CONFIG_UNKNOWN_KEY: unknown key `nubmer`
              at: steps.0.notify.via.nubmer
              help: did you mean `number`?
        "#]],
    );
    check_step(
        "- notify: { via: { kind: rooms, ids: [1, a], urgent: \"true\" } }",
        expect![[r#"
            6:44-6:45 error CONFIG_TYPE: a number is wanted here; this is a text
              at: steps.0.notify.via.ids.1
            6:56-6:62 error CONFIG_TYPE: a bool is wanted here; this is a text
              at: steps.0.notify.via.urgent
              help: write it without quotes: true
        "#]],
    );
    check_step(
        "- notify: { via: { kind: fax, number: \"1\" } }",
        expect![[r#"
            6:28-6:31 error CONFIG_VALUE: one of `mail`, `phone`, `rooms` is wanted here
              at: steps.0.notify.via.kind
        "#]],
    );
    check_step(
        "- notify: { via: 5 }",
        expect![[r#"
        6:20-6:21 error CONFIG_TYPE: an object is wanted here; this is a number
          at: steps.0.notify.via
    "#]],
    );
    check_step(
        "- notify: { via: { kind: mail, address: \"${{ inputs.count }}\" } }",
        expect![[r#"
            6:43-6:64 error CONFIG_TYPE: a text is wanted here; the expression gives a number
              at: steps.0.notify.via.address
        "#]],
    );
}

/// What an application derives, closed as the module closes it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is wanted")]
struct Report {
    title: String,
    pages: Option<u32>,
    format: Format,
    parts: Vec<Part>,
    #[serde(flatten)]
    target: Target,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is wanted")]
enum Format {
    Pdf,
    Html,
}

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only its schema is wanted")]
enum Part {
    Text { text: String },
    Table { rows: u8 },
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is wanted")]
enum Target {
    Printer { printer: String },
    Mail { mail: String },
}

fn with_report() -> Manifest {
    let mut schema = serde_json::to_value(schemars::schema_for!(Report)).unwrap();
    close_schema(&mut schema);
    let mut manifest = manifest();
    manifest.actions[7].input = schema;
    manifest
}

#[test]
fn derived_schemas_accept_what_fits_whatever_is_computed() {
    let steps = "- anything: { title: a, format: Pdf, parts: [], mail: m }\n- anything: { title: a, pages: null, format: \"${{ context.f }}\", parts: [ { kind: Text, text: \"${{ context.t }}\" }, { kind: Table, rows: 255 } ], printer: \"${{ context.p }}\" }\n- anything: { title: \"${{ context.t }}\", pages: \"${{ context.p }}\", format: Html, parts: \"${{ context.x }}\", mail: \"a ${{ context.m }}\" }";
    check_with(&with_report(), &workflow(steps), expect![[""]]);
}

#[test]
fn derived_schemas_report_what_never_fits() {
    for (step, expected) in [
        (
            "{ title: 5, pages: -1, format: Pdf, parts: [], mail: m }",
            expect![[r#"
            6:24-6:25 error CONFIG_TYPE: a text is wanted here; this is a number
              at: steps.0.anything.title
              help: write "5" in quotes if it is a text
            6:34-6:36 error CONFIG_VALUE: this value is less than the minimum of 0
              at: steps.0.anything.pages
        "#]],
        ),
        (
            "{ title: a, format: pdf, parts: [ { kind: Text, txt: a }, { kind: Table, rows: 256 }, { kind: Image } ], mail: m }",
            expect![[r#"
                6:35-6:38 error CONFIG_VALUE: one of `Pdf`, `Html` is wanted here
                  at: steps.0.anything.format
                  help: did you mean `Pdf`?
                6:49-6:71 error CONFIG_MISSING_KEY: the key `text` is missing
                  at: steps.0.anything.parts.0
                  help: add `text:`
                6:63-6:66 error CONFIG_UNKNOWN_KEY: unknown key `txt`
                  at: steps.0.anything.parts.0.txt
                  help: did you mean `text`?
                6:94-6:97 error CONFIG_VALUE: this value is greater than the maximum of 255
                  at: steps.0.anything.parts.1.rows
                6:109-6:114 error CONFIG_VALUE: one of `Text`, `Table` is wanted here
                  at: steps.0.anything.parts.2.kind
            "#]],
        ),
        (
            "{ title: a, format: Pdf, parts: [], fax: m }",
            expect![[r#"
                6:5-6:13 error CONFIG_MISSING_KEY: the key `printer` is missing
                  at: steps.0.anything
                  help: add `printer:`
                6:51-6:54 error CONFIG_UNKNOWN_KEY: unknown key `fax`
                  at: steps.0.anything.fax
            "#]],
        ),
        (
            "{ title: a, format: Pdf, parts: [], mail: m, extra: 1 }",
            expect![[r#"
            6:60-6:65 error CONFIG_UNKNOWN_KEY: unknown key `extra`
              at: steps.0.anything.extra
        "#]],
        ),
        (
            "{ title: \"${{ context.t }}\", format: Pdf, parts: [], mail: m, extra: 1 }",
            expect![[r#"
                6:77-6:82 error CONFIG_UNKNOWN_KEY: unknown key `extra`
                  at: steps.0.anything.extra
            "#]],
        ),
        (
            "{ title: a, format: Pdf, parts: [], mail: \"${{ inputs.count }}\" }",
            expect![[r#"
                6:57-6:78 error CONFIG_TYPE: a text is wanted here; the expression gives a number
                  at: steps.0.anything.mail
            "#]],
        ),
    ] {
        check_with(&with_report(), &workflow(&format!("- anything: {step}")), expected);
    }
}

#[test]
fn an_input_that_may_be_missing_is_warned_of_where_an_action_insists_on_it() {
    check_step(
        "- chargeCard: { amount: \"${{ inputs.count }}\", currency: EUR }\n- chargeCard: { amount: \"${{ inputs.count ?? 1 }}\", currency: EUR }\n- priceOrder: { stock: \"${{ inputs.order }}\" }\n- if: ${{ has(inputs.count) && has(inputs.order.id) }}\n  then:\n    - chargeCard: { amount: \"${{ inputs.count }}\", currency: EUR }\n    - priceOrder: { stock: \"${{ inputs.order }}\" }",
        expect![[r#"
            6:27-6:48 warning MAY_BE_MISSING: the input `count` may be missing, and then the step fails
              at: steps.0.chargeCard.amount
              help: write `inputs.count ?? ...`, ask `has(inputs.count)` before, or make it required
            8:26-8:47 warning MAY_BE_MISSING: the input `order` may be missing, and then the step fails
              at: steps.2.priceOrder.stock
              help: write `inputs.order ?? ...`, ask `has(inputs.order)` before, or make it required
        "#]],
    );
}

/// A whole number and a number with a fraction are both numbers: the message says what is wrong.
#[test]
fn a_fraction_where_a_whole_number_is_wanted_is_called_that() {
    check_step(
        "- notify: { via: { kind: rooms, ids: [1, 2.5, 2.0] } }",
        expect![[r#"
        6:44-6:47 error CONFIG_TYPE: a whole number is wanted here; 2.5 is none
          at: steps.0.notify.via.ids.1
    "#]],
    );
}

/// What only the action knows is said at its place; what does not fit the schema is not judged.
#[test]
fn a_judge_speaks_of_configs_that_fit() {
    let source = "steps:\n  - sendEmail: { to: a, copies: [b, \"${{ 'c' }}\"] }\n  - sendEmail: { nope: a }\n";
    let judged = std::cell::RefCell::new(Vec::new());
    let judge = |action: &surefoot_language::ActionDecl, config: &Template| {
        judged.borrow_mut().push((action.name.clone(), config.is_written("/copies/1")));
        let remark = |pointer: &str, is_refused| ConfigRemark {
            pointer: pointer.to_owned(),
            message: "odd".to_owned(),
            is_refused,
        };
        vec![remark("/copies/0", true), remark("", false)]
    };
    let compiled = compile_judged(source, &manifest(), &judge);
    assert_eq!(*judged.borrow(), [("sendEmail".to_owned(), false)]);
    let said: Vec<_> =
        compiled.findings.iter().map(|it| (it.to_string(), it.path.as_str())).collect();
    let said: Vec<_> = said.iter().map(|(text, path)| (text.as_str(), *path)).collect();
    assert_eq!(
        said,
        [
            ("2:5: CONFIG_DOUBTFUL: odd", "steps.0.sendEmail"),
            ("2:34: CONFIG_VALUE: odd", "steps.0.sendEmail.copies.0"),
            ("3:5: CONFIG_MISSING_KEY: the key `to` is missing", "steps.1.sendEmail"),
            ("3:18: CONFIG_UNKNOWN_KEY: unknown key `nope`", "steps.1.sendEmail.nope"),
        ]
    );
    assert!(compiled.ir.is_none());
}

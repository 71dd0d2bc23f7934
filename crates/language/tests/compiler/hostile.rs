//! Input that means harm, and input that means nothing.

use std::time::{Duration, Instant};

use expect_test::expect;
use proptest::prelude::*;
use surefoot_language::{Findings, compile};

use crate::support::*;

/// How much longer than an honest workflow of the same length a hostile one may take. Both are measured here, one
/// right after the other: on a busy machine, seconds say nothing. Far above what is seen, far below what grows with the
/// square of the length.
const LONGER_THAN_HONEST: u32 = 200;

fn quickly(source: &str) -> Findings {
    let begun = Instant::now();
    let findings = compiled(&manifest(), source).findings;
    in_proportion(begun.elapsed(), source);
    findings
}

/// Compares with a workflow of as many steps as the limits allow.
fn in_proportion(took: Duration, source: &str) {
    let begun = Instant::now();
    let honest = format!("steps:\n{}", "- sendEmail: { to: \"${{ 'a' + 'b' }}\" }\n".repeat(1_000));
    assert!(compile(&honest, Some(&manifest())).findings.as_slice().len() < 1_001);
    let honest = begun.elapsed();
    let start: String = source.chars().take(40).collect();
    assert!(
        took < honest * LONGER_THAN_HONEST,
        "{start:?} took {took:?}, an honest one {honest:?}"
    );
}

#[track_caller]
fn check_quickly(source: &str, expected: expect_test::Expect) {
    expected.assert_eq(&show(&quickly(source)));
}

/// Covers behaviour 13.
#[test]
fn a_source_that_is_too_long_is_refused_before_it_is_read() {
    let fits = format!("steps:\n  - noop: {{}}\n#{}", "ü".repeat(200_000 - 21));
    assert_eq!(fits.chars().count(), 200_000);
    check_quickly(&fits, expect![[""]]);
    check_quickly(
        &format!("{fits}ü"),
        expect![[r#"
        3:199981-3:199982 error YAML_TOO_LONG: a workflow has at most 200000 characters
          help: move long texts into the application
    "#]],
    );
}

/// Covers behaviour 14.
#[test]
fn deep_nesting_ends_quickly_in_one_finding() {
    check_quickly(
        &"[".repeat(100_000),
        expect![[r#"
            1:65-1:66 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
        "#]],
    );
    check_quickly(
        &format!("steps: {}", "[".repeat(100_000)),
        expect![[r#"
            1:72-1:73 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
        "#]],
    );
    check_quickly(
        &"{a: ".repeat(40_000),
        expect![[r#"
            1:257-1:258 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
        "#]],
    );
    check_quickly(
        &"- ".repeat(90_000),
        expect![[r#"
            1:129-1:130 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
        "#]],
    );
    assert_eq!(quickly(&"? ".repeat(90_000)).as_slice().len(), 64);
    let block: String = (0..600).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    check_quickly(
        &block,
        expect![[r#"
            65:65-65:66 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
        "#]],
    );
    let fits = format!("steps: [ {{ anything: {{ a: {}1{} }} }} ]", "[".repeat(60), "]".repeat(60));
    check_quickly(&fits, expect![[""]]);
    let over = format!("steps: [ {{ anything: {{ a: {}1{} }} }} ]", "[".repeat(61), "]".repeat(61));
    check_quickly(
        &over,
        expect![[r#"
        1:87-1:88 error YAML_TOO_DEEP: lists and mappings may be nested 64 deep
    "#]],
    );
}

/// Covers field fault 109.
#[test]
fn an_alias_bomb_is_refused_without_being_expanded() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let findings = quickly(&bomb);
    assert_eq!(findings.as_slice().len(), 12 + 11 * 9);
}

#[test]
fn a_hundred_thousand_mistakes_end_quickly() {
    let cut = |text: String| text.chars().take(200_000).collect::<String>();
    let sources = [
        cut(format!("steps: [{}]", "*a,".repeat(60_000))),
        cut(format!("a: [{}]", "yes,".repeat(45_000))),
        cut(format!("steps:\n{}", "  - a:\n".repeat(20_000))),
        cut(format!("steps:\n{}", "- x: {}\n".repeat(12_000))),
        cut(format!("steps:\n- anything:\n    a: \"{}\"\n", "${{ + }}".repeat(24_000))),
        cut(format!("steps:\n- anything:\n    a: \"{}\"\n", "${{a}}".repeat(33_000))),
        cut(format!("steps:\n- anything:\n    a: \"\\t{}\"\n", "${{ ".repeat(45_000))),
        cut(format!(
            "steps:\n- anything: {{ {} }}\n",
            (0..20_000).map(|n| format!("k{n}: ${n}, ")).collect::<String>()
        )),
        cut(format!(
            "steps:\n- noop: {{ {} }}\n",
            (0..15_000).map(|n| format!("k{n}: 1, ")).collect::<String>()
        )),
        cut(format!("steps:\n- sendEmail: {{ to: a, copies: [{}] }}\n", "1,".repeat(45_000))),
        cut(format!(
            "inputs: {{ {} }}",
            (0..10_000).map(|n| format!("i{n}: {{}}, ")).collect::<String>()
        )),
        cut(format!(
            "steps:\n{}- nope: {{}}\n",
            "- { if: \"${{ true }}\", then: [ { fail: { message: a } }, { noop: {} } ] }\n"
                .repeat(1_100)
        )),
        cut(format!("{}: 1", "k".repeat(150_000))),
        cut(format!("? {}\n: 1", "k".repeat(190_000))),
        cut(format!("steps: \"{}\"", "\\u00e4".repeat(33_000))),
        cut("!".repeat(200_000)),
        cut("&a ".repeat(60_000)),
        cut("a: &b\n".repeat(33_000)),
        cut("%".repeat(200_000)),
        cut("---\n".repeat(50_000)),
        cut("\t".repeat(200_000)),
        cut("\r".repeat(200_000)),
        cut("'".repeat(199_999)),
        cut("# x\n".repeat(50_000)),
        cut("\0".repeat(200_000)),
        cut("a:\n".repeat(60_000)),
    ];
    for source in sources {
        let begun = Instant::now();
        let findings = compile(&source, Some(&manifest())).findings;
        let took = begun.elapsed();
        let start: String = source.chars().take(40).collect();
        in_proportion(took, &source);
        assert!(findings.as_slice().len() <= 1_001, "{start:?}");
        assert!(!findings.is_ok() || source.starts_with("steps:\n- anything"), "{start:?}");
        let begun = Instant::now();
        let shown = findings.to_string();
        in_proportion(begun.elapsed(), &source);
        assert!(shown.len() < 4_000_000, "{start:?} renders {} bytes", shown.len());
    }
}

/// A place and what to do there.
#[derive(Debug, Clone)]
enum Edit {
    Remove(usize),
    Insert(usize, String),
    Double(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "${{", "}}", "'", "\"", "\n", "  ", "- ", ": ", "{", "}", "[", "]", "&a ", "*a", "!b ",
            "<<: *a", "yes", "010", "\t", "#", "|\n", ">\n", "? ", "---\n", "%Y", "é", "\u{feff}",
            "\r", "??", "&&", ".", "(", ")",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        any::<usize>().prop_map(Edit::Remove),
        (any::<usize>(), piece).prop_map(|(at, text)| Edit::Insert(at, text)),
        any::<usize>().prop_map(Edit::Double),
    ]
}

fn apply(source: &str, edits: &[Edit]) -> String {
    let mut text: Vec<char> = source.chars().collect();
    for edit in edits {
        let length = text.len().max(1);
        match edit {
            Edit::Remove(at) if !text.is_empty() => drop(text.remove(at % length)),
            Edit::Remove(_) => {}
            Edit::Insert(at, piece) => {
                let at = at % length.min(text.len() + 1);
                text.splice(at..at, piece.chars());
            }
            Edit::Double(at) => {
                let lines: String = text.iter().collect();
                let lines: Vec<&str> = lines.split_inclusive('\n').collect();
                let line = lines.get(at % lines.len().max(1)).copied().unwrap_or_default();
                let twice = line.repeat(2);
                text = lines.concat().replacen(line, &twice, 1).chars().collect();
            }
        }
    }
    text.into_iter().collect()
}

/// Whatever the text: an answer, places inside the text, and the same answer again.
fn answers(source: &str) {
    for manifest in [Some(&manifest()), None] {
        let compiled = compile(source, manifest);
        assert_eq!(compiled.ir.is_some(), compiled.findings.is_ok());
        for found in &compiled.findings {
            assert!(source.get(found.span.range()).is_some(), "{found:?}");
            assert!(found.line >= 1 && found.column >= 1);
            assert!((found.end_line, found.end_column) >= (found.line, found.column));
        }
        let again = compile(source, manifest);
        assert_eq!(again.findings, compiled.findings);
        let _ = compiled.findings.to_string();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_an_answer(source in "\\PC{0,200}") {
        answers(&source);
    }

    #[test]
    fn any_text_of_yaml_signs_gets_an_answer(source in "[-a:{}\\[\\],?&*!|>'\"%@ \n\t#$y0.<~\r]{0,80}") {
        answers(&source);
    }

    #[test]
    fn any_expression_gets_an_answer(expression in "[a-c0-9 .'+*/%<>=!&|?()\\[\\],ü-]{0,60}") {
        answers(&workflow(&format!("- anything:\n    a: \"${{{{ {expression} }}}}\"")));
    }

    #[test]
    fn any_mutation_of_a_valid_file_gets_an_answer(edits in prop::collection::vec(edit(), 1..8)) {
        answers(&apply(EXAMPLE, &edits));
    }
}

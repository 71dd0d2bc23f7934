//! Checking and publishing.

use expect_test::expect;
use serde_json::Value;

use crate::shell::{Shell, normal};

#[test]
fn check_json_has_the_promised_form() {
    let shell = Shell::new();
    shell.write("bad.yaml", "steps:\n  - payy: {}\n  - succeed: { mesage: 'ä' }\n");
    let did = shell.run("check bad.yaml --manifest manifest.json --json");
    assert_eq!((did.code, did.err.as_str()), (1, ""));
    let json: Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!(json["ok"], false);
    let mut names: Vec<&str> =
        json["findings"][0].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["code", "column", "end_column", "end_line", "help", "line", "message", "path", "severity"]
    );
    let ok = shell.json("check reorder.yaml --manifest manifest.json");
    assert_eq!(ok, serde_json::json!({ "ok": true, "findings": [] }));
    assert!(!shell.has("surefoot.db"));
}

#[test]
fn check_shows_excerpts() {
    let shell = Shell::new();
    shell.write("bad.yaml", "steps:\n  - payy: {}\n");
    let did = shell.run("check bad.yaml --manifest manifest.json");
    assert_eq!(did.code, 1);
    expect![[r#"
        error[UNKNOWN_ACTION]: there is no action `payy`
         --> bad.yaml:2:5
          |
        2 |   - payy: {}
          |     ^^^^
          |
          = help: did you mean `pay`?
    "#]]
    .assert_eq(&did.out);
    assert_eq!(did.err, "bad.yaml: 1 error, 0 warnings\n");
    let did = shell.run("check reorder.yaml");
    assert_eq!(did.code, 0);
    for name in ["trigger `stockLow`", "action `mail`", "action `pay`"] {
        assert!(
            did.out.contains(&format!("NOT_CHECKED]: there is no ready-made {name}")),
            "{did:?}"
        );
    }
}

/// Without an application: what is ready-made is checked.
#[test]
fn check_knows_the_ready_made_actions() {
    let shell = Shell::new();
    shell.write(
        "call.yaml",
        "steps:\n  - httpCall: { url: https://a.example, timeout: 90s }\n  - httpCal: { url: https://a.example }\n",
    );
    let did = shell.run("check call.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("call.yaml:2:50"), "{did:?}");
    assert!(did.out.contains("did you mean `httpCall`?"), "{did:?}");
    assert_eq!(did.err, "call.yaml: 1 error, 1 warning\n");
    shell.write(
        "confirm.yaml",
        "steps:\n  - httpRequest:\n      url: https://a.example\n      confirm:\n        url: https://a.example\n        succeeded: status = 200\n        failed: boddy.state == 'no'\n",
    );
    let did = shell.run("check confirm.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    for place in ["confirm.yaml:6:20", "confirm.yaml:7:17", "`boddy` is not known here"] {
        assert!(did.out.contains(place), "{did:?}");
    }
    shell.write("well.yaml", "steps:\n  - httpCall: { url: https://a.example }\n");
    let did = shell.run("check well.yaml --json");
    let found: Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!((did.code, found), (0, serde_json::json!({ "ok": true, "findings": [] })));
    assert!(!shell.has("surefoot.db"));
}

#[test]
fn publish_makes_versions() {
    let shell = Shell::new();
    let line = "publish reorder.yaml --manifest manifest.json --scope berlin --app shop";
    let did = shell.run(line);
    assert_eq!(did.code, 0, "{did:?}");
    expect![[r#"
        published reorder version 1 (ver_00000000000000000000000000000000), live
    "#]]
    .assert_eq(&normal(&did.out));
    shell.write("bindings.json", r#"{"connection": {"supplier": "c-1"}}"#);
    let did =
        shell.run(&format!("{line} --draft --bindings bindings.json --workflow again --json"));
    expect![[r#"
        {
          "workflow": "again",
          "id": "ver_00000000000000000000000000000000",
          "revision": 1,
          "active": false
        }
    "#]]
    .assert_eq(&normal(&did.out));
}

#[test]
fn what_cannot_be_published_creates_nothing() {
    let shell = Shell::new();
    shell.write("bad.yaml", "steps:\n  - payy: {}\n");
    shell.write("list.json", "[]");
    let publish = "publish bad.yaml --manifest manifest.json --app shop --scope berlin";
    let did = shell.run(publish);
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("bad.yaml") || did.out.contains("payy"), "{}", did.out);
    let json = shell.json(publish);
    assert_eq!(json["findings"][0]["line"], 2);
    for (line, code, says) in [
        ("publish reorder.yaml --app shop --scope berlin", 2, "--manifest"),
        ("publish reorder.yaml --manifest manifest.json --app shop", 2, "--scope"),
        ("publish reorder.yaml --manifest manifest.json --scope berlin", 3, "no store"),
        ("publish none.yaml --manifest manifest.json --app shop --scope berlin", 2, "none.yaml"),
        ("publish reorder.yaml --manifest list.json --app shop --scope berlin", 2, "list.json"),
        (
            "publish reorder.yaml --manifest manifest.json --app shop --scope berlin --bindings list.json",
            2,
            "list.json",
        ),
        ("emit x --app shop --scope berlin --data {", 2, "--data"),
        ("emit x --scope berlin", 3, "no store"),
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, code, "{line}: {did:?}");
        assert!(did.err.contains(says), "{line}: {}", did.err);
        assert!(!shell.has("surefoot.db"), "{line}");
    }
}

#[test]
fn emit_takes_json_and_files_and_is_strict() {
    let shell = Shell::published();
    shell.write("data.json", r#"{"item": "bolt"}"#);
    let did = shell.run("emit inventory.stockLow --scope berlin --data data.json --key k");
    assert_eq!(did.code, 0, "{did:?}");
    expect![[r#"
        event evt_00000000000000000000000000000000
        run   run_00000000000000000000000000000000
    "#]]
    .assert_eq(&normal(&did.out));
    let again = ["emit", "inventory.stockLow", "--scope", "berlin", "--key", "k", "--data"];
    let did = shell.with(&[&again[..], &[r#"{"item": "nut"}"#]].concat());
    expect![[r#"
        event evt_00000000000000000000000000000000 (its key was recorded before, with ANOTHER payload)
        run   run_00000000000000000000000000000000
    "#]].assert_eq(&normal(&did.out));
    let twice = shell.with(&[&again[..], &[r#"{"item": 1, "item": 2}"#]].concat());
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("at `/item`"), "{}", twice.err);
    let large = shell.with(&[&again[..], &["18446744073709551616"]].concat());
    assert_eq!(large.code, 2, "{large:?}");
}

/// An application's own binary: the manifest is built in.
#[test]
fn a_built_in_module_needs_no_manifest() {
    use surefoot_cli::{Cli, Exit};
    let shell = Shell::new();
    let manifest =
        surefoot_language::Manifest::from_json(&crate::shell::manifest().to_string()).unwrap();
    let url = format!("sqlite:{}", shell.path("own.db").display());
    let file = shell.path("reorder.yaml").display().to_string();
    let line = ["own", "publish", &file, "--app", "shop", "--scope", "berlin", "--store", &url];
    let run = |cli: Cli| cli.run(line.iter().map(Into::into));
    assert_eq!(run(Cli::new()), Exit::Usage);
    assert_eq!(run(Cli::new().manifest(manifest)), Exit::Done);
    assert!(shell.has("own.db"));
}

#[test]
fn trace_context_goes_with_an_event_and_is_shown_with_its_run() {
    let shell = Shell::published();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let data = r#"{"item":"bolt","missing":30}"#;
    let emit = ["emit", "inventory.stockLow", "--scope", "berlin", "--data", data, "--json"];
    let with = |trace: &[&str]| shell.with(&[&emit[..], trace].concat());
    let did = with(&["--traceparent", parent, "--tracestate", "congo=t61rcWkgMzE"]);
    assert_eq!(did.code, 0, "{did:?}");
    let emitted: Value = serde_json::from_str(&did.out).unwrap();
    let run = emitted["runs"][0].as_str().unwrap();
    let trace = &shell.json(&format!("show {run}"))["trace"];
    let shown = serde_json::json!({ "traceparent": parent, "tracestate": "congo=t61rcWkgMzE" });
    assert_eq!(*trace, shown);
    let bare = with(&[]);
    let emitted: Value = serde_json::from_str(&bare.out).unwrap();
    let run = emitted["runs"][0].as_str().unwrap();
    assert!(shell.json(&format!("show {run}")).get("trace").is_none());
}

#[test]
fn malformed_trace_context_is_refused_before_anything_is_recorded() {
    let shell = Shell::published();
    let before = shell.fingerprint();
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let cases: [(&[&str], &str); 3] = [
        (&["--traceparent", "00-zz"], "`traceparent`"),
        (&["--traceparent", good, "--tracestate", "a=1,a=2"], "a key comes twice"),
        (&["--tracestate", "a=1"], "--traceparent"),
    ];
    for (trace, said) in cases {
        let emit = ["emit", "inventory.stockLow", "--scope", "berlin"];
        let did = shell.with(&[&emit[..], trace].concat());
        assert_eq!(did.code, 2, "{did:?}");
        assert!(did.err.contains(said), "{did:?}");
    }
    assert_eq!(shell.fingerprint(), before);
}

#[test]
fn runs_are_found_by_the_tags_of_their_event() {
    let shell = Shell::published();
    let data = r#"{"item":"bolt","missing":30}"#;
    let emit = ["emit", "inventory.stockLow", "--scope", "berlin", "--data", data, "--json"];
    let with = |tags: &[&str]| shell.with(&[&emit[..], tags].concat());
    let run = |did: &crate::shell::Did| {
        let emitted: Value = serde_json::from_str(&did.out).unwrap();
        emitted["runs"][0].as_str().unwrap().to_owned()
    };
    let tagged = run(&with(&["--tag", "urgent", "--tag", "customer:42"]));
    let bare = run(&with(&[]));
    let found = |tag: &str| shell.json(&format!("runs --tag {tag}"))["runs"].clone();
    assert_eq!(found("customer:42").as_array().unwrap().len(), 1);
    assert_eq!(found("customer:42")[0]["id"], serde_json::json!(tagged));
    assert_eq!(found("customer:4"), serde_json::json!([]));
    let shown = shell.json(&format!("show {tagged}"));
    assert_eq!(shown["event"]["tags"], serde_json::json!(["customer:42", "urgent"]));
    assert!(shell.run(&format!("show {tagged}")).out.contains("tags      customer:42 urgent"));
    assert!(shell.json(&format!("show {bare}"))["event"].get("tags").is_none());
    let refused = with(&["--tag", "two words"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("cannot be the name of a tag"), "{refused:?}");
    let many: Vec<String> = (0..17).flat_map(|n| ["--tag".to_owned(), format!("t{n}")]).collect();
    let refused = with(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(refused.err.contains("the event has 17 tags, the limit is 16"), "{refused:?}");
}

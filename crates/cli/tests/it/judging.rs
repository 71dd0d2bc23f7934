//! `check` says what a step of a ready-made action would refuse.

use serde_json::{Value, json};

use crate::shell::Shell;

/// The findings of a file with one step.
fn findings(shell: &Shell, step: &Value) -> Vec<Value> {
    let source =
        json!({ "inputs": { "x": { "type": "text", "required": true } }, "steps": [step] });
    // JSON is YAML.
    shell.write("flow.yaml", &source.to_string());
    let did = shell.run("check flow.yaml --json");
    let found: Value = serde_json::from_str(&did.out).unwrap_or_else(|_| panic!("{did:?}"));
    found["findings"].as_array().unwrap().clone()
}

/// The one thing that is wrong with a step.
fn finding(shell: &Shell, step: &Value) -> Value {
    let mut found = findings(shell, step);
    assert_eq!(found.len(), 1, "{step}: {found:?}");
    found.remove(0)
}

fn request(more: Value) -> Value {
    let mut config = json!({ "url": "https://a.example/${{ inputs.x }}" });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "httpRequest": config })
}

#[test]
fn what_a_request_would_refuse_is_a_finding() {
    let shell = Shell::new();
    let confirm = |more: Value| {
        let mut confirm = json!({ "url": "https://a.example/${{ inputs.x }}" });
        confirm.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request(json!({ "method": "POST", "confirm": confirm }))
    };
    for (step, said) in [
        (request(json!({ "json": { "a": "${{ inputs.x }}" } })), "a GET request has no body"),
        (request(json!({ "method": "HEAD", "text": "a" })), "a HEAD request has no body"),
        (
            request(json!({ "method": "POST", "json": 1, "text": "${{ inputs.x }}" })),
            "`json` or `text`, not both",
        ),
        (request(json!({ "headers": { "Host": "b" } })), "the header `Host` cannot be set"),
        (
            request(json!({ "headers": { "X": "a\r\nY: b" } })),
            "the value of the header `X` cannot be sent",
        ),
        (request(json!({ "headers": { "X": "a", "x": "${{ inputs.x }}" } })), "stands twice"),
        (
            request(json!({ "url": "https://me:pw@a.example" })),
            "must not hold a user or a password",
        ),
        (request(json!({ "url": "ftp://a.example" })), "must begin with `https://`"),
        (
            request(json!({ "headers": { "A": { "secret": "" } } })),
            "the secret at `/headers/A` has a blank name",
        ),
        (
            request(json!({ "method": "POST", "json": [{ "secret": " " }] })),
            "the secret at `/json/0` has a blank name",
        ),
        (
            request(json!({ "headers": { "A": { "secret": "${{ inputs.x }}" } } })),
            "the name of a secret is written as it is",
        ),
        (
            request(json!({ "statuses": { "success": [404], "refused": [404] } })),
            "status 404 stands in `statuses` twice",
        ),
        (confirm(json!({ "url": "https://a.example/{effectkey}" })), "nothing is filled in"),
        (
            confirm(json!({ "url": "https://a.example/${{ inputs.x }}/{key}" })),
            "nothing is filled in for `{key}`",
        ),
        (confirm(json!({ "query": { "key": "{effect_key}" } })), "`{effectKey}`"),
        (confirm(json!({ "headers": { "te": "x" } })), "the header `te` cannot be set"),
    ] {
        let found = finding(&shell, &step);
        let message = found["message"].as_str().unwrap();
        assert!(message.contains(said), "{step}: {message}");
        assert_eq!(found["severity"], "error", "{step}");
    }
    assert_eq!(shell.run("check flow.yaml").code, 1);
    // It is refused before anything is stored, too.
    assert_eq!(shell.run(r#"run flow.yaml --inputs {"x":"y"}"#).code, 1);
    assert_eq!(shell.run("publish flow.yaml --ready-made --app local --scope local").code, 1);
    assert!(!shell.has("surefoot.db"));
}

/// Whatever is only known in a run is not judged before.
#[test]
fn what_may_be_right_is_no_finding() {
    let shell = Shell::new();
    for step in [
        request(json!({ "method": "${{ inputs.x }}", "json": 1 })),
        request(json!({ "url": "${{ inputs.x }}/a", "timeout": "${{ inputs.x }}" })),
        // Where it may lead is for `run` to know.
        request(json!({ "url": "http://127.0.0.1:8080/a" })),
        request(json!({ "headers": { "A": { "secret": "K", "prefix": "${{ inputs.x }}" } } })),
        request(json!({
            "method": "POST",
            "json": { "secret": { "secret": "K" }, "x": [{ "secret": "${{ inputs.x }}", "id": 1 }] },
            "confirm": {
                "url": "${{ inputs.x }}/{effectKey}?q={}",
                "query": { "q": "{\"a\": 1}", "key": "{effectKey}" },
            },
        })),
        json!({ "classify": { "text": "${{ inputs.x }}", "labels": ["a", "${{ inputs.x }}", "${{ inputs.x }}"] } }),
        json!({ "classifyMany": { "texts": ["${{ inputs.x }}"], "labels": ["a", "b"] } }),
        json!({ "extract": { "text": "a", "schema": { "type": "object", "title": "${{ inputs.x }}" } } }),
        json!({ "emitEvent": { "type": "${{ inputs.x }}", "dedupeKey": "${{ inputs.x }}" } }),
        json!({ "signal": { "kind": "a", "key": "${{ inputs.x }}", "data": "${{ inputs.x }}" } }),
    ] {
        let found: Vec<Value> = findings(&shell, &step);
        assert!(found.iter().all(|it| it["severity"] != "error"), "{step}: {found:?}");
        assert!(found.iter().all(|it| it["code"] != "CONFIG_DOUBTFUL"), "{step}: {found:?}");
    }
}

#[test]
fn what_a_question_to_a_model_would_refuse_is_a_finding() {
    let shell = Shell::new();
    let extract = |schema: Value| json!({ "extract": { "text": "a", "schema": schema } });
    let remote = json!({ "type": "object", "$ref": "https://a.example/schema.json" });
    let pattern = json!({ "type": "object", "properties": { "a": { "pattern": "(" } } });
    for (step, said) in [
        (extract(remote), "the schema cannot be used"),
        (extract(pattern), "the schema cannot be used"),
        (extract(json!({ "type": "array" })), "give it `type: object`"),
        (
            json!({ "classify": { "text": "${{ inputs.x }}", "labels": ["a", "b", "a"] } }),
            "the label `a` is blank, or stands twice",
        ),
        (json!({ "classifyMany": { "texts": ["a"], "labels": ["a", " "] } }), "is blank"),
        (json!({ "emitEvent": { "type": "shop.paid", "workflow": " " } }), "blank"),
    ] {
        let found = finding(&shell, &step);
        let message = found["message"].as_str().unwrap();
        assert!(message.contains(said), "{step}: {message}");
    }
}

/// The name of the secret would go to the server in its place.
#[test]
fn what_looks_like_a_secret_and_is_none_is_warned_of() {
    let shell = Shell::new();
    for odd in [
        json!({ "secret": "KEY", "extra": 1 }),
        json!({ "secret": 5 }),
        json!({ "secret": null }),
        json!({ "secret": "KEY", "prefix": 7 }),
    ] {
        let step = request(json!({ "method": "POST", "json": { "deep": [odd] } }));
        let found = finding(&shell, &step);
        assert_eq!(found["code"], "CONFIG_DOUBTFUL");
        assert_eq!(
            (&found["severity"], &found["path"]),
            (&json!("warning"), &json!("steps.0.httpRequest.json.deep.0"))
        );
        assert!(found["message"].as_str().unwrap().contains("no secret in its place"), "{found}");
    }
    let did = shell.run(r#"run flow.yaml --inputs {"x":"y"} --dry-run"#);
    assert_eq!(did.code, 0, "{did:?}");
    assert!(
        did.err.contains("warning[CONFIG_DOUBTFUL]") && did.err.contains("flow.yaml:1:"),
        "{did:?}"
    );
    let did = shell.run("publish flow.yaml --ready-made --app local --scope local");
    assert!(did.code == 0 && did.out.contains("CONFIG_DOUBTFUL"), "{did:?}");
}

/// An application has them under the same names, and its own under others.
#[test]
fn ready_made_actions_of_an_application_are_judged_as_well() {
    let shell = Shell::new();
    let client = surefoot_actions::http::HttpClient::builder().build().unwrap();
    let call = surefoot_actions::http::HttpCall::new(client);
    let module = surefoot_language::Module::builder("shop", 1).idempotent(call).build().unwrap();
    shell.write("shop.json", &module.manifest().to_json());
    shell.write("call.yaml", "steps:\n  - httpCall: { url: https://a.example, json: 1 }\n");
    let did = shell.run("check call.yaml --manifest shop.json");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("a GET request has no body"), "{did:?}");
    let other = module.manifest().to_json().replace("\"timeout\"", "\"patience\"");
    shell.write("other.json", &other);
    let did = shell.run("check call.yaml --manifest other.json");
    assert_eq!(did.code, 0, "{did:?}");
}

/// Findings name the file as it was typed.
#[test]
fn findings_are_of_the_file_that_was_named() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("flows")).unwrap();
    shell.write("flows/bad.yaml", "steps:\n  - httpReqest: { url: x }\n");
    let ran = shell.run("run flows/bad.yaml");
    let published = shell.run("publish flows/bad.yaml --ready-made --app local --scope local");
    for did in [ran, published] {
        assert_eq!(did.code, 1, "{did:?}");
        assert!(did.out.contains("--> flows/bad.yaml:2:5"), "{did:?}");
    }
    shell.write("flows/bound.yaml", "steps:\n  - mail: { to: '${{ bindings.person.ada }}' }\n");
    let line = "publish flows/bound.yaml --manifest manifest.json --app shop --scope berlin";
    let did = shell.run(line);
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("--> flows/bound.yaml:2:"), "{did:?}");
    assert!(!shell.has("surefoot.db"));
}

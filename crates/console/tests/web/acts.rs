//! What forms do, without a browser.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use surefoot_console::Role;
use surefoot_kernel_core::RunState;

use crate::looks::versions;
use crate::stage::{Stage, claim, emit, finish, form, furnished, open_as};
use crate::world::{SCOPE, World, app, failed};

#[tokio::test]
async fn an_effect_is_settled_from_the_queue_and_the_run_goes_on() {
    let it = furnished(open_as(Role::Operator)).await;
    let (stage, run) = (&it.stage, it.unknown);
    stage.get("/effects").await.has(&run.to_string()).has("ambiguous");
    let opened = stage.get(&format!("/effects?open={run}")).await;
    opened
        .has("It happened")
        .has("It was refused")
        .has("It did not happen")
        .has("name=\"step\" value=\"steps.1\"");
    let revision = stage.world.revision(run).await.to_string();
    let path = format!("/runs/{run}/act");
    let fields = |json| {
        [
            ("deed", "succeeded"),
            ("step", "steps.1"),
            ("revision", revision.as_str()),
            ("back", "effects"),
            ("reason", "the bank's list has it"),
            ("json", json),
        ]
    };
    for wrong in ["", "{", "{\"id\": 1e999}", "{\"id\": 7}"] {
        let got = stage.post(&path, &fields(wrong)).await;
        assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {}", got.text);
        got.has("class=\"notice t-bad\"").has("value=\"the bank&#39;s list has it\"");
    }
    let got = stage.post(&path, &fields("{\"id\": \"r-1\"}")).await;
    assert_eq!((got.status, got.location()), (StatusCode::SEE_OTHER, "/effects?done=done"));
    let left = stage.get(got.location()).await;
    assert!(!left.has("Done.").text.contains(&run.to_string()), "it is settled");
    finish(&stage.world, run).await;
    assert_eq!(stage.world.row(run).await.state(), RunState::Succeeded);
    let said = &stage.world.audit().await[0];
    assert_eq!(said, &("resolve".into(), "ann".into(), "the bank's list has it".into()));
}

#[tokio::test]
async fn each_deed_has_a_form_that_does_it() {
    for (deed, state) in [
        ("failed", RunState::Failed),
        ("not_performed", RunState::Queued),
        ("reconcile", RunState::Queued),
        ("abandon_unknown", RunState::Failed),
        ("cancel", RunState::NeedsAttention),
    ] {
        let it = furnished(open_as(Role::Operator)).await;
        let run = it.unknown;
        let revision = it.stage.world.revision(run).await.to_string();
        it.stage.get(&format!("/runs/{run}")).await.has(&format!("value=\"{deed}\""));
        let fields = [
            ("deed", deed),
            ("step", "steps.1"),
            ("revision", &revision),
            ("reason", "we looked"),
            ("message", "declined"),
            ("code", "CARD_DECLINED"),
        ];
        let got = it.stage.post(&format!("/runs/{run}/act"), &fields).await;
        assert_eq!(got.status, StatusCode::SEE_OTHER, "{deed}: {}", got.text);
        assert_eq!(it.stage.world.row(run).await.state(), state, "{deed}");
        it.stage.get(got.location()).await.has("class=\"notice t-good\"");
    }
}

#[tokio::test]
async fn a_run_that_moved_since_is_not_touched_and_what_was_typed_stays() {
    let it = furnished(open_as(Role::Operator)).await;
    let run = it.failed;
    let old = (it.stage.world.revision(run).await - 1).to_string();
    let fields = [("deed", "retry"), ("revision", old.as_str()), ("reason", "the cause is mended")];
    let got = it.stage.post(&format!("/runs/{run}/act"), &fields).await;
    assert_eq!(got.status, StatusCode::CONFLICT);
    got.has("nothing was changed")
        .has("value=\"the cause is mended\"")
        .has("id=\"deed-retry\" name=\"deed\" open");
    assert_eq!(it.stage.world.row(run).await.state(), RunState::Failed);
    for (fields, status) in [
        (vec![("deed", "retry"), ("reason", "x")], StatusCode::UNPROCESSABLE_ENTITY),
        (vec![("deed", "fly"), ("revision", "1")], StatusCode::UNPROCESSABLE_ENTITY),
        (vec![("deed", "retry"), ("revision", "1")], StatusCode::BAD_REQUEST),
    ] {
        let got = it.stage.post(&format!("/runs/{run}/act"), &fields).await;
        assert_eq!(got.status, status, "{fields:?}");
    }
}

#[tokio::test]
async fn a_signal_wakes_the_run_that_waits_for_it() {
    let it = furnished(open_as(Role::Operator)).await;
    let run = it.waiting;
    let revision = it.stage.world.revision(run).await.to_string();
    let id = run.to_string();
    it.stage.get(&format!("/runs/{run}")).await.has("Send the signal");
    let fields = [
        ("deed", "signal"),
        ("revision", revision.as_str()),
        ("kind", "approval"),
        ("key", &id),
        ("json", "{\"by\": \"ann\"}"),
    ];
    let got = it.stage.post(&format!("/runs/{run}/act"), &fields).await;
    assert_eq!(got.status, StatusCode::SEE_OTHER, "{}", got.text);
    finish(&it.stage.world, run).await;
    let page = it.stage.get(&format!("/runs/{run}")).await;
    page.has("Bolts are on their way").has("succeeded");
}

/// The runs that the form for all of them names.
fn listed(page: &str) -> Vec<String> {
    let fields = page.split("name=\"run\" value=\"").skip(1);
    fields.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Covers field fault 110.
#[tokio::test]
async fn failed_runs_are_tried_again_with_a_verdict_each() {
    let world = World::published().await;
    let mut runs = Vec::new();
    for key in 0..60 {
        let run = emit(&world, &key.to_string()).await;
        let mut drive = claim(&world, run).await;
        drive.to_call(&world.store).await.unwrap();
        world.answered(&mut drive, "steps.0", failed(false)).await;
        runs.push(run);
    }
    let stage = Stage::on(world, open_as(Role::Operator));
    let shown = stage.get("/runs?state=failed").await;
    shown.has("Retry 50 runs");
    let shown = listed(&shown.text);
    let retry = async |shown: &[String]| {
        let mut fields: Vec<(&str, &str)> = shown.iter().map(|run| ("run", &**run)).collect();
        fields.push(("reason", "the mail works again"));
        stage.post("/runs/retry", &fields).await
    };
    // What was not shown is not meant, and what a form does not say clearly is not guessed.
    for odd in [vec![], vec!["run_1@x".to_owned()], vec![shown[0].clone(); 51]] {
        let refused = retry(&odd).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        refused.has("does not say which runs");
    }
    retry(&shown).await.has("Retried 50, refused 0");
    retry(&shown).await.has("Retried 0, refused 50");
    let rest = listed(&stage.get("/runs?state=failed").await.text);
    retry(&rest).await.has("Retried 10, refused 0");
    for run in runs {
        assert_eq!(stage.world.row(run).await.state(), RunState::Queued);
    }
}

#[tokio::test]
async fn workflows_are_switched_and_versions_made_live() {
    let it = furnished(open_as(Role::Operator)).await;
    let place = [("app", "shop"), ("scope", SCOPE), ("workflow", "reorder")];
    let with = |more: &[(&'static str, &'static str)]| -> Vec<(&str, &str)> {
        place.iter().chain(more).copied().collect()
    };
    let off = with(&[("activation", "stockLow"), ("enabled", "false"), ("reason", "counting")]);
    let got = it.stage.post("/workflow/switch", &off).await;
    assert!(got.location().ends_with("done=switched"), "{}", got.location());
    let page = it.stage.get(got.location()).await;
    page.has("Enable stockLow");
    let again = it.stage.post("/workflow/switch", &off).await;
    assert!(again.location().ends_with("done=unchanged"));
    let live = with(&[("version", "2"), ("seen", "1"), ("reason", "it is better")]);
    let got = it.stage.post("/workflow/activate", &live).await;
    it.stage.get(got.location()).await.has("version 2 is live");
    let got = it.stage.post("/workflow/activate", &live).await;
    assert_eq!(got.status, StatusCode::CONFLICT, "another one is live than was seen");
    assert_eq!(versions(&it.stage.world).await.len(), 2);
    it.stage.get("/audit").await.has("it is better").has("counting");
    assert_eq!(app().as_str(), "shop");
}

/// What another site has a browser send changes nothing. A page of ours may: also where a browser says no more than the
/// origin, as it does without encryption.
#[tokio::test]
async fn another_site_changes_nothing() {
    let it = furnished(open_as(Role::Operator)).await;
    let run = it.running;
    let revision = it.stage.world.revision(run).await.to_string();
    let body = form(&[("deed", "cancel"), ("revision", &revision), ("reason", "x")]);
    for (site, origin, status) in [
        (Some("cross-site"), "http://evil.example", StatusCode::FORBIDDEN),
        (None, "http://evil.example", StatusCode::FORBIDDEN),
        (None, "null", StatusCode::FORBIDDEN),
        (None, "http://localhost", StatusCode::SEE_OTHER),
    ] {
        let mut request = Request::post(format!("/runs/{run}/act"))
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, origin);
        if let Some(site) = site {
            request = request.header("sec-fetch-site", site);
        }
        let got = it.stage.ask(request.body(Body::from(body.clone())).unwrap()).await;
        assert_eq!(got.status, status, "{site:?} {origin}: {}", got.text);
        let is_canceled = it.stage.world.row(run).await.cancel.is_some();
        assert_eq!(is_canceled, status == StatusCode::SEE_OTHER);
    }
    let page = it.stage.get("/runs").await;
    assert_eq!(page.headers[header::REFERRER_POLICY], "same-origin");
}

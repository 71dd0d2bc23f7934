//! What pages show, and what their addresses keep.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;
use surefoot_console::Role;
use surefoot_kernel_core::{Event, RunId, VersionId};
use surefoot_operator::WhichVersion;

use crate::stage::{
    Furnished, OPERATOR, Stage, VIEWER, claim, console, emit, form, furnished, open_as, start,
    with_tokens,
};
use crate::world::{SCOPE, World, app, failed};

/// Every page with something on it.
pub(crate) async fn pages(it: &Furnished) -> Vec<String> {
    let versions = versions(&it.stage.world).await;
    let (newer, older) = (versions[0], versions[1]);
    vec![
        "/".to_owned(),
        "/?span=24h".to_owned(),
        "/runs".to_owned(),
        "/runs?state=failed&state=waiting&scope=berlin".to_owned(),
        "/runs?state=failed".to_owned(),
        format!("/runs/{}", it.unknown),
        format!("/runs/{}", it.running),
        format!("/runs/{}", it.waiting),
        format!("/runs/{}", it.failed),
        format!("/runs/{}", it.succeeded),
        "/effects".to_owned(),
        format!("/effects?open={}", it.unknown),
        "/events".to_owned(),
        "/events?status=dead_lettered".to_owned(),
        "/signals".to_owned(),
        "/workflows".to_owned(),
        format!("/workflow?app={}&scope={SCOPE}&workflow=reorder", app()),
        format!("/versions/{newer}"),
        format!("/diff?before={older}&after={newer}"),
        "/schedules".to_owned(),
        "/audit".to_owned(),
    ]
}

/// The versions of `reorder`, newest first.
pub(crate) async fn versions(world: &World) -> Vec<VersionId> {
    let listed = world.operator.versions(&app(), &SCOPE.into(), &"reorder".into()).await.unwrap();
    listed.versions.iter().map(|version| version.id).collect()
}

/// Markup that a strict policy and people without a mouse, or without eyes, can use.
#[track_caller]
pub(crate) fn check_markup(path: &str, text: &str) {
    for inline in
        [" style=", "<style", " onclick=", " onload=", "javascript:", "http://", "https://"]
    {
        let found =
            text.find(inline).map(|at| &text[at.saturating_sub(40)..(at + 60).min(text.len())]);
        let is_namespace = found.is_some_and(|it| it.contains("www.w3.org"));
        assert!(found.is_none() || is_namespace, "{path} has `{inline}`: {found:?}");
    }
    let scripts = text.matches("<script").count();
    assert_eq!(scripts, text.matches("<script src=").count(), "{path} has a script of its own");
    for needed in ["<html lang=\"en\">", "<main id=\"main\"", "<h1", "<title>", "name=\"viewport\""]
    {
        assert!(text.contains(needed), "{path} lacks `{needed}`");
    }
    let ids: Vec<&str> =
        text.split(" id=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{path} has `{id}` twice");
    }
    let fields = ["<input ", "<select ", "<textarea "];
    for field in fields.iter().flat_map(|field| text.split(field).skip(1)) {
        let tag = field.split('>').next().unwrap_or_default();
        let is_named = tag.split(" id=\"").nth(1).or(tag.strip_prefix("id=\"")).is_some_and(|id| {
            let id = id.split('"').next().unwrap_or_default();
            text.contains(&format!("<label for=\"{id}\""))
        });
        let is_fine =
            is_named || tag.contains("type=\"hidden\"") || tag.contains("type=\"checkbox\"");
        assert!(is_fine, "{path} has a field without a label: {tag}");
    }
}

#[tokio::test]
async fn every_page_is_there_for_an_operator_and_for_a_viewer() {
    for role in [Role::Operator, Role::Viewer] {
        let it = furnished(open_as(role)).await;
        for path in pages(&it).await {
            let got = it.stage.get(&path).await;
            assert_eq!(got.status, StatusCode::OK, "{path}: {}", got.text);
            check_markup(&path, &got.text);
            let policy = got.headers["content-security-policy"].to_str().unwrap();
            assert!(
                policy.contains("default-src 'none'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert_eq!(got.headers[header::CACHE_CONTROL], "no-store");
            let forms = got.text.matches("method=\"post\"").count();
            assert!(role == Role::Operator || forms == 0, "{path} offers a viewer a form");
        }
    }
}

/// An empty store has pages too, and they say what to do.
#[tokio::test]
async fn an_empty_store_says_what_to_do() {
    let stage = Stage::on(World::new(), open_as(Role::Operator));
    for path in
        ["/", "/runs", "/effects", "/events", "/signals", "/workflows", "/schedules", "/audit"]
    {
        let got = stage.get(path).await;
        assert_eq!(got.status, StatusCode::OK, "{path}");
        check_markup(path, &got.text);
        got.has("class=\"empty\"");
    }
    stage.get("/").await.has("surefoot publish");
}

/// Covers behaviour 183.
#[tokio::test]
async fn what_a_link_says_wrongly_is_left_out_and_the_rest_is_kept() {
    let it = furnished(open_as(Role::Operator)).await;
    for (path, default) in [
        ("/nonsense", "/?unknown=page"),
        ("/runs/no-run", "/runs?unknown=page"),
        ("/runs/%00/act", "/?unknown=page"),
        ("/versions/run_1", "/workflows?unknown=page"),
        ("/workflow?app=shop", "/workflows?unknown=page"),
        ("/diff?before=x&after=y", "/workflows?unknown=page"),
    ] {
        let got = it.stage.get(path).await;
        if got.status == StatusCode::METHOD_NOT_ALLOWED {
            continue;
        }
        assert_eq!((got.status, got.location()), (StatusCode::SEE_OTHER, default), "{path}");
        it.stage.get(default).await.has("That address leads to no page");
    }
    let wrong = "/runs?app=nobody&state=flying&mode=fast&since=yesterday&parent=x&event=y&cursor=z";
    let got = it.stage.get(wrong).await;
    assert_eq!(got.status, StatusCode::OK);
    got.has("was left out").has("state=flying").has("since=yesterday").has("the first one");
    got.has(&it.unknown.to_string());
    let wrong = "/?app=nobody&span=century";
    it.stage.get(wrong).await.has("span=century");
    let wrong = format!("/runs/{}?steps=two&journal=-1", it.unknown);
    it.stage.get(&wrong).await.has("steps=two");

    let link =
        "/runs?scope=berlin&workflow=reorder&mode=execute&since=24h&state=failed&state=running";
    let got = it.stage.get(link).await;
    got.has("name=\"scope\" value=\"berlin\"").has("name=\"workflow\" value=\"reorder\"");
    got.has("value=\"failed\" checked").has("value=\"running\" checked");
    got.has("value=\"execute\" selected").has("value=\"24h\" selected");
    got.has(&it.failed.to_string()).has(&it.running.to_string());
    assert!(!got.text.contains(&it.unknown.to_string()), "it needs a person: it is not asked for");
    assert!(!got.text.contains("was left out"));
}

/// Covers field faults 111, 112.
#[tokio::test]
async fn lists_are_filtered_by_the_store_and_come_in_pages() {
    let stage = Stage::set().await;
    let first = emit(&stage.world, "first").await;
    let mut drive = claim(&stage.world, first).await;
    drive.to_call(&stage.world.store).await.unwrap();
    stage.world.answered(&mut drive, "steps.0", failed(false)).await;
    for key in 0..120 {
        emit(&stage.world, &key.to_string()).await;
    }
    let failed = stage.get("/runs?state=failed").await;
    assert_eq!(failed.text.matches("<a class=\"id\"").count(), 1);
    failed.has(&first.to_string()).has("NO_ADDRESS").has("the supplier has no address");
    let (mut path, mut seen) = ("/runs".to_owned(), 0);
    for _ in 0..3 {
        let got = stage.get(&path).await;
        seen += got.text.matches("<a class=\"id\"").count();
        let next = got.text.split("\" rel=\"next\"").next().filter(|it| it.len() < got.text.len());
        let Some(next) = next.and_then(|it| it.rsplit("href=\"").next()) else { break };
        path = next.replace("&#38;", "&").replace("&amp;", "&");
        assert!(path.contains("cursor="), "{path}");
    }
    assert_eq!(seen, 121);
}

/// Two steps, and two for each amount.
const LONG: &str = r#"
inputs:
  amounts: { type: list, required: true }
steps:
  - mail: {}
  - forEach: "${{ inputs.amounts }}"
    as: amount
    do:
      - setVariable: { name: once, value: "${{ amount }}" }
      - setVariable: { name: twice, value: "${{ once }}" }
"#;

/// A run of 10,000 steps: a page of them, and the place of the rest.
/// Covers field fault 111.
#[tokio::test]
async fn a_run_of_ten_thousand_steps_is_shown_in_pages() {
    let world = World::published().await;
    crate::stage::publish(&world, "supply", LONG, true).await;
    let amounts: Vec<u32> = (0..4_999).collect();
    let run = start(&world, json!({ "amounts": amounts })).await;
    crate::stage::finish(&world, run).await;
    let stage = Stage::on(world, open_as(Role::Operator));
    let got = stage.get(&format!("/runs/{run}")).await;
    assert!(got.text.len() < 400_000, "{} bytes", got.text.len());
    got.has("Steps 1–100 of 10000").has("steps.1.do.0#0").has("more facts of this commit");
    let last = stage.get(&format!("/runs/{run}?steps=100")).await;
    last.has("Steps 9901–10000 of 10000");
    let behind = stage.get(&format!("/runs/{run}?steps=1000000&journal=1000000")).await;
    behind.has("There is no such page of steps");
}

/// The words of a page are the explanation's own.
/// Covers field fault 116.
#[tokio::test]
async fn a_run_is_explained_in_the_words_of_the_core() {
    let it = furnished(open_as(Role::Operator)).await;
    for run in [it.unknown, it.running, it.waiting, it.failed, it.succeeded] {
        let said = it.stage.world.operator.explain(run).await.unwrap();
        let got = it.stage.get(&format!("/runs/{run}")).await;
        let shown = plain(&got.text);
        let says = |text: &str| {
            let text = text.replace('`', "");
            assert!(shown.contains(&text), "no `{text}` in:\n{shown}");
        };
        says(&said.headline);
        said.why_not_moving.iter().for_each(|reason| says(&reason.text));
        for action in &said.legal_actions {
            says(&action.why);
            says(&action.command);
        }
    }
    let got = it.stage.get(&format!("/runs/{}", it.failed)).await;
    got.has("NO_ADDRESS").has("the supplier has no address").has("deed-retry");
}

/// What a person reads: without marks.
fn plain(markup: &str) -> String {
    let mut pieces = markup.split('<');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| text.push_str(piece.split_once('>').map_or("", |(_, rest)| rest)));
    let marks = [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&#38;", "&"),
        ("`", ""),
    ];
    marks.iter().fold(text, |text, (mark, char)| text.replace(mark, char))
}

#[tokio::test]
async fn a_tag_leads_to_the_runs_that_have_it() {
    let world = World::published().await;
    let event = Event::new("inventory.stockLow", json!({ "item": "bolt" })).tag("customer:42");
    let tagged = surefoot_operator::EmitEvent { app: app(), scope: SCOPE.into(), event };
    let tagged = world.operator.emit(&world.ids, tagged).await.unwrap().runs[0];
    let bare = emit(&world, "bare").await;
    let stage = Stage::on(world, open_as(Role::Operator));
    let got = stage.get(&format!("/runs/{tagged}")).await;
    got.has("customer:42").has(&format!("/runs?app={}&#38;tag=customer%3A42", app()));
    let list = stage.get("/runs?tag=customer%3A42").await;
    list.has(&tagged.to_string()).has("value=\"customer:42\"");
    assert!(!list.text.contains(&bare.to_string()));
    stage.get("/runs?tag=nobody").await.has("No run fits");
}

#[tokio::test]
async fn signing_in_takes_a_token_and_leaves_a_cookie_that_no_script_reads() {
    let stage = Stage::on(World::published().await, with_tokens());
    let got = stage.get("/runs?state=failed").await;
    assert_eq!(got.status, StatusCode::SEE_OTHER);
    assert_eq!(got.location(), "/sign-in?next=%2Fruns%3Fstate%3Dfailed");
    let page = stage.get(got.location()).await;
    check_markup("/sign-in", &page.text);
    page.has("value=\"/runs?state=failed\"");
    let wrong = stage.post("/sign-in", &[("token", "guess-0123456789abcdef")]).await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    assert!(!wrong.headers.contains_key(header::SET_COOKIE));
    wrong.has("not known here");
    let fields = [("token", OPERATOR), ("next", "/runs?state=failed")];
    let entered = stage.post("/sign-in", &fields).await;
    assert_eq!((entered.status, entered.location()), (StatusCode::SEE_OTHER, "/runs?state=failed"));
    let cookie = entered.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let kept = cookie.split(';').next().unwrap();
    let request = Request::get("/").header(header::COOKIE, kept).body(Body::empty()).unwrap();
    stage.ask(request).await.has("bob").has("Sign out");
    let left = stage.post("/sign-out", &[]).await;
    assert!(left.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));

    let viewer = format!("surefoot_token={VIEWER}");
    let request = Request::post(format!("/runs/{}/act", RunId::from_bytes([1; 16])))
        .header(header::COOKIE, viewer)
        .body(Body::from(form(&[("deed", "cancel"), ("revision", "1"), ("reason", "x")])));
    assert_eq!(stage.ask(request.unwrap()).await.status, StatusCode::FORBIDDEN);
}

/// Below a path of its own, every address begins with it.
#[tokio::test]
async fn an_application_may_mount_it_below_a_path() {
    let it = furnished(open_as(Role::Operator)).await;
    let inner = console(&it.stage.world, open_as(Role::Operator)).router();
    let router = axum::Router::new().nest("/ops/surefoot", inner);
    let mounted = Stage { world: it.stage.world, router };
    for path in
        ["/ops/surefoot", "/ops/surefoot/runs", &format!("/ops/surefoot/runs/{}", it.unknown)]
    {
        let got = mounted.get(path).await;
        assert_eq!(got.status, StatusCode::OK, "{path}");
        for name in [" href=\"", " src=\"", " action=\"", " data-live=\""] {
            for address in got.text.split(name).skip(1) {
                let is_inside = address.starts_with("/ops/surefoot") || address.starts_with('#');
                assert!(is_inside, "{path}: {name}{}", &address[..40.min(address.len())]);
            }
        }
    }
    let lost = mounted.get("/ops/surefoot/nonsense").await;
    assert_eq!(lost.location(), "/ops/surefoot?unknown=page");
}

/// A link to a version shows that version, and what differs is told by the core's own comparison.
#[tokio::test]
async fn versions_show_source_plan_and_what_differs() {
    let it = furnished(open_as(Role::Operator)).await;
    let listed = versions(&it.stage.world).await;
    let page = it.stage.get(&format!("/versions/{}", listed[0])).await;
    page.has("mail: { twice: true }").has("class=\"graph\"").has("stored");
    let diff = it.stage.get(&format!("/diff?before={}&after={}", listed[1], listed[0])).await;
    diff.has(">added<").has("mail");
    let same = it.stage.get(&format!("/diff?before={0}&after={0}", listed[0])).await;
    same.has("the two do the same");
    let of = WhichVersion::Id(listed[0]);
    assert_eq!(it.stage.world.operator.version(of).await.unwrap().version.revision, 2);
}

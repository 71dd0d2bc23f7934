//! Text that wants to be more than text, and text that wants to be more than a page.

use serde_json::json;
use surefoot_console::Role;
use surefoot_kernel_core::{Answer, Event, Failure, Scope, Signal};
use surefoot_operator::{EmitEvent, SendTo};

use crate::stage::{Stage, claim, emit, open_as};
use crate::world::{SCOPE, World, app, succeeded};

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\u{202e}gnp.exe\0\u{200b}\u{1b}[2J";

/// Nothing of it is markup, and nothing of it is hidden.
#[track_caller]
fn check_harmless(path: &str, text: &str) {
    for bad in ["<script>alert", "<img", "\u{202e}", "\0", "\u{200b}", "\u{1b}"] {
        assert!(!text.contains(bad), "{path} lets {bad:?} through");
    }
}

async fn hostile() -> (Stage, String) {
    let world = World::published().await;
    let source = format!(
        "{}  - mail: {{ text: \"<script>alert(1)</script>\" }}\n    label: \"<script>alert(2)</script>\"\n",
        crate::world::REORDER
    );
    crate::stage::publish(&world, "reorder", &source, true).await;
    let footprint = world.footprint().await;
    world.report(vec![footprint], 0).await;
    let data =
        json!({ "item": HOSTILE.replace('\0', ""), "more": { HOSTILE.replace('\0', ""): 1 } });
    let event = Event::new("inventory.stockLow", data).dedupe_key("<script>alert(3)</script>");
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    let run = world.operator.emit(&world.ids, emit).await.unwrap().runs[0];
    let mut drive = claim(&world, run).await;
    drive.to_call(&world.store).await.unwrap();
    let failure = Failure::new("NO_ADDRESS", HOSTILE);
    let answer = Answer::Failed { failure, retryable: false, retry_after: None };
    world.answered(&mut drive, "steps.0", answer).await;
    let event = Event::new("<script>alert(4)</script>", json!({}));
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    world.operator.emit(&world.ids, emit).await.unwrap();
    let signal =
        Signal::new("<script>alert(5)</script>", "k").data(json!(HOSTILE.replace('\0', "")));
    world.operator.signal(app(), SendTo::App, signal).await.unwrap();
    let seen = world.revision(run).await;
    let why = HOSTILE.replace('\0', "");
    let retry = surefoot_operator::Retry { run, seen, why };
    world.operator.retry(retry).await.unwrap();
    let stage = Stage::on(world, open_as(Role::Operator));
    (stage, run.to_string())
}

#[tokio::test]
async fn markup_scripts_and_hidden_characters_are_shown_and_nothing_else() {
    let (stage, run) = hostile().await;
    let version = crate::looks::versions(&stage.world).await[0];
    let of_run = format!("/runs/{run}");
    let of_version = format!("/versions/{version}");
    let paths = [
        "/",
        "/runs",
        "/effects",
        "/events",
        "/signals",
        "/workflows",
        "/audit",
        &of_run,
        &of_version,
        &format!("{of_run}/raw/event"),
        &format!("{of_run}/raw/inputs"),
        "/runs?scope=%3Cscript%3Ealert(1)%3C/script%3E&workflow=%E2%80%AEx%00",
        "/runs?app=%3Cscript%3Ealert%3C/script%3E&state=%3Cimg%20src=x%3E&cursor=%3Cscript%3E",
        "/events?type=%3Cscript%3Ealert(1)%3C/script%3E",
    ];
    for path in paths {
        let got = stage.get(path).await;
        if path.contains("/raw/") {
            assert!(got.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
            assert_eq!(got.headers["x-content-type-options"], "nosniff");
            continue;
        }
        check_harmless(path, &got.text);
        crate::looks::check_markup(path, &got.text.replace("src=x", ""));
    }
    stage.get("/audit").await.has("&#60;script&#62;alert(1)").has("\\u{202e}gnp.exe");
    stage.get("/events").await.has("&#60;script&#62;alert(4)");
    stage.get(&of_version).await.has("&#60;script&#62;alert(2)");
}

/// Covers field faults 94, 99.
#[tokio::test]
async fn what_is_huge_is_cut_and_can_be_had_as_a_whole_with_every_digit() {
    let world = World::published().await;
    crate::stage::publish(&world, "big", "steps:\n  - mail: {}\n", true).await;
    let event = Event::start("big", json!({}));
    let start = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    let run = world.operator.emit(&world.ids, start).await.unwrap().runs[0];
    let mut drive = claim(&world, run).await;
    drive.to_call(&world.store).await.unwrap();
    let text = "0123456789abcdef".repeat(1_000_000);
    let number = 3_544_790_567_247_868_102_u64;
    let output = json!({ "a": number, "b": -0.0, "c": 0.1 + 0.2, "d": 1.0, "z": text });
    world.answered(&mut drive, "steps.0", succeeded(output)).await;
    drive.to_end(&world.store, |_| unreachable!("it has one step")).await.unwrap();
    let stage = Stage::on(world, open_as(Role::Operator));
    let got = stage.get(&format!("/runs/{run}")).await;
    assert!(got.text.len() < 200_000, "{} bytes", got.text.len());
    got.has("3544790567247868102").has("See all of it").has("15.2 MiB");
    let all = stage.get(&format!("/runs/{run}/raw/result")).await;
    assert!(all.text.contains(&"0123456789abcdef".repeat(1_000_000)));
    for digits in ["3544790567247868102", "-0.0", "0.30000000000000004", "\"d\": 1.0"] {
        all.has(digits);
    }
    let missing = stage.get(&format!("/runs/{run}/raw/nothing")).await;
    assert_eq!(missing.status.as_u16(), 404);
}

/// A message of ten megabytes, in a list and on its page.
#[tokio::test]
async fn a_long_message_is_cut_in_lists() {
    let world = World::published().await;
    let run = emit(&world, "long").await;
    let mut drive = claim(&world, run).await;
    drive.to_call(&world.store).await.unwrap();
    let failure = Failure::new("NO_ADDRESS", "x\0y<".repeat(2_500_000));
    let answer = Answer::Failed { failure, retryable: false, retry_after: None };
    world.answered(&mut drive, "steps.0", answer).await;
    let stage = Stage::on(world, open_as(Role::Operator));
    for path in ["/runs", &format!("/runs/{run}")] {
        let got = stage.get(path).await;
        assert!(got.text.len() < 200_000, "{path}: {} bytes", got.text.len());
        check_harmless(path, &got.text);
    }
}

//! Pictures of every page, for people to look at: `target/screenshots`.

use std::path::PathBuf;

use surefoot_console::Role;

use crate::chrome::{Chrome, DARK, NARROW, WIDE};
use crate::stage::{Stage, furnished, open_as, with_tokens};
use crate::world::World;

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn shoot(chrome: &Chrome, name: &str) {
    let picture = chrome.picture().await;
    assert!(picture.starts_with(b"\x89PNG"), "{name} is no picture");
    std::fs::write(folder().join(format!("{name}.png")), picture).unwrap();
}

/// Nothing is wider than the window.
async fn check_width(chrome: &Chrome, name: &str) {
    let wide = chrome.eval("document.documentElement.scrollWidth - innerWidth").await;
    assert!(wide.as_i64().unwrap() <= 0, "{name} is {wide} pixels wider than the window");
}

#[tokio::test]
async fn every_page_fits_light_dark_and_narrow() {
    let it = furnished(open_as(Role::Operator)).await;
    let base = it.stage.served(open_as(Role::Operator)).await;
    let chrome = Chrome::start(&base).await;
    let versions = crate::looks::versions(&it.stage.world).await;
    let pages = [
        ("overview", "/?span=1h".to_owned()),
        ("runs", "/runs".to_owned()),
        ("runs-failed", "/runs?state=failed".to_owned()),
        ("run-attention", format!("/runs/{}", it.unknown)),
        ("run-waiting", format!("/runs/{}", it.waiting)),
        ("run-running", format!("/runs/{}", it.running)),
        ("run-failed", format!("/runs/{}", it.failed)),
        ("run-succeeded", format!("/runs/{}", it.succeeded)),
        ("effects", "/effects".to_owned()),
        ("effects-open", format!("/effects?open={}", it.unknown)),
        ("events", "/events".to_owned()),
        ("signals", "/signals".to_owned()),
        ("workflows", "/workflows".to_owned()),
        ("workflow", "/workflow?app=shop&scope=berlin&workflow=reorder".to_owned()),
        ("version", format!("/versions/{}", versions[0])),
        ("diff", format!("/diff?before={}&after={}", versions[1], versions[0])),
        ("schedules", "/schedules".to_owned()),
        ("audit", "/audit".to_owned()),
    ];
    for (name, path) in &pages {
        for (kind, view) in [("light", WIDE), ("dark", DARK), ("narrow", NARROW)] {
            chrome.view(view).await;
            chrome.open(path).await;
            check_width(&chrome, &format!("{name} {kind}")).await;
            shoot(&chrome, &format!("{name}-{kind}")).await;
        }
    }
    // What is asked for, in a form that is open.
    for (kind, view) in [("light", WIDE), ("dark", DARK), ("narrow", NARROW)] {
        chrome.view(view).await;
        chrome.open(&format!("/effects?open={}", it.unknown)).await;
        chrome.click("#deed-succeeded summary").await;
        chrome.until("document.querySelector('#deed-succeeded').open").await;
        check_width(&chrome, &format!("form {kind}")).await;
        shoot(&chrome, &format!("effects-form-{kind}")).await;
    }
    chrome.close().await;
}

#[tokio::test]
async fn an_empty_store_and_the_door_are_looked_at_too() {
    let stage = Stage::on(World::new(), with_tokens());
    let base = stage.served(with_tokens()).await;
    let chrome = Chrome::start(&base).await;
    chrome.open("/").await;
    check_width(&chrome, "sign-in").await;
    shoot(&chrome, "sign-in-light").await;
    chrome.close().await;
    let base = stage.served(open_as(Role::Viewer)).await;
    let chrome = Chrome::start(&base).await;
    for (name, path) in
        [("empty-overview", "/"), ("empty-runs", "/runs"), ("empty-effects", "/effects")]
    {
        chrome.open(path).await;
        shoot(&chrome, name).await;
    }
    chrome.close().await;
}

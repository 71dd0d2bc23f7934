//! Metrics tell what is there, in a form that a scraper can read.

use std::collections::BTreeSet;

use surefoot_testkit::Exposition;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Served, VIEWER, console, with_tokens};
use crate::world::World;

async fn scraped(served: &Served, token: &str) -> (String, String) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_counted_scenario_is_told_as_it_was() {
    let world = World::published().await;
    world.unknown().await;
    world.emit("nobody.listens").await;
    let served = Served::of(&world).await;
    let (head, text) = scraped(&served, VIEWER).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let values = Exposition::parse(&text).unwrap();
    for (series, value) in [
        ("surefoot_healthy{app=\"shop\"}", 0.0),
        ("surefoot_runs{app=\"shop\",state=\"needs_attention\"}", 1.0),
        ("surefoot_unsettled_effects{app=\"shop\"}", 1.0),
        ("surefoot_oldest_unsettled_effect_seconds{app=\"shop\"}", 2.0),
        ("surefoot_events{app=\"shop\",status=\"unmatched\"}", 1.0),
        ("surefoot_events{app=\"shop\",status=\"pending\"}", 0.0),
        ("surefoot_workers{app=\"shop\"}", 1.0),
        ("surefoot_worker_slots{app=\"shop\"}", 4.0),
        ("surefoot_worker_slots_busy{app=\"shop\"}", 1.0),
        ("surefoot_clock_skew_seconds{app=\"shop\"}", 0.0),
    ] {
        assert_eq!(values.value(series), Some(value), "{series}: {text}");
    }
    let (head, _) = scraped(&served, "nobody-0123456789abcdef").await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
}

#[tokio::test]
async fn what_the_application_counts_stands_beside_it() {
    let world = World::published().await;
    let more =
        || "# HELP orders_total Orders.\n# TYPE orders_total counter\norders_total 3\n".to_owned();
    let console = console(&world, with_tokens()).metrics(more);
    let served = Served::on(console, Default::default()).await;
    let (_, text) = scraped(&served, VIEWER).await;
    let page = Exposition::parse(&text).unwrap();
    assert_eq!(page.value("orders_total"), Some(3.0));
    assert_eq!(page.value("surefoot_healthy{app=\"shop\"}"), Some(1.0));
}

/// The words in a text that are names of metrics.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    words.filter(|word| word.starts_with("surefoot_")).collect()
}

#[tokio::test]
async fn every_metric_of_the_dashboard_and_of_the_docs_exists_and_all_are_documented() {
    let world = World::published().await;
    let metrics = surefoot_worker::Metrics::new("shop");
    let console = console(&world, with_tokens()).metrics(move || metrics.text());
    let served = Served::on(console, Default::default()).await;
    let (_, text) = scraped(&served, VIEWER).await;
    let page = Exposition::parse(&text).unwrap();
    let there = page.names();
    let dashboard = include_str!("../../../../docs/grafana.json");
    let json: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = json["panels"].as_array().unwrap();
    let shown: BTreeSet<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .flat_map(|target| named(target["expr"].as_str().unwrap()))
        .collect();
    assert!(panels.len() > 8 && shown.len() > 15, "{shown:?}");
    let strange: Vec<_> = shown.difference(&there).collect();
    assert!(strange.is_empty(), "no such metrics: {strange:?}");
    let docs = include_str!("../../../../docs/http-api.md");
    let docs = named(docs);
    for name in &there {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(docs.contains(family.unwrap_or(name)), "{name} is not in docs/http-api.md");
    }
}

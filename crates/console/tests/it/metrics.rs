//! Metrics tell what is there, in a form that a scraper can read.

use std::collections::{BTreeMap, BTreeSet};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Served, VIEWER};
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

/// The values by series. Every line has the form that the format asks for.
fn values(text: &str) -> BTreeMap<String, f64> {
    let (mut values, mut announced) = (BTreeMap::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert_eq!(kind, "gauge");
            assert!(announced.insert(name.to_owned()), "{name} twice");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert!(announced.contains(name), "{line}");
            assert!(name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{line}");
            let before = values.insert(series.to_owned(), value.parse().unwrap());
            assert_eq!(before, None, "{series} twice");
        }
    }
    assert!(text.ends_with('\n'));
    values
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
    let values = values(&text);
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
        assert_eq!(values.get(series), Some(&value), "{series}: {text}");
    }
    let (head, _) = scraped(&served, "nobody-0123456789abcdef").await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
}

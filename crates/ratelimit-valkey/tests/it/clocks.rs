//! The clock of a client does not matter: none of it goes to the server, and what it shows changes no answer.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use surefoot_sync_core::RateLimit as _;
use surefoot_testkit::servers::{VALKEY_URL, given};

use crate::{hourly, key, limit};

/// Passes everything on, each client's words after a while only, and keeps what clients said.
pub(crate) fn proxy(to: String, after: Duration) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/0", listener.local_addr().unwrap());
    let said = Arc::new(Mutex::new(Vec::new()));
    let kept = said.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&to).unwrap();
            let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            pass(client, server, kept.clone(), after);
            pass(back_from, back_to, Arc::default(), Duration::ZERO);
        }
    });
    (url, said)
}

/// Until one of them is closed.
fn pass(mut from: TcpStream, mut to: TcpStream, kept: Arc<Mutex<Vec<u8>>>, after: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
    });
}

/// The address of a URL such as `redis://127.0.0.1:6379/0`.
pub(crate) fn address(url: &str) -> String {
    let rest = url.strip_prefix("redis://").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn nothing_that_a_client_says_depends_on_its_clock() {
    let (url, said) = proxy(address(&given(VALKEY_URL).unwrap()), Duration::ZERO);
    let id = format!("said-{}", std::process::id());
    let limit = limit(&url, &id, hourly(1_000)).time_limit(Duration::from_secs(30)).unwrap();
    // The first connects and brings the script.
    limit.check(&key("ada")).await.unwrap();
    said.lock().unwrap().clear();
    let mut each = Vec::new();
    for _ in 0..3 {
        limit.check(&key("ada")).await.unwrap();
        each.push(std::mem::take(&mut *said.lock().unwrap()));
        // Whatever clock there is, it shows another time by then.
        let before = std::time::Instant::now();
        while before.elapsed() < Duration::from_millis(2) {
            tokio::task::yield_now().await;
        }
    }
    let text = String::from_utf8_lossy(&each[0]);
    assert!(text.contains("EVALSHA") && text.contains("3600000000"), "{text}");
    assert!(each.iter().all(|one| *one == each[0]), "the same bytes, whenever they are sent");
}

/// Of two clients the clock of one is set forward, so that of the other is behind it: both are told the same.
#[tokio::test]
async fn a_client_whose_clock_jumps_is_limited_like_any_other() {
    let id = format!("jumps-{}", std::process::id());
    let url = given(VALKEY_URL).unwrap();
    let patient = Duration::from_secs(60 * 86_400);
    let limit = || limit(&url, &id, hourly(2)).time_limit(patient).unwrap();
    let (jumping, steady) = (limit(), limit());
    assert!(!jumping.check(&key("ada")).await.unwrap().limited);
    for days in [1, 30] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(days * 86_400)).await;
        tokio::time::resume();
        let used = jumping.check(&key("ada")).await.unwrap();
        assert_eq!((used.limited, used.remaining), (days == 30, 0), "after {days} days");
    }
    let other = steady.check(&key("ada")).await.unwrap();
    assert!(other.limited && other.retry_in <= Duration::from_secs(3_600), "{other:?}");
}

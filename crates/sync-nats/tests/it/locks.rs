//! Fences over what may happen to a server.

use std::sync::Arc;
use std::time::Duration;

use surefoot_sync_core::{Coordinator as _, Key, Mutex, MutexSettings, ResourceId};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::Nats as Server;

use crate::{connect, namespace};

async fn door(nats: &Nats, ttl_s: u64) -> (Arc<dyn Mutex>, Key) {
    let settings = MutexSettings::new(ResourceId::new("doors").unwrap());
    let settings = settings.ttl(Duration::from_secs(ttl_s)).unwrap();
    (nats.mutex(settings).await.unwrap(), Key::new("front").unwrap())
}

/// Covers field fault 159.
#[tokio::test]
async fn a_stream_that_is_made_anew_gives_no_smaller_fence() {
    let namespace = namespace();
    let nats = connect(&namespace).await;
    let (mutex, key) = door(&nats, 60).await;
    let before = mutex.try_acquire(&key).await.unwrap().unwrap();
    let url = surefoot_testkit::servers::given(surefoot_testkit::servers::NATS_URL).unwrap();
    let client = async_nats::connect(url).await.unwrap();
    let subject = format!("$JS.API.STREAM.DELETE.{namespace}_MUTEX_doors");
    let answer = client.request(subject, "".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&answer.payload).contains("\"success\":true"));
    let (mutex, key) = door(&connect(&namespace).await, 60).await;
    let after = mutex.try_acquire(&key).await.unwrap().unwrap();
    assert!(after.fence > before.fence, "{} then {}", before.fence, after.fence);
    assert!(after.fence < 1 << 53, "it can be a number in JSON");
}

#[tokio::test]
async fn a_lock_outlives_the_death_of_the_server() {
    let mut server = Server::given().unwrap().start().unwrap();
    let nats = Nats::connect(server.url(), namespace()).await.unwrap();
    let (mutex, key) = door(&nats, 600).await;
    let held = mutex.try_acquire(&key).await.unwrap().unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    let other = eventually("an answer", async || mutex.try_acquire(&key).await.ok()).await;
    assert_eq!(other, None);
    let extended = mutex.extend(&held).await.unwrap().unwrap();
    assert_eq!(extended.fence, held.fence);
    assert!(mutex.release(&extended).await.unwrap());
    assert!(mutex.try_acquire(&key).await.unwrap().unwrap().fence > held.fence);
}

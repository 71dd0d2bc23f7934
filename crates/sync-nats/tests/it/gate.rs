//! What a server must be.

use std::time::Duration;

use surefoot_sync_core::{
    Coordinator as _, Job, Key, MutexSettings, ResourceId, SyncError, WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::Nats as Server;

use crate::fake::Fake;
use crate::{connect, namespace};

#[tokio::test]
async fn an_older_server_is_refused_before_anything_is_created() {
    for version in ["2.9.10", "2.12.8", "2.14.2", "unknown"] {
        let fake = Fake::of_version(version).await;
        let error = Nats::connect(&fake.url, namespace()).await.unwrap_err();
        assert!(matches!(error, SyncError::UnsupportedServer { .. }), "{version}: {error}");
        let text = error.to_string();
        assert!(text.contains(version) && text.contains("2.14.3 or newer"), "{text}");
        assert_eq!(*fake.asked.lock().unwrap(), Vec::<String>::new(), "{version}");
    }
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused_before_anything_is_created() {
    let fake = Fake::of_version("2.15.1").await;
    let error = Nats::connect(&fake.url, namespace()).await.unwrap_err();
    assert!(matches!(error, SyncError::UnsupportedServer { .. }), "{error}");
    assert!(error.to_string().contains("JetStream"), "{error}");
    assert_eq!(*fake.asked.lock().unwrap(), ["$JS.API.INFO"]);
}

/// Covers behaviours 210, 211.
#[tokio::test]
async fn a_declaration_that_got_no_answer_is_made_again() {
    let mut server = Server::given().unwrap().start().unwrap();
    let nats = Nats::connect(server.url(), namespace()).await.unwrap();
    let settings = WorkSettings::new(ResourceId::new("mail").unwrap());
    let job = || Job::new(Key::new("a").unwrap(), &1).unwrap().coalesced();
    let jobs = nats.jobs(settings.clone()).await.unwrap();
    jobs.submit(job()).await.unwrap();
    server.kill().unwrap();
    let error = nats.jobs(settings.clone()).await.err().unwrap();
    assert!(matches!(error, SyncError::Unavailable { .. }), "{error}");
    let new = MutexSettings::new(ResourceId::new("door").unwrap());
    let error = nats.mutex(new.clone()).await.err().unwrap();
    assert!(matches!(error, SyncError::Unavailable { .. }), "{error}");
    server.restart().unwrap();
    let jobs = eventually("the jobs", async || nats.jobs(settings.clone()).await.ok()).await;
    assert_eq!(jobs.depth().await.unwrap().waiting, 1, "nothing was made anew");
    nats.mutex(new).await.unwrap();
}

#[tokio::test]
async fn replicas_that_one_server_cannot_give_are_an_error() {
    let nats = connect(&namespace()).await;
    assert!(matches!(nats.clone().replicas(2), Err(SyncError::InvalidOption { .. })));
    let three = nats.replicas(3).unwrap();
    let settings = MutexSettings::new(ResourceId::new("door").unwrap());
    let declared = tokio::time::timeout(Duration::from_secs(60), three.mutex(settings)).await;
    let error = declared.unwrap().err().unwrap();
    assert!(matches!(error, SyncError::Refused { .. }), "{error}");
}

//! Topics of a real server, each of one test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use surefoot_sync_core::{
    Coordinator as _, Namespace, ReadTopic, ResourceId, Topic, TopicSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::servers::{NATS_URL, given};

/// In a namespace that nobody else uses.
pub(crate) async fn topic(window: Duration) -> Arc<dyn Topic> {
    static NTH: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let (process, nth) = (std::process::id(), NTH.fetch_add(1, Ordering::SeqCst));
    let namespace = Namespace::new(format!("{:x}-{process}-{nth}", now.as_nanos())).unwrap();
    let nats = Nats::connect(&given(NATS_URL).unwrap(), namespace).await.unwrap();
    let id = ResourceId::new("orders").unwrap();
    let settings = TopicSettings { dedupe_window: window, ..TopicSettings::new(id) };
    nats.topic(settings).await.unwrap()
}

/// How many there are.
pub(crate) async fn messages(topic: &dyn Topic) -> usize {
    let (mut begin, mut all) = (topic.tail().await.unwrap(), 0);
    loop {
        let some = ReadTopic { max: 100, wait: Duration::ZERO };
        let read = topic.read(&begin, some).await.unwrap();
        let Some(last) = read.last() else { return all };
        all += read.len();
        begin = last.cursor.clone();
    }
}

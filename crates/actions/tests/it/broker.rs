//! Topics of a real server, each of one test.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::Ids as _;
use surefoot_sync_core::{
    Coordinator as _, Namespace, ReadTopic, ResourceId, Topic, TopicSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::servers::{NATS_URL, given};
use surefoot_worker::SystemIds;

/// In a namespace that nobody else uses.
pub(crate) async fn topic(window: Duration) -> Arc<dyn Topic> {
    let random = SystemIds.session().to_string();
    let name = random.get(random.len() - 24..).unwrap();
    let namespace = Namespace::new(name.to_owned()).unwrap();
    let nats = Nats::connect(&given(NATS_URL).unwrap(), namespace).await.unwrap();
    let id = ResourceId::new("orders").unwrap();
    let settings = TopicSettings {
        dedupe_window: window,
        // The server sets aside what is allowed, for each topic of each test.
        stored_max_bytes: 1 << 20,
        ..TopicSettings::new(id)
    };
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

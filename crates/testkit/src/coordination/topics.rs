//! Topics: kept for a while, read by many, each at its own place.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use surefoot_sync_core::{
    Coordinator as _, Cursor, ReadTopic, SyncError, Topic, TopicEvent, TopicSettings,
};
use surefoot_worker::coordinate::{Follow, Hub};

use super::{CoordinationFactory, eventually, id, key, large};

fn small(name: &str) -> TopicSettings {
    TopicSettings { stored_max_bytes: 1 << 24, ..TopicSettings::new(id(name)) }
}

async fn topic<F: CoordinationFactory>(place: &F) -> Arc<dyn Topic> {
    place.handle().await.topic(small("news")).await.unwrap()
}

async fn publish(topic: &Arc<dyn Topic>, tenant: &str, number: usize) -> Cursor {
    let event = TopicEvent::new(key(tenant), &number).unwrap();
    topic.publish(event).await.unwrap().cursor
}

async fn numbers(topic: &Arc<dyn Topic>, after: &Cursor, max: usize) -> Vec<usize> {
    let read = topic.read(after, ReadTopic { max, wait: Duration::ZERO }).await.unwrap();
    read.iter().map(|message| message.data().unwrap()).collect()
}

/// By each at its own pace, and nothing is used up.
pub async fn what_is_published_is_read_in_order_from_any_place<F: CoordinationFactory>(place: &F) {
    let (writer, reader) = (topic(place).await, topic(place).await);
    let begin = reader.head().await.unwrap();
    assert_eq!(begin, reader.tail().await.unwrap(), "it is empty");
    assert!(numbers(&reader, &begin, 10).await.is_empty());
    let mut cursors = Vec::new();
    for number in 0..70 {
        cursors.push(publish(&writer, "ann", number).await);
    }
    assert_eq!(numbers(&reader, &begin, 1_000).await, (0..70).collect::<Vec<_>>());
    assert_eq!(numbers(&reader, &begin, 3).await, [0, 1, 2]);
    assert_eq!(numbers(&reader, &cursors[66], 10).await, [67, 68, 69]);
    assert!(numbers(&reader, &cursors[69], 10).await.is_empty());
    assert_eq!(reader.head().await.unwrap(), cursors[69]);
    assert_eq!(numbers(&reader, &reader.tail().await.unwrap(), 1).await, [0]);
    let first = reader.read(&begin, ReadTopic { max: 1, wait: Duration::ZERO }).await.unwrap();
    let copied: Cursor = first[0].cursor.to_string().parse().unwrap();
    assert_eq!((&first[0].tenant, &copied), (&key("ann"), &cursors[0]));
}

/// Covers field fault 150.
pub async fn an_idempotency_key_publishes_once<F: CoordinationFactory>(place: &F) {
    let topic = topic(place).await;
    let begin = topic.head().await.unwrap();
    let event = || TopicEvent::new(key("ann"), &1).unwrap().idempotency_key(key("e1"));
    let first = topic.publish(event()).await.unwrap();
    let again = topic.publish(event()).await.unwrap();
    assert_eq!((first.duplicate, again.duplicate), (false, true));
    assert_eq!(first.cursor, again.cursor);
    publish(&topic, "ann", 2).await;
    assert_eq!(numbers(&topic, &begin, 10).await, [1, 2]);
}

/// Once each, and nothing of before.
pub async fn whoever_listens_hears_what_is_stored<F: CoordinationFactory>(place: &F) {
    let (writer, listener) = (topic(place).await, topic(place).await);
    publish(&writer, "ann", 0).await;
    let (mut one, mut two) = (listener.live().await.unwrap(), listener.live().await.unwrap());
    let event = || TopicEvent::new(key("a.b *>"), &1).unwrap().idempotency_key(key("e1"));
    writer.publish(event()).await.unwrap();
    writer.publish(event()).await.unwrap();
    let last = publish(&writer, "ann", 2).await;
    for live in [&mut one, &mut two] {
        let heard = [live.next().await.unwrap(), live.next().await.unwrap()];
        assert_eq!((&heard[0].tenant, &heard[0].data), (&key("a.b *>"), &json!(1)));
        assert_eq!((&heard[1].tenant, &heard[1].data), (&key("ann"), &json!(2)));
        assert_eq!(heard[1].cursor, last);
    }
}

/// Covers behaviour 203.
pub async fn a_cursor_of_another_topic_is_refused<F: CoordinationFactory>(place: &F) {
    let coordinator = place.handle().await;
    let (one, two) = (topic(place).await, coordinator.topic(small("weather")).await.unwrap());
    let cursor = publish(&one, "ann", 1).await;
    publish(&two, "ann", 1).await;
    let now = ReadTopic { max: 1, wait: Duration::ZERO };
    for wrong in [cursor.clone(), Cursor::new(1, 0)] {
        let error = two.read(&wrong, now).await.unwrap_err();
        assert!(matches!(error, SyncError::CursorMismatch), "{error}");
    }
    assert_eq!(one.read(&cursor, now).await.unwrap(), []);
}

/// And does not jump over it in silence.
pub async fn a_reader_that_is_too_slow_is_told_of_the_gap<F: CoordinationFactory>(place: &F) {
    let settings = TopicSettings { stored_max_bytes: 1 << 14, ..TopicSettings::new(id("small")) };
    let topic = place.handle().await.topic(settings).await.unwrap();
    let begin = topic.head().await.unwrap();
    for _ in 0..40 {
        let event = TopicEvent::new(key("ann"), &"x".repeat(1_000)).unwrap();
        topic.publish(event).await.unwrap();
    }
    let now = ReadTopic { max: 10, wait: Duration::ZERO };
    let error = topic.read(&begin, now).await.unwrap_err();
    let SyncError::RetentionGap { requested, first_available } = error else { unreachable!() };
    assert!(requested == 1 && first_available > 1 && first_available <= 40);
    let kept = topic.tail().await.unwrap();
    assert_eq!(kept.seq() + 1, first_available);
    assert_eq!(topic.read(&kept, now).await.unwrap()[0].cursor.seq(), first_available);
}

/// Nothing is stored of it.
pub async fn an_event_that_is_too_large_is_refused<F: CoordinationFactory>(place: &F) {
    let topic = topic(place).await;
    let begin = topic.head().await.unwrap();
    let error = topic.publish(TopicEvent::new(key("ann"), &large()).unwrap()).await.unwrap_err();
    assert!(matches!(error, SyncError::PayloadTooLarge { .. }), "{error}");
    assert_eq!(topic.head().await.unwrap(), begin);
}

/// Covers behaviour 204.
pub async fn a_follower_waits_for_what_comes_and_can_be_dropped<F: CoordinationFactory>(place: &F) {
    let (writer, reader) = (topic(place).await, topic(place).await);
    let begin = reader.head().await.unwrap();
    let mut follow = Follow::new(reader.clone(), begin.clone());
    // Dropped while it waits, again and again.
    for _ in 0..3 {
        let waited = tokio::time::timeout(Duration::from_millis(50), follow.next()).await;
        assert!(waited.is_err());
    }
    let following = tokio::spawn(async move {
        let mut seen = Vec::new();
        for _ in 0..5 {
            let message = follow.next().await.unwrap();
            seen.push((message.tenant.clone(), message.data.clone()));
        }
        (seen, follow.cursor().clone())
    });
    let mut last = begin.clone();
    for number in 0..5 {
        last = publish(&writer, if number % 2 == 0 { "ann" } else { "a.b *>" }, number).await;
        tokio::task::yield_now().await;
    }
    let (seen, cursor) = following.await.unwrap();
    let tenants = ["ann", "a.b *>", "ann", "a.b *>", "ann"];
    let expected = tenants.iter().enumerate();
    let expected: Vec<_> = expected.map(|(at, name)| (key(name), json!(at))).collect();
    assert_eq!((seen, &cursor), (expected, &last));
    let mut replay = Follow::new(reader, begin);
    let mut count = 0;
    while replay.next_until(&last).await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 5);
    let nothing = async || replay.next_until(&last).await.unwrap().is_none().then_some(());
    eventually("the end", nothing).await;
}

/// And is told what it missed.
pub async fn many_listen_by_one_reader_and_a_slow_one_is_told<F: CoordinationFactory>(place: &F) {
    const MANY: usize = 1_500;
    let topic = topic(place).await;
    let hub = Hub::new(topic.clone());
    publish(&topic, "ann", 7).await;
    let (mut one, mut two) = (hub.listen().await.unwrap(), hub.listen().await.unwrap());
    let mut slow = hub.listen().await.unwrap();
    for number in 0..3 {
        publish(&topic, "ann", number).await;
    }
    for listener in [&mut one, &mut two] {
        for number in 0..3 {
            assert_eq!(listener.next().await.unwrap().data::<usize>().unwrap(), number);
        }
    }
    let mut late = hub.clone().listen().await.unwrap();
    drop(two);
    for number in 3..MANY {
        publish(&topic, "ann", number).await;
        assert_eq!(one.next().await.unwrap().data::<usize>().unwrap(), number);
    }
    assert!(late.next().await.is_err(), "it did not listen meanwhile");
    let error = slow.next().await.unwrap_err();
    let SyncError::RetentionGap { requested, first_available } = error else { unreachable!() };
    assert_eq!(requested, slow.cursor().seq() + 1);
    assert!(first_available > requested);
    // What it missed is still in the topic.
    let mut follow = Follow::new(topic.clone(), slow.cursor().clone());
    assert_eq!(follow.next().await.unwrap().data::<usize>().unwrap(), 0);
    // With the last listener the reader ends; the next one begins anew.
    drop((one, slow, late));
    publish(&topic, "ann", 8).await;
    let mut new = hub.listen().await.unwrap();
    publish(&topic, "ann", 9).await;
    assert_eq!(new.next().await.unwrap().data::<usize>().unwrap(), 9);
}

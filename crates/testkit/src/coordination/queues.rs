//! Queues: settled by the application, in order by key.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use surefoot_sync_core::{
    Coordinator as _, DeadPage, Message, Partitions, Queue, QueueSettings, Settled, SyncError,
    Verdict,
};

use super::{CoordinationFactory, fleeting, key, large, one, quick, rest};

async fn queue<F: CoordinationFactory>(place: &F) -> Arc<dyn Queue> {
    place.handle().await.queue(QueueSettings::new(quick("letters"))).await.unwrap()
}

async fn ordered<F: CoordinationFactory>(place: &F) -> Arc<dyn Queue> {
    let settings = QueueSettings::ordered(quick("letters"), Partitions::new(2).unwrap());
    place.handle().await.queue(settings).await.unwrap()
}

fn message(data: i64) -> Message {
    Message::new(&data).unwrap()
}

fn for_ada(data: i64) -> Message {
    message(data).ordering_key(key("ada"))
}

/// Each is settled for itself.
pub async fn a_message_is_delivered_until_it_is_acknowledged<F: CoordinationFactory>(place: &F) {
    let settings = || QueueSettings::new(fleeting("letters"));
    let sender = place.handle().await.queue(settings()).await.unwrap();
    let reader = place.handle().await.queue(settings()).await.unwrap();
    for number in 1..=3 {
        assert!(!sender.send(message(number)).await.unwrap().duplicate);
    }
    let first = one(&*reader).await;
    assert_eq!((&first.data, first.attempt), (&json!(1), 1));
    let mut settled = Vec::new();
    while settled.len() < 3 {
        let delivery = one(&*reader).await;
        assert_eq!(reader.settle(&delivery, Verdict::Done).await.unwrap(), Settled::Done);
        settled.push((delivery.data.clone(), delivery.attempt));
    }
    settled.sort_by_key(|(data, _)| data.to_string());
    // Nobody acknowledged the first.
    assert_eq!(settled, [(json!(1), 2), (json!(2), 1), (json!(3), 1)]);
    assert!(rest(&*reader, 10).await.is_empty());
}

/// Covers field fault 150.
pub async fn an_idempotency_key_stores_one_message<F: CoordinationFactory>(place: &F) {
    let queue = queue(place).await;
    let first = queue.send(message(1).idempotency_key(key("m1"))).await.unwrap();
    let again = queue.send(message(1).idempotency_key(key("m1"))).await.unwrap();
    assert!(!first.duplicate && again.duplicate);
    assert_eq!(again.id, first.id);
    let sent =
        queue.send_all(vec![message(1).idempotency_key(key("m1")), message(2)]).await.unwrap();
    assert_eq!(sent.iter().map(|one| one.duplicate).collect::<Vec<_>>(), [true, false]);
    assert_eq!(queue.depth().await.unwrap().waiting, 2);
}

/// Covers behaviour 197.
pub async fn messages_of_one_key_stay_in_order_over_a_retry<F: CoordinationFactory>(place: &F) {
    let queue = ordered(place).await;
    queue.send_all((1..=3).map(for_ada).collect()).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let delivery = one(&*queue).await;
        assert!(rest(&*queue, 10).await.is_empty(), "the lane is held");
        seen.push((delivery.data::<i64>().unwrap(), delivery.attempt));
        let retries = delivery.attempt == 1 && delivery.data != json!(3);
        let verdict = if retries {
            Verdict::Retry { delay: None, reason: "busy".to_owned() }
        } else {
            Verdict::Done
        };
        queue.settle(&delivery, verdict).await.unwrap();
    }
    assert_eq!(seen, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]);
}

/// Covers behaviour 198.
pub async fn a_message_that_is_given_up_lets_the_next_ones_pass<F: CoordinationFactory>(place: &F) {
    let queue = ordered(place).await;
    queue.send_all(vec![for_ada(1), for_ada(2)]).await.unwrap();
    for attempt in 1..=3 {
        let delivery = one(&*queue).await;
        assert_eq!((&delivery.data, delivery.attempt), (&json!(1), attempt));
        let verdict = Verdict::Retry { delay: None, reason: format!("busy {attempt}") };
        let settled = queue.settle(&delivery, verdict).await.unwrap();
        assert_eq!(settled, if attempt == 3 { Settled::Buried } else { Settled::Retried });
    }
    let delivery = one(&*queue).await;
    assert_eq!(delivery.data, json!(2));
    queue.settle(&delivery, Verdict::Done).await.unwrap();
    let dead = queue.dead_list(DeadPage::default()).await.unwrap();
    let [letter] = dead.as_slice() else { unreachable!("{dead:?}") };
    assert_eq!((letter.attempts, letter.reason.as_str()), (3, "busy 3"));
    assert_eq!((&letter.key, &letter.data), (&Some(key("ada")), &json!(1)));
}

/// It would have no place in any order.
pub async fn a_message_without_ordering_key_is_refused_where_one_is_needed<
    F: CoordinationFactory,
>(
    place: &F,
) {
    let queue = ordered(place).await;
    let error = queue.send(message(1)).await.unwrap_err();
    assert!(matches!(error, SyncError::InvalidOption { option: "ordering_key", .. }), "{error}");
    assert_eq!(queue.partitions(), Some(Partitions::new(2).unwrap()));
}

/// Covers behaviour 200.
pub async fn one_message_that_is_too_large_stops_all<F: CoordinationFactory>(place: &F) {
    let queue = queue(place).await;
    let messages = vec![message(1), Message::new(&large()).unwrap(), message(3)];
    let error = queue.send_all(messages).await.unwrap_err();
    assert_eq!((error.accepted, error.duplicates), (0, 0));
    assert!(matches!(error.source, SyncError::PayloadTooLarge { .. }));
    assert_eq!(queue.depth().await.unwrap().waiting, 0);
}

/// Behind what came before its time.
pub async fn a_delayed_message_takes_its_place_later<F: CoordinationFactory>(place: &F) {
    let queue = ordered(place).await;
    queue.send(for_ada(1).delay(Duration::from_millis(900))).await.unwrap();
    queue.send(for_ada(2)).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let delivery = one(&*queue).await;
        seen.push(delivery.data::<i64>().unwrap());
        queue.settle(&delivery, Verdict::Done).await.unwrap();
    }
    assert_eq!(seen, [2, 1]);
}

/// Covers field fault 83.
pub async fn a_crowded_lane_hides_no_other<F: CoordinationFactory>(place: &F) {
    let settings = QueueSettings::ordered(quick("letters"), Partitions::new(4).unwrap());
    let queue = place.handle().await.queue(settings).await.unwrap();
    let lane = |name: &str| Partitions::new(4).unwrap().of(&key(name));
    let others = ["bob", "carl", "dora", "eve", "fay"];
    let other = others.into_iter().find(|name| lane(name) != lane("ada")).unwrap();
    queue.send_all((1..=200).map(for_ada).collect()).await.unwrap();
    // Its head is held, and all of it stands before the other one.
    let head = one(&*queue).await;
    queue.send(message(7).ordering_key(key(other))).await.unwrap();
    let next = one(&*queue).await;
    assert_eq!(next.key, Some(key(other)));
    // While its head waits for another attempt it is no different.
    let later = Verdict::Retry { delay: Some(Duration::from_secs(60)), reason: "busy".to_owned() };
    queue.settle(&head, later).await.unwrap();
    queue.settle(&next, Verdict::Done).await.unwrap();
    queue.send(message(8).ordering_key(key(other))).await.unwrap();
    assert_eq!(one(&*queue).await.data, json!(8));
}

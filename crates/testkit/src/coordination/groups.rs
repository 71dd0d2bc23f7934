//! Groups: readers of a topic that share its messages.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use surefoot_sync_core::{
    Backoff, Coordinator as _, DeadPage, Delivery, GroupSettings, GroupStart, SyncError, Topic,
    TopicEvent, TopicSettings, Verdict, Work,
};
use surefoot_worker::coordinate::{ProcessOptions, process_work};

use super::{CoordinationFactory, eventually, id, key, one, rest};

fn news() -> TopicSettings {
    TopicSettings { stored_max_bytes: 1 << 24, ..TopicSettings::new(id("news")) }
}

fn settings(name: &str, start: GroupStart) -> GroupSettings {
    GroupSettings {
        attempts_max: 3,
        backoff: Backoff::new(vec![Duration::from_millis(50)]),
        ..GroupSettings::new(key(name), start)
    }
}

async fn group<F: CoordinationFactory>(place: &F, name: &str, start: GroupStart) -> Arc<dyn Work> {
    place.handle().await.group(news(), settings(name, start)).await.unwrap()
}

async fn topic<F: CoordinationFactory>(place: &F) -> Arc<dyn Topic> {
    place.handle().await.topic(news()).await.unwrap()
}

async fn publish(topic: &Arc<dyn Topic>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        topic.publish(TopicEvent::new(key("ann"), &number).unwrap()).await.unwrap();
    }
}

fn number(delivery: &Delivery) -> usize {
    delivery.data().unwrap()
}

async fn done(group: &Arc<dyn Work>, delivery: &Delivery) {
    group.settle(delivery, Verdict::Done).await.unwrap();
}

fn dead(reason: &str) -> Verdict {
    Verdict::DeadLetter { reason: reason.to_owned() }
}

/// However many readers a group has.
pub async fn each_message_is_handled_by_one_of_a_group_and_every_group_has_all<
    F: CoordinationFactory,
>(
    place: &F,
) {
    const MESSAGES: usize = 40;
    let topic = topic(place).await;
    let mut workers = Vec::new();
    let mut seen = Vec::new();
    for name in ["mail", "a.b *>"] {
        let by_group = Arc::new(StdMutex::new(Vec::new()));
        for _ in 0..2 {
            let (group, handled) = (group(place, name, GroupStart::All).await, by_group.clone());
            let options = ProcessOptions::new(3).unwrap();
            workers.push(process_work(group, options, move |cx| {
                handled.lock().unwrap().push(cx.input::<usize>().unwrap());
                async { Ok(()) }
            }));
        }
        seen.push(by_group);
    }
    publish(&topic, 0..MESSAGES).await;
    let all = async || {
        let full =
            |by_group: &Arc<StdMutex<Vec<usize>>>| by_group.lock().unwrap().len() >= MESSAGES;
        seen.iter().all(full).then_some(())
    };
    eventually("all messages in both groups", all).await;
    for worker in &mut workers {
        worker.drain().await;
    }
    for by_group in seen {
        let mut numbers = by_group.lock().unwrap().clone();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
    }
    let read = topic.head().await.unwrap().seq() - topic.tail().await.unwrap().seq();
    assert_eq!(read, u64::try_from(MESSAGES).unwrap(), "the topic keeps them for others");
}

/// Whoever declares it again.
pub async fn a_group_begins_where_it_says_and_goes_on_where_it_was<F: CoordinationFactory>(
    place: &F,
) {
    let topic = topic(place).await;
    publish(&topic, 0..3).await;
    let (all, new) =
        (group(place, "all", GroupStart::All).await, group(place, "new", GroupStart::New).await);
    assert_eq!(rest(&*new, 10).await, []);
    assert_eq!(all.depth().await.unwrap().waiting, 3);
    assert!(all.depth().await.unwrap().oldest.is_some());
    for expected in [0, 1] {
        let delivery = one(&*all).await;
        assert_eq!((number(&delivery), delivery.attempt), (expected, 1));
        assert_eq!(delivery.key, Some(key("ann")));
        done(&all, &delivery).await;
    }
    publish(&topic, 3..4).await;
    let all = group(place, "all", GroupStart::All).await;
    for expected in [2, 3] {
        let delivery = one(&*all).await;
        assert_eq!(number(&delivery), expected);
        done(&all, &delivery).await;
    }
    assert_eq!(number(&one(&*group(place, "new", GroupStart::New).await).await), 3);
    eventually("nothing left", async || {
        let depth = all.depth().await.unwrap();
        (depth.waiting + depth.held == 0 && depth.oldest.is_none()).then_some(())
    })
    .await;
}

/// Covers behaviours 196, 198.
pub async fn a_message_that_is_given_up_is_a_dead_letter_of_its_group_alone<
    F: CoordinationFactory,
>(
    place: &F,
) {
    let topic = topic(place).await;
    let (mail, other) =
        (group(place, "mail", GroupStart::All).await, group(place, "other", GroupStart::All).await);
    publish(&topic, 0..2).await;
    for attempt in 1..=3 {
        let delivery = eventually("the first message", async || {
            let deliveries = rest(&*mail, 1).await;
            let (first, others) =
                deliveries.into_iter().partition::<Vec<_>, _>(|it| number(it) == 0);
            for delivery in others {
                done(&mail, &delivery).await;
            }
            first.into_iter().next()
        })
        .await;
        assert_eq!(delivery.attempt, attempt);
        let retry = Verdict::Retry { delay: None, reason: "no paper".to_owned() };
        mail.settle(&delivery, retry).await.unwrap();
    }
    let letters = mail.dead_list(DeadPage::default()).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].attempts, letters[0].reason.as_str()), (3, "no paper"));
    assert_eq!(letters[0].key, Some(key("ann")));
    assert_eq!(mail.dead_load(&letters[0].id).await.unwrap().as_ref(), Some(&letters[0]));
    assert_eq!(other.dead_list(DeadPage::default()).await.unwrap(), []);
    // Sent again, it comes to this group alone, and with all its attempts.
    let sent = mail.dead_requeue(&letters[0].id, &key("again")).await.unwrap();
    let delivery = eventually("the letter", async || {
        rest(&*mail, 5).await.into_iter().find(|it| number(it) == 0)
    })
    .await;
    assert_eq!((&delivery.id, delivery.attempt), (&sent, 1));
    mail.settle(&delivery, dead("still none")).await.unwrap();
    let letters = mail.dead_list(DeadPage::default()).await.unwrap();
    assert_eq!((letters.len(), letters[0].reason.as_str()), (1, "still none"));
    assert!(mail.dead_delete(&letters[0].id).await.unwrap());
    assert!(!mail.dead_delete(&letters[0].id).await.unwrap());
    let numbers: BTreeSet<usize> = rest(&*other, 5).await.iter().map(number).collect();
    assert_eq!(numbers, BTreeSet::from([0, 1]));
}

/// Covers behaviour 195.
pub async fn a_reader_that_dies_costs_an_attempt<F: CoordinationFactory>(place: &F) {
    let topic = topic(place).await;
    let fleeting = GroupSettings {
        ack_wait: Duration::from_secs(1),
        attempts_max: 2,
        ..settings("mail", GroupStart::All)
    };
    let group = place.handle().await.group(news(), fleeting).await.unwrap();
    publish(&topic, 0..1).await;
    for attempt in 1..=2 {
        assert_eq!(one(&*group).await.attempt, attempt);
    }
    let letter = eventually("a dead letter", async || {
        assert_eq!(rest(&*group, 1).await, []);
        group.dead_list(DeadPage::default()).await.unwrap().pop()
    })
    .await;
    assert_eq!((letter.attempts, letter.reason.as_str()), (2, Verdict::HOLDER_LOST));
}

/// Others pass it.
pub async fn a_retry_holds_up_no_other_message<F: CoordinationFactory>(place: &F) {
    let topic = topic(place).await;
    let group = group(place, "mail", GroupStart::All).await;
    publish(&topic, 0..3).await;
    let first = one(&*group).await;
    let later = Verdict::Retry { delay: Some(Duration::from_secs(600)), reason: "busy".to_owned() };
    group.settle(&first, later).await.unwrap();
    for _ in 0..2 {
        let delivery = one(&*group).await;
        assert_ne!(number(&delivery), number(&first));
        done(&group, &delivery).await;
    }
}

/// Covers behaviour 212.
pub async fn a_group_is_declared_once<F: CoordinationFactory>(place: &F) {
    group(place, "mail", GroupStart::All).await;
    let other = GroupSettings { attempts_max: 9, ..settings("mail", GroupStart::All) };
    let error = place.handle().await.group(news(), other).await.err().unwrap();
    assert!(matches!(error, SyncError::ResourceDrift { .. }), "{error}");
    let none = GroupSettings { held_max: 0, ..settings("none", GroupStart::All) };
    let error = place.handle().await.group(news(), none).await.err().unwrap();
    assert!(matches!(error, SyncError::InvalidOption { .. }), "{error}");
    group(place, "mail", GroupStart::All).await;
}

//! Jobs: durable, at least once, by key.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{
    Again, Coordinator as _, DeadPage, Delivery, Job, Jobs, Receive, Settled, Submitted, SyncError,
    Verdict, WorkSettings,
};
use surefoot_worker::coordinate::{JobEnd, ProcessOptions, WorkStop, process_jobs};

use super::{
    CoordinationFactory, eventually, fleeting, key, large, one, quick, rest, steadily, stored,
    submit,
};

/// Keys that a careless encoding would mix up.
pub(super) const ODD_KEYS: [&str; 12] =
    ["a", "A", "a.b", "a/b", "a_b", "a=2Eb", "a%2Eb", "a b", "*", ">", "ä\n\u{0}", "a.b.>"];

async fn jobs<F: CoordinationFactory>(place: &F) -> Arc<dyn Jobs> {
    place.handle().await.jobs(quick("mail")).await.unwrap()
}

/// Held for a short time.
async fn fleeting_jobs<F: CoordinationFactory>(place: &F) -> Arc<dyn Jobs> {
    place.handle().await.jobs(fleeting("fleeting")).await.unwrap()
}

fn retry(reason: &str) -> Verdict {
    Verdict::Retry { delay: None, reason: reason.to_owned() }
}

async fn done(jobs: &Arc<dyn Jobs>, delivery: &Delivery) {
    assert_eq!(jobs.settle(delivery, Verdict::Done).await.unwrap(), Settled::Done);
}

fn coalesced(name: &str, input: i64) -> Job {
    Job::new(key(name), &input).unwrap().coalesced()
}

/// To whichever process asks.
pub async fn a_job_is_delivered_with_what_was_submitted<F: CoordinationFactory>(place: &F) {
    let (sender, worker) = (jobs(place).await, jobs(place).await);
    let submitted = submit(&sender, "a").await;
    let delivery = one(&*worker).await;
    assert_eq!(Some(&delivery.id), stored(&submitted));
    assert_eq!((delivery.key.clone(), &delivery.data), (Some(key("a")), &json!({ "of": "a" })));
    assert_eq!((delivery.attempt, delivery.generation), (1, 0));
    done(&worker, &delivery).await;
    assert!(rest(&*worker, 10).await.is_empty());
    assert_eq!(worker.depth().await.unwrap().waiting, 0);
}

/// Covers field faults 148, 150.
pub async fn a_key_inside_the_window_is_one_job<F: CoordinationFactory>(place: &F) {
    let settings = || WorkSettings { dedupe_window: Duration::from_secs(1), ..quick("brief") };
    let (first, second) = (place.handle().await, place.handle().await);
    let jobs = first.jobs(settings()).await.unwrap();
    let submitted = submit(&jobs, "a").await;
    let again = submit(&second.jobs(settings()).await.unwrap(), "a").await;
    assert_eq!(again, Submitted::Duplicate(stored(&submitted).cloned()));
    done(&jobs, &one(&*jobs).await).await;
    // The window outlives the job, and then the key is new.
    let new = eventually("a new job", async || stored(&submit(&jobs, "a").await).cloned()).await;
    assert_ne!(Some(&new), stored(&submitted));
}

/// Covers behaviour 201.
pub async fn a_coalesced_key_is_one_job_until_it_is_done<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    let first = jobs.submit(coalesced("a", 1)).await.unwrap();
    let id = stored(&first).unwrap().clone();
    let joined = Submitted::Joined(id.clone());
    assert_eq!(jobs.submit(coalesced("a", 2)).await.unwrap(), joined, "while it waits");
    assert!(stored(&jobs.submit(coalesced("b", 1)).await.unwrap()).is_some(), "another key");
    let delivery = one(&*jobs).await;
    assert_eq!((&delivery.id, &delivery.data), (&id, &json!(1)));
    assert_eq!(jobs.submit(coalesced("a", 3)).await.unwrap(), joined, "while it runs");
    let again = Again { delay: Duration::from_millis(300), input: Some(json!(4)) };
    jobs.resubmit(&delivery, again).await.unwrap();
    assert_eq!(jobs.submit(coalesced("a", 5)).await.unwrap(), joined, "while it will come again");
    done(&jobs, &one(&*jobs).await).await;
    let delivery = one(&*jobs).await;
    assert_eq!((&delivery.id, &delivery.data), (&id, &json!(4)));
    done(&jobs, &delivery).await;
    // The server may take a moment to forget it.
    let free = async || stored(&jobs.submit(coalesced("a", 6)).await.unwrap()).cloned();
    assert_ne!(eventually("a free key", free).await, id);
}

/// Covers behaviour 201.
pub async fn a_coalesced_key_is_free_after_a_dead_letter<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    jobs.submit(coalesced("a", 1)).await.unwrap();
    let delivery = one(&*jobs).await;
    let dead = Verdict::DeadLetter { reason: "no such user".to_owned() };
    assert_eq!(jobs.settle(&delivery, dead).await.unwrap(), Settled::Buried);
    let free = async || stored(&jobs.submit(coalesced("a", 2)).await.unwrap()).cloned();
    eventually("a free key", free).await;
}

/// From however many processes.
pub async fn of_many_coalesced_submits_one_is_stored<F: CoordinationFactory>(place: &F) {
    let mut submits = tokio::task::JoinSet::new();
    for number in 0..40 {
        let jobs = jobs(place).await;
        submits.spawn(async move { jobs.submit(coalesced("a", number)).await.unwrap() });
    }
    let all = submits.join_all().await;
    let ids: Vec<_> = all.iter().filter_map(stored).collect();
    let [id] = ids.as_slice() else { unreachable!("{all:?}") };
    let joined = Submitted::Joined((*id).clone());
    assert_eq!(all.iter().filter(|one| **one == joined).count(), 39);
    assert_eq!(jobs(place).await.depth().await.unwrap().waiting, 1);
}

/// And not before.
pub async fn a_delayed_job_comes_when_its_time_has_come<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    let (start, wait) = (tokio::time::Instant::now(), Duration::from_millis(1_200));
    let later = Job::new(key("a"), &1).unwrap().after(wait);
    jobs.submit(later.clone()).await.unwrap();
    assert!(matches!(jobs.submit(later).await.unwrap(), Submitted::Duplicate(_)));
    jobs.submit(Job::new(key("b"), &2).unwrap().at(Timestamp::default())).await.unwrap();
    let past = one(&*jobs).await;
    assert_eq!(past.key, Some(key("b")), "an instant that has passed is now");
    done(&jobs, &past).await;
    let delivery = one(&*jobs).await;
    // A server's clock is not read to the millisecond.
    assert!(start.elapsed() + Duration::from_millis(200) >= wait, "{:?}", start.elapsed());
    assert_eq!((delivery.key.clone(), delivery.attempt), (Some(key("a")), 1));
    done(&jobs, &delivery).await;
    assert!(rest(&*jobs, 10).await.is_empty());
}

/// It would be removed before its time.
pub async fn a_start_beyond_the_retention_is_refused<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    for job in [
        Job::new(key("a"), &1).unwrap().after(Duration::from_secs(7 * 86_400)),
        Job::new(key("a"), &1).unwrap().after(Duration::MAX),
        Job::new(key("a"), &1).unwrap().at(Timestamp::MAX),
    ] {
        let error = jobs.submit(job).await.unwrap_err();
        assert!(matches!(error, SyncError::InvalidOption { option: "delay", .. }), "{error}");
    }
    assert_eq!(jobs.depth().await.unwrap().waiting, 0);
}

/// Its key stays free.
pub async fn what_is_too_large_is_refused_before_it_is_stored<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    let error = jobs.submit(Job::new(key("a"), &large()).unwrap()).await.unwrap_err();
    assert!(matches!(error, SyncError::PayloadTooLarge { limit_bytes: 131_072, .. }), "{error}");
    assert!(stored(&submit(&jobs, "a").await).is_some());
}

/// Covers behaviour 196.
/// Covers field faults 145, 147.
pub async fn a_holder_that_dies_costs_an_attempt<F: CoordinationFactory>(place: &F) {
    let jobs = fleeting_jobs(place).await;
    submit(&jobs, "a").await;
    for attempt in 1..=3 {
        let held = one(&*jobs).await;
        assert_eq!(held.attempt, attempt);
        assert_eq!(jobs.depth().await.unwrap().held, 1);
    }
    // The last holder died too: there is no fourth attempt.
    let letter = eventually("a dead letter", async || {
        assert_eq!(rest(&*jobs, 1).await, []);
        jobs.dead_list(DeadPage::default()).await.unwrap().pop()
    })
    .await;
    assert_eq!((letter.attempts, letter.reason.as_str()), (3, Verdict::HOLDER_LOST));
    let depth = eventually("no work", async || {
        let depth = jobs.depth().await.unwrap();
        (depth.held + depth.waiting == 0).then_some(depth)
    });
    assert_eq!(depth.await.dead, 1);
}

/// For longer than it would be held without.
pub async fn a_heartbeat_keeps_a_delivery<F: CoordinationFactory>(place: &F) {
    let jobs = fleeting_jobs(place).await;
    let ack_wait = jobs.settings().ack_wait;
    for round in 0.. {
        submit(&jobs, &format!("job {round}")).await;
        let held = one(&*jobs).await;
        let mut others = 0;
        let steady = steadily(2 * ack_wait, ack_wait / 2, async || {
            jobs.heartbeat(&held).await.unwrap();
            let nobody = Receive { max: 1, wait: Duration::ZERO };
            others += jobs.receive(nobody).await.unwrap().len();
        });
        let steady = steady.await;
        done(&jobs, &held).await;
        if steady {
            assert_eq!(others, 0);
            break;
        }
    }
    assert_eq!(rest(&*jobs, 1).await, []);
}

/// Its slot is free meanwhile.
pub async fn a_retry_comes_again_after_its_wait<F: CoordinationFactory>(place: &F) {
    let coordinator = place.handle().await;
    let jobs = coordinator.jobs(WorkSettings { held_max: 1, ..quick("one") }).await.unwrap();
    submit(&jobs, "a").await;
    submit(&jobs, "b").await;
    let delivery = one(&*jobs).await;
    let (asked, wait) = (tokio::time::Instant::now(), Duration::from_millis(900));
    let verdict = Verdict::Retry { delay: Some(wait), reason: "busy".to_owned() };
    assert_eq!(jobs.settle(&delivery, verdict).await.unwrap(), Settled::Retried);
    let other = one(&*jobs).await;
    assert_eq!(other.key, Some(key("b")));
    done(&jobs, &other).await;
    let again = one(&*jobs).await;
    assert_eq!((&again.id, again.attempt, &again.data), (&delivery.id, 2, &delivery.data));
    assert!(asked.elapsed() + Duration::from_millis(200) >= wait, "{:?}", asked.elapsed());
    done(&jobs, &again).await;
}

/// Covers behaviour 196.
pub async fn the_last_attempt_becomes_a_dead_letter<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    let id = stored(&submit(&jobs, "a").await).unwrap().clone();
    for attempt in 1..=3 {
        let delivery = one(&*jobs).await;
        assert_eq!((&delivery.id, delivery.attempt), (&id, attempt));
        let settled = jobs.settle(&delivery, retry(&format!("busy {attempt}"))).await.unwrap();
        assert_eq!(settled, if attempt == 3 { Settled::Buried } else { Settled::Retried });
    }
    assert_eq!(rest(&*jobs, 1).await, []);
    let dead = jobs.dead_list(DeadPage::default()).await.unwrap();
    let [letter] = dead.as_slice() else { unreachable!("{dead:?}") };
    assert_eq!((&letter.id, &letter.key, letter.attempts), (&id, &Some(key("a")), 3));
    assert_eq!((letter.reason.as_str(), &letter.data), ("busy 3", &json!({ "of": "a" })));
    assert!(letter.since > Timestamp::default());
}

/// Covers behaviour 196.
pub async fn a_dead_letter_is_requeued_once_and_deleted<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    for name in ["a", "b", "c"] {
        submit(&jobs, name).await;
        let delivery = one(&*jobs).await;
        let dead = Verdict::DeadLetter { reason: "no such user".to_owned() };
        jobs.settle(&delivery, dead.clone()).await.unwrap();
        // Settling what is settled already adds nothing.
        let _ = jobs.settle(&delivery, dead).await;
    }
    let dead = jobs.dead_list(DeadPage::default()).await.unwrap();
    assert_eq!(dead.len(), 3);
    let first = DeadPage { after: 0, limit: 1 };
    let first = jobs.dead_list(first).await.unwrap();
    assert_eq!(first, dead[..1]);
    let others = DeadPage { after: first[0].place, limit: 10 };
    assert_eq!(jobs.dead_list(others).await.unwrap(), dead[1..]);

    let sent = jobs.dead_requeue(&dead[0].id, &key("a2")).await.unwrap();
    let again = jobs.dead_requeue(&dead[0].id, &key("a2")).await.unwrap_err();
    assert!(matches!(again, SyncError::NotFound { .. }), "{again}");
    let delivery = one(&*jobs).await;
    assert_eq!((&delivery.id, &delivery.key, delivery.attempt), (&sent, &Some(key("a2")), 1));
    assert_eq!(delivery.data, json!({ "of": "a" }));
    done(&jobs, &delivery).await;

    assert!(jobs.dead_delete(&dead[1].id).await.unwrap());
    assert!(!jobs.dead_delete(&dead[1].id).await.unwrap());
    assert_eq!(jobs.dead_list(DeadPage::default()).await.unwrap(), dead[2..]);
    assert_eq!(rest(&*jobs, 1).await, []);
}

/// It is sent again under one key, or removed, and the others are told that somebody was faster.
///
/// Covers behaviour 196.
pub async fn of_many_who_settle_a_dead_letter_one_does<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    for round in 0..5 {
        submit(&jobs, &format!("a{round}")).await;
        let delivery = one(&*jobs).await;
        let dead = Verdict::DeadLetter { reason: "no such user".to_owned() };
        jobs.settle(&delivery, dead).await.unwrap();
        let keys = ["one", "two", "three"].map(|name| key(&format!("{name}{round}")));
        let [one, two, three] = &keys;
        let (id, is_lost) = (&delivery.id, |error: &SyncError| {
            matches!(error, SyncError::NotFound { .. } | SyncError::Conflict { .. })
        });
        let (first, second, third, removed) = tokio::join!(
            jobs.dead_requeue(id, one),
            jobs.dead_requeue(id, two),
            jobs.dead_requeue(id, three),
            jobs.dead_delete(id)
        );
        let sent = [first, second, third];
        assert!(sent.iter().filter_map(|it| it.as_ref().err()).all(is_lost), "{sent:?}");
        assert!(removed.as_ref().err().is_none_or(is_lost), "{removed:?}");
        let won: Vec<_> = sent.iter().filter_map(|it| it.as_ref().ok()).collect();
        assert_eq!(won.len() + usize::from(removed.unwrap_or(false)), 1, "{sent:?}");
        for id in won {
            let delivery = self::one(&*jobs).await;
            assert_eq!(&delivery.id, id);
            done(&jobs, &delivery).await;
        }
        assert_eq!(jobs.dead_list(DeadPage::default()).await.unwrap(), []);
        assert_eq!(rest(&*jobs, 1).await, []);
    }
}

/// Covers behaviour 199.
/// Covers field fault 155.
pub async fn a_late_success_is_no_error<F: CoordinationFactory>(place: &F) {
    let jobs = fleeting_jobs(place).await;
    submit(&jobs, "a").await;
    let late = one(&*jobs).await;
    let again = one(&*jobs).await;
    assert_eq!((&again.id, again.attempt), (&late.id, 2));
    done(&jobs, &late).await;
    done(&jobs, &again).await;
    done(&jobs, &late).await;
    assert_eq!(rest(&*jobs, 1).await, []);
}

/// The work is done; nobody does it again for a holder that was too slow.
pub async fn a_late_retry_is_stale<F: CoordinationFactory>(place: &F) {
    let jobs = fleeting_jobs(place).await;
    submit(&jobs, "a").await;
    let late = one(&*jobs).await;
    let again = one(&*jobs).await;
    done(&jobs, &again).await;
    let settled = jobs.settle(&late, retry("busy")).await;
    assert!(matches!(settled, Err(SyncError::StaleDelivery)), "{settled:?}");
    let again = Again { delay: Duration::ZERO, input: None };
    let settled = jobs.resubmit(&late, again).await;
    assert!(matches!(settled, Err(SyncError::StaleDelivery)), "{settled:?}");
    assert_eq!(rest(&*jobs, 1).await, []);
    assert_eq!(jobs.dead_list(DeadPage::default()).await.unwrap(), []);
}

/// The key stays, and so does the id.
pub async fn a_resubmit_keeps_the_job_and_starts_its_attempts_anew<F: CoordinationFactory>(
    place: &F,
) {
    let jobs = jobs(place).await;
    submit(&jobs, "a").await;
    let delivery = one(&*jobs).await;
    jobs.settle(&delivery, retry("busy")).await.unwrap();
    let second = one(&*jobs).await;
    let at_once = Again { delay: Duration::ZERO, input: Some(json!("page 2")) };
    jobs.resubmit(&second, at_once).await.unwrap();
    let next = one(&*jobs).await;
    assert_eq!((&next.id, &next.key), (&delivery.id, &Some(key("a"))));
    assert_eq!((next.attempt, next.generation), (1, 1));
    assert_eq!(next.data, json!("page 2"));
    let later = Again { delay: Duration::from_millis(600), input: None };
    jobs.resubmit(&next, later).await.unwrap();
    let last = one(&*jobs).await;
    assert_eq!((last.attempt, last.generation, &last.data), (1, 2, &next.data));
    done(&jobs, &last).await;
    assert_eq!(rest(&*jobs, 1).await, []);
}

/// Covers behaviour 194.
/// Covers field fault 154.
pub async fn no_more_are_held_than_may_be<F: CoordinationFactory>(place: &F) {
    let settings = || WorkSettings { held_max: 4, ..quick("four") };
    let coordinator = place.handle().await;
    let jobs = coordinator.jobs(settings()).await.unwrap();
    for number in 0..10 {
        submit(&jobs, &format!("job {number}")).await;
    }
    let mut held = Vec::new();
    for _ in 0..3 {
        let worker = place.handle().await.jobs(settings()).await.unwrap();
        held.extend(rest(&*worker, 3).await);
    }
    assert_eq!(held.len(), 4);
    assert_eq!(jobs.depth().await.unwrap().held, 4);
    done(&jobs, &held[0]).await;
    let next = one(&*jobs).await;
    assert!(held.iter().all(|one| one.id != next.id));
}

/// Covers field fault 84.
pub async fn a_place_that_becomes_free_is_used_at_once<F: CoordinationFactory>(place: &F) {
    let settings = || WorkSettings { held_max: 2, ..quick("two") };
    let jobs = place.handle().await.jobs(settings()).await.unwrap();
    for name in ["a", "b", "c"] {
        submit(&jobs, name).await;
    }
    let held = [one(&*jobs).await, one(&*jobs).await];
    let waiting = place.handle().await.jobs(settings()).await.unwrap();
    // Shorter than a delivery is held, longer than any machine is busy.
    let request = Receive { max: 1, wait: Duration::from_secs(20) };
    let receiving = tokio::spawn(async move { waiting.receive(request).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!receiving.is_finished(), "there is no place");
    done(&jobs, &held[1]).await;
    let received = receiving.await.unwrap();
    assert_eq!(received.len(), 1, "nobody looked until the wait was over");
    assert!(held.iter().all(|one| one.id != received[0].id));
}

/// Covers field fault 145.
pub async fn depth_counts_what_waits_is_held_and_is_dead<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    for name in ["a", "b", "c", "d"] {
        submit(&jobs, name).await;
    }
    jobs.submit(Job::new(key("e"), &1).unwrap().after(Duration::from_secs(600))).await.unwrap();
    let first = one(&*jobs).await;
    jobs.settle(&first, Verdict::DeadLetter { reason: "no".to_owned() }).await.unwrap();
    one(&*jobs).await;
    let depth = jobs.depth().await.unwrap();
    assert_eq!((depth.waiting, depth.held, depth.dead), (3, 1, 1));
    assert!(depth.bytes > 0);
}

/// Covers behaviour 208.
/// Covers field fault 156.
pub async fn keys_with_odd_characters_are_different_jobs<F: CoordinationFactory>(place: &F) {
    let jobs = jobs(place).await;
    for name in ODD_KEYS {
        let submitted = jobs.submit(coalesced(name, 1)).await.unwrap();
        assert!(stored(&submitted).is_some(), "{name:?} joined another");
    }
    let delivered = rest(&*jobs, 100).await;
    let keys: BTreeSet<_> = delivered.iter().filter_map(|one| one.key.clone()).collect();
    assert_eq!(keys, ODD_KEYS.iter().map(|name| key(name)).collect());
}

/// Covers behaviour 202.
pub async fn a_full_store_says_so_and_still_knows_what_it_has<F: CoordinationFactory>(place: &F) {
    let settings = WorkSettings { stored_max_bytes: 1 << 18, ..quick("small") };
    let jobs = place.handle().await.jobs(settings).await.unwrap();
    let bulk = |number: usize| {
        Job::new(key(&format!("job {number}")), &"x".repeat(30 * 1024)).unwrap().coalesced()
    };
    let mut accepted = 0;
    let error = loop {
        match jobs.submit(bulk(accepted)).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 10, "it is full by then");
    };
    assert!(matches!(error, SyncError::StoreFull { .. }), "{error}");
    assert!(matches!(jobs.submit(bulk(0)).await.unwrap(), Submitted::Joined(_)));
    for _ in 0..accepted {
        done(&jobs, &one(&*jobs).await).await;
    }
    eventually("room", async || jobs.submit(bulk(accepted)).await.ok()).await;
}

/// With no more handlers at once than asked for, and nothing held behind.
pub async fn handlers_do_all_jobs_and_drain<F: CoordinationFactory>(place: &F) {
    let (jobs, seen) = (jobs(place).await, Arc::new(StdMutex::new(BTreeSet::new())));
    for number in 0..20 {
        submit(&jobs, &format!("job {number}")).await;
    }
    let running = Arc::new(tokio::sync::Semaphore::new(3));
    let handled = seen.clone();
    let options = ProcessOptions::new(3).unwrap();
    let mut processing = process_jobs(jobs.clone(), options, move |cx| {
        let (handled, running) = (handled.clone(), running.clone());
        async move {
            let _running = running.try_acquire().map_err(|_| WorkStop::dead("one too many"))?;
            tokio::task::yield_now().await;
            handled.lock().unwrap().insert(cx.key().cloned());
            Ok(JobEnd::Done)
        }
    });
    let all = async || (seen.lock().unwrap().len() == 20).then_some(());
    eventually("all jobs", all).await;
    processing.drain().await;
    let counts = processing.counts();
    assert_eq!((counts.done, counts.dead, counts.retried, counts.lost), (20, 0, 0, 0));
    submit(&jobs, "after").await;
    assert_eq!(one(&*jobs).await.key, Some(key("after")), "nobody takes it after the drain");
    assert!(ProcessOptions::new(0).is_err());
}

/// Covers behaviour 196.
pub async fn a_handler_that_fails_or_panics_is_tried_again_and_then_dead<F: CoordinationFactory>(
    place: &F,
) {
    let jobs = jobs(place).await;
    submit(&jobs, "a").await;
    let options = ProcessOptions::new(2).unwrap();
    let mut processing = process_jobs(jobs.clone(), options, async |cx| {
        assert_ne!(cx.attempt(), 1, "the first attempt panics");
        "no number".parse::<i64>()?;
        Ok(JobEnd::Done)
    });
    let letter = eventually("a dead letter", async || {
        jobs.dead_list(DeadPage::default()).await.unwrap().pop()
    });
    let letter = letter.await;
    assert_eq!((letter.attempts, letter.reason.as_str()), (3, "invalid digit found in string"));
    processing.drain().await;
    assert_eq!((processing.counts().retried, processing.counts().dead), (2, 1));
}

/// Covers field fault 160.
pub async fn a_handler_that_takes_long_keeps_its_job<F: CoordinationFactory>(place: &F) {
    let jobs = fleeting_jobs(place).await;
    let ack_wait = jobs.settings().ack_wait;
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let (handled, options) = (seen.clone(), ProcessOptions::new(2).unwrap());
    let mut processing = process_jobs(jobs.clone(), options, move |cx| {
        let seen = handled.clone();
        async move {
            let steady = steadily(2 * ack_wait, ack_wait / 3, async || {}).await;
            seen.lock().unwrap().push((steady, cx.attempt()));
            Ok(JobEnd::Done)
        }
    });
    for round in 0.. {
        submit(&jobs, &format!("job {round}")).await;
        let ended = async || seen.lock().unwrap().pop();
        if let (true, attempt) = eventually("the job", ended).await {
            assert_eq!(attempt, 1, "nobody else got it meanwhile");
            break;
        }
    }
    processing.drain().await;
}

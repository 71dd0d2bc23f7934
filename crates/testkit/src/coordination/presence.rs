//! Ephemeral state: there while it is kept up, and known to be gone for a while.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_sync_core::{
    Change, Coordinator as _, EntryKey, Ephemeral, EphemeralSettings, Key, ReadTopic, SyncError,
    WatchCursor, Watched,
};

use super::{CoordinationFactory, eventually, id, key};

async fn presence<F: CoordinationFactory>(place: &F) -> Arc<dyn Ephemeral> {
    let long = Duration::from_secs(3_600);
    let settings = EphemeralSettings { ttl: long, ..EphemeralSettings::new(id("presence")) };
    place.handle().await.ephemeral(settings).await.unwrap()
}

async fn fleeting<F: CoordinationFactory>(place: &F) -> Arc<dyn Ephemeral> {
    let short = Duration::from_secs(1);
    let settings = EphemeralSettings { ttl: short, ..EphemeralSettings::new(id("fleeting")) };
    place.handle().await.ephemeral(settings).await.unwrap()
}

fn of(tenant: &str, name: &str) -> EntryKey {
    EntryKey { tenant: key(tenant), key: key(name) }
}

async fn there(state: &Arc<dyn Ephemeral>, prefix: &str) -> Vec<(Key, Value)> {
    state.snapshot(&key("shop"), prefix).await.unwrap().entries
}

async fn changes(
    state: &Arc<dyn Ephemeral>,
    after: &WatchCursor,
    wait: Duration,
) -> (Vec<Change>, WatchCursor) {
    let request = ReadTopic { max: 100, wait };
    let watched = state.watch(&key("shop"), after, request).await.unwrap();
    let Watched::Changes(changes, cursor) = watched else { unreachable!("{watched:?}") };
    (changes, cursor)
}

/// However they changed.
pub async fn a_snapshot_and_a_watch_of_hundreds_miss_nothing<F: CoordinationFactory>(place: &F) {
    let state = presence(place).await;
    let name = |number: usize| format!("entry {number:03}");
    for number in 0..300 {
        for tenant in ["shop", "bank"] {
            state.upsert(&of(tenant, &name(number)), json!(number)).await.unwrap();
        }
    }
    let snapshot = state.snapshot(&key("shop"), "").await.unwrap();
    let expected: Vec<_> = (0..300).map(|number| (key(&name(number)), json!(number))).collect();
    assert_eq!(snapshot.entries, expected);
    for number in 0..300 {
        match number % 3 {
            0 => state.upsert(&of("shop", &name(number)), json!("new")).await.unwrap(),
            1 => assert!(state.delete(&of("shop", &name(number))).await.unwrap()),
            _ => state.upsert(&of("bank", &name(number)), json!("new")).await.unwrap(),
        }
    }
    let request = ReadTopic { max: 1_000, wait: Duration::ZERO };
    let watched = state.watch(&key("shop"), &snapshot.cursor, request).await.unwrap();
    let Watched::Changes(changes, _) = watched else { unreachable!() };
    let expected = (0..300).filter(|number| number % 3 < 2).map(|number| match number % 3 {
        0 => Change::Upserted(key(&name(number)), json!("new")),
        _ => Change::Gone(key(&name(number))),
    });
    assert_eq!(changes, expected.collect::<Vec<_>>());
}

/// Of one tenant, by the beginning of the key.
pub async fn a_snapshot_has_what_is_there<F: CoordinationFactory>(place: &F) {
    let (one, two) = (presence(place).await, presence(place).await);
    assert!(there(&one, "").await.is_empty());
    for (tenant, name, value) in
        [("shop", "ann", 1), ("shop", "anton", 2), ("shop", "bob", 3), ("bank", "ann", 4)]
    {
        one.upsert(&of(tenant, name), json!(value)).await.unwrap();
    }
    one.upsert(&of("shop", "ann"), json!(5)).await.unwrap();
    let all = [(key("ann"), json!(5)), (key("anton"), json!(2)), (key("bob"), json!(3))];
    assert_eq!(there(&two, "").await, all);
    assert_eq!(there(&two, "an").await, all[..2]);
    assert!(two.delete(&of("shop", "anton")).await.unwrap());
    assert!(!two.delete(&of("shop", "anton")).await.unwrap());
    assert!(!two.delete(&of("shop", "carl")).await.unwrap());
    assert_eq!(there(&one, "an").await, all[..1]);
}

/// And is gone without it.
pub async fn an_entry_stays_as_long_as_it_is_kept_up<F: CoordinationFactory>(place: &F) {
    let state = fleeting(place).await;
    assert!(!state.touch(&of("shop", "ann")).await.unwrap(), "it was never there");
    for round in 0.. {
        state.upsert(&of("shop", "ann"), json!(round)).await.unwrap();
        let mut kept = true;
        let ttl = state.settings().ttl;
        let steady = super::steadily(2 * ttl, ttl / 2, async || {
            kept &= state.touch(&of("shop", "ann")).await.unwrap();
        });
        if steady.await {
            assert!(kept);
            assert_eq!(there(&state, "").await, [(key("ann"), json!(round))]);
            break;
        }
    }
    let gone = async || there(&state, "").await.is_empty().then_some(());
    eventually("its end", gone).await;
    assert!(!state.touch(&of("shop", "ann")).await.unwrap());
}

/// Covers behaviour 207.
pub async fn a_touch_beside_an_upsert_keeps_the_new_value<F: CoordinationFactory>(place: &F) {
    let state = presence(place).await;
    for round in 0..20 {
        state.upsert(&of("shop", "ann"), json!("old")).await.unwrap();
        let mut touching = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let state = state.clone();
            touching.spawn(async move { state.touch(&of("shop", "ann")).await.unwrap() });
        }
        state.upsert(&of("shop", "ann"), json!(round)).await.unwrap();
        assert!(touching.join_all().await.into_iter().all(|touched| touched));
        assert_eq!(there(&state, "").await, [(key("ann"), json!(round))]);
    }
}

/// From the snapshot on, of one tenant.
pub async fn a_watcher_sees_what_changes_behind_its_snapshot<F: CoordinationFactory>(place: &F) {
    let (one, two) = (presence(place).await, presence(place).await);
    one.upsert(&of("shop", "ann"), json!(1)).await.unwrap();
    let begin = two.snapshot(&key("shop"), "").await.unwrap().cursor;
    let (nothing, same) = changes(&two, &begin, Duration::ZERO).await;
    assert!(nothing.is_empty());
    one.upsert(&of("bank", "ann"), json!(2)).await.unwrap();
    one.upsert(&of("shop", "bob"), json!(3)).await.unwrap();
    one.delete(&of("shop", "ann")).await.unwrap();
    let expected = [Change::Upserted(key("bob"), json!(3)), Change::Gone(key("ann"))];
    for cursor in [&begin, &same] {
        assert_eq!(changes(&two, cursor, Duration::ZERO).await.0, expected);
    }
    let (_, cursor) = changes(&two, &begin, Duration::ZERO).await;
    let waiting =
        tokio::spawn(async move { changes(&two, &cursor, Duration::from_secs(30)).await.0 });
    tokio::task::yield_now().await;
    one.upsert(&of("shop", "bob"), json!(4)).await.unwrap();
    assert_eq!(waiting.await.unwrap(), [Change::Upserted(key("bob"), json!(4))]);
}

/// Nobody has to delete it.
pub async fn a_watcher_sees_what_expires<F: CoordinationFactory>(place: &F) {
    let state = fleeting(place).await;
    state.upsert(&of("shop", "ann"), json!(1)).await.unwrap();
    let mut cursor = state.snapshot(&key("shop"), "").await.unwrap().cursor;
    eventually("its end", async || {
        let (seen, next) = changes(&state, &cursor, Duration::from_millis(500)).await;
        cursor = next;
        seen.contains(&Change::Gone(key("ann"))).then_some(())
    })
    .await;
}

/// Nothing is cut off in silence.
pub async fn what_is_too_much_is_refused<F: CoordinationFactory>(place: &F) {
    let settings = EphemeralSettings { entries_max: 2, ..EphemeralSettings::new(id("few")) };
    let state = place.handle().await.ephemeral(settings).await.unwrap();
    let error = state.upsert(&of("shop", "a"), json!("x".repeat(5_000))).await.unwrap_err();
    assert!(matches!(error, SyncError::PayloadTooLarge { limit_bytes: 4_096, .. }), "{error}");
    for name in ["a1", "a2", "b"] {
        state.upsert(&of("shop", name), json!(1)).await.unwrap();
    }
    let error = state.snapshot(&key("shop"), "").await.unwrap_err();
    assert!(matches!(error, SyncError::SnapshotOverflow { limit: 2 }), "{error}");
    assert_eq!(there(&state, "a").await.len(), 2);
}

/// Covers behaviour 208.
pub async fn pairs_of_tenant_and_key_do_not_collide<F: CoordinationFactory>(place: &F) {
    let state = presence(place).await;
    let pairs = [("a.b", "c"), ("a", "b.c"), ("a", "b"), ("a=2Eb", "c"), ("*", ">"), ("a ", "b")];
    for (tenant, name) in pairs {
        state.upsert(&of(tenant, name), json!([tenant, name])).await.unwrap();
    }
    for (tenant, name) in pairs {
        let entries = state.snapshot(&key(tenant), name).await.unwrap().entries;
        assert!(entries.contains(&(key(name), json!([tenant, name]))), "{tenant:?} {name:?}");
    }
}

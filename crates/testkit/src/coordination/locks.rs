//! Locks: one holder, a fence that only grows, an end.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use surefoot_sync_core::{Coordinator as _, Key, Lock, Mutex, MutexSettings};
use surefoot_worker::coordinate::{LockCx, LockError, with_lock};

use super::{CoordinationFactory, eventually, id, key, steadily};

async fn locks<F: CoordinationFactory>(place: &F) -> Arc<dyn Mutex> {
    let settings = MutexSettings::new(id("locks")).ttl(Duration::from_secs(600)).unwrap();
    place.handle().await.mutex(settings).await.unwrap()
}

/// Held for a second.
async fn fleeting<F: CoordinationFactory>(place: &F) -> Arc<dyn Mutex> {
    let settings = MutexSettings::new(id("fleeting")).ttl(Duration::from_secs(1)).unwrap();
    place.handle().await.mutex(settings).await.unwrap()
}

async fn take(mutex: &Arc<dyn Mutex>, resource: &Key) -> Lock {
    eventually("the lock", async || mutex.try_acquire(resource).await.unwrap()).await
}

/// Of many who ask at once, one gets it; another lock is free all the while.
pub async fn a_lock_has_one_holder<F: CoordinationFactory>(place: &F) {
    let (mutex, door) = (locks(place).await, key("door"));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (mutex, door) = (locks(place).await, door.clone());
        asking.spawn(async move { mutex.try_acquire(&door).await.unwrap() });
    }
    let taken: Vec<Lock> = asking.join_all().await.into_iter().flatten().collect();
    let [held] = taken.as_slice() else { unreachable!("{} holders", taken.len()) };
    assert!(mutex.try_acquire(&key("window")).await.unwrap().is_some());
    assert!(mutex.release(held).await.unwrap());
    assert!(mutex.try_acquire(&door).await.unwrap().is_some());
    assert!(!mutex.release(held).await.unwrap(), "it is another's now");
}

/// Covers behaviour 205.
pub async fn an_extension_keeps_the_fence<F: CoordinationFactory>(place: &F) {
    let (mutex, door) = (locks(place).await, key("door"));
    let first = take(&mutex, &door).await;
    let extended = mutex.extend(&first).await.unwrap().unwrap();
    assert_eq!(extended.fence, first.fence);
    assert!(mutex.release(&extended).await.unwrap());
    let second = take(&mutex, &door).await;
    assert!(second.fence > first.fence);
    for stale in [&first, &extended] {
        assert_eq!(mutex.extend(stale).await.unwrap(), None);
        assert!(!mutex.release(stale).await.unwrap());
    }
    assert!(mutex.extend(&second).await.unwrap().is_some(), "what is stale changed nothing");
}

/// Covers field fault 158.
pub async fn a_lock_that_was_not_extended_is_free_again<F: CoordinationFactory>(place: &F) {
    let (mutex, door) = (fleeting(place).await, key("door"));
    let paused = take(&mutex, &door).await;
    let next = take(&fleeting(place).await, &door).await;
    assert!(next.fence > paused.fence);
    assert_eq!(mutex.extend(&paused).await.unwrap(), None);
    assert!(!mutex.release(&paused).await.unwrap());
}

/// Covers field fault 159.
pub async fn fences_only_grow<F: CoordinationFactory>(place: &F) {
    let (mutex, door) = (fleeting(place).await, key("door"));
    let mut last = 0;
    for round in 0..6 {
        let lock = take(&mutex, &door).await;
        assert!(lock.fence > last);
        last = lock.fence;
        // Given up, or left to expire.
        if round % 3 != 2 {
            mutex.release(&lock).await.unwrap();
        }
    }
}

/// Covers behaviour 208.
/// Covers field fault 156.
pub async fn keys_with_odd_characters_are_different_locks<F: CoordinationFactory>(place: &F) {
    let mutex = locks(place).await;
    for name in super::jobs::ODD_KEYS {
        let lock = mutex.try_acquire(&key(name)).await.unwrap();
        assert!(lock.is_some(), "{name:?} is taken already");
    }
}

/// Covers behaviour 206.
pub async fn work_under_a_lock_passes_its_error_on_and_gives_the_lock_up<F: CoordinationFactory>(
    place: &F,
) {
    let (mutex, door) = (locks(place).await, key("door"));
    let failed = with_lock(&mutex, &door, async |_| Err::<(), _>("no paper")).await;
    assert!(matches!(failed, Err(LockError::Work("no paper"))));
    let lock = mutex.try_acquire(&door).await.unwrap().unwrap();
    assert!(mutex.release(&lock).await.unwrap());

    let panicking = mutex.clone();
    let task = tokio::spawn(async move {
        let door = key("door");
        let work = async |cx: LockCx| {
            assert!(cx.lost().is_canceled(), "work that panics");
            Ok::<(), &str>(())
        };
        with_lock(&panicking, &door, work).await
    });
    assert!(task.await.is_err(), "it panicked");
    take(&mutex, &door).await;
    let (other, window) = (locks(place).await, key("window"));
    let work = async |cx: LockCx| {
        let inner = mutex.try_acquire(&key("window")).await.unwrap();
        Ok::<_, &str>((cx.fence(), inner))
    };
    let (fence, inner) = with_lock(&other, &window, work).await.unwrap();
    assert!(fence > 0 && inner.is_none());
}

/// The lock is extended for as long as the work takes.
pub async fn work_that_outlives_its_lock_time_keeps_the_lock<F: CoordinationFactory>(place: &F) {
    let (mutex, other, door) = (fleeting(place).await, fleeting(place).await, key("door"));
    let ttl = mutex.settings().ttl;
    let work = async |cx: LockCx| {
        let mut taken = 0;
        let steady = steadily(2 * ttl, ttl / 3, async || {
            taken += usize::from(other.try_acquire(&key("door")).await.unwrap().is_some());
        });
        let steady = steady.await;
        assert!(!steady || (taken == 0 && !cx.lost().is_canceled()), "{taken} others held it");
        Ok::<_, &str>(steady)
    };
    let held =
        async || with_lock(&mutex, &door, work).await.is_ok_and(|steady| steady).then_some(());
    eventually("a steady round", held).await;
    take(&other, &door).await;
}

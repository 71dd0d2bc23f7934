//! Locks with tries, and work under a lock.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::{Cancel, CancelSource};
use surefoot_sync_core::{Key, Lock, Mutex, SyncError};
use tokio::time::Instant;

/// How often a lock is tried for, and how far apart. Ten times, 200 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tries {
    /// At least one is made.
    pub count: u32,
    /// Between two tries, and up to half as much again by chance.
    pub pause: Duration,
}

impl Default for Tries {
    fn default() -> Self {
        Self { count: 10, pause: Duration::from_millis(200) }
    }
}

/// Takes a lock, trying again while somebody holds it; `None` if it stayed so. Cancel safe but for a lock that nobody
/// knows of, which expires.
///
/// # Errors
/// Those of [`Mutex::try_acquire`].
pub async fn acquire(
    mutex: &dyn Mutex,
    resource: &Key,
    tries: Tries,
) -> Result<Option<Lock>, SyncError> {
    Ok(acquire_since(mutex, resource, tries).await?.map(|(lock, _)| lock))
}

/// With the instant from which its time counts for the holder: before it was asked for, so that by the holder's own
/// clock the lock ends early rather than late.
async fn acquire_since(
    mutex: &dyn Mutex,
    resource: &Key,
    tries: Tries,
) -> Result<Option<(Lock, Instant)>, SyncError> {
    let mut left = tries.count.max(1);
    loop {
        let since = Instant::now();
        if let Some(lock) = mutex.try_acquire(resource).await? {
            return Ok(Some((lock, since)));
        }
        left -= 1;
        if left == 0 {
            return Ok(None);
        }
        tokio::time::sleep(tries.pause.mul_f64(1.0 + fastrand::f64() / 2.0)).await;
    }
}

/// Work under a lock did not end well.
#[derive(Debug, thiserror::Error)]
pub enum LockError<E> {
    /// Somebody else holds the lock; nothing was done.
    #[error("somebody else holds the lock on {0}")]
    Busy(Key),
    /// The lock could not be asked for; nothing was done.
    #[error("the lock cannot be taken")]
    Unavailable(#[source] SyncError),
    /// The work's own error. The lock was given up.
    #[error(transparent)]
    Work(E),
}

/// What work under a lock knows of it.
#[derive(Debug, Clone)]
pub struct LockCx {
    fence: u64,
    lost: Cancel,
}

impl LockCx {
    /// For the write that the lock protects, which refuses a smaller one.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Fires when the lock is lost or may be: stop then. Its holder may still be too slow to see it; the fence is what
    /// protects.
    #[must_use]
    pub fn lost(&self) -> &Cancel {
        &self.lost
    }
}

/// Does work under a lock, which is extended meanwhile and given up however the work ends, also when it panics or the
/// call is dropped.
///
/// # Errors
/// [`LockError`]; the work's own error is passed on.
pub async fn with_lock<T, E, F, Fut>(
    mutex: &Arc<dyn Mutex>,
    resource: &Key,
    work: F,
) -> Result<T, LockError<E>>
where
    F: FnOnce(LockCx) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let taken = acquire_since(&**mutex, resource, Tries::default()).await;
    let taken = taken.map_err(LockError::Unavailable)?;
    let (lock, since) = taken.ok_or_else(|| LockError::Busy(resource.clone()))?;
    let lost = CancelSource::default();
    let cx = LockCx { fence: lock.fence, lost: lost.observer() };
    let ttl = mutex.settings().ttl;
    let mut held = Held { mutex: mutex.clone(), lock: Some(lock), ends: since + ttl };
    let work = work(cx);
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            () = tokio::time::sleep(ttl / 3), if held.lock.is_some() => {}
        }
        // An extension that is under way is waited for: it has to be known what to give up.
        let done = {
            let extend = held.extend();
            tokio::pin!(extend);
            tokio::select! {
                biased;
                () = &mut extend => None,
                done = &mut work => {
                    extend.await;
                    Some(done)
                }
            }
        };
        if held.lock.is_none() {
            lost.fire();
        }
        if let Some(done) = done {
            break done;
        }
    };
    held.give_up().await;
    done.map_err(LockError::Work)
}

struct Held {
    mutex: Arc<dyn Mutex>,
    /// `None` once it is given up or lost.
    lock: Option<Lock>,
    /// By the holder's clock.
    ends: Instant,
}

impl Held {
    async fn extend(&mut self) {
        let Some(lock) = &self.lock else { return };
        let asked = Instant::now();
        match tokio::time::timeout_at(self.ends, self.mutex.extend(lock)).await {
            Ok(Ok(Some(lock))) => {
                self.lock = Some(lock);
                self.ends = asked + self.mutex.settings().ttl;
            }
            // There is time left to ask again.
            Ok(Err(_)) if Instant::now() < self.ends => {}
            Ok(Ok(None) | Err(_)) | Err(_) => self.lock = None,
        }
    }

    async fn give_up(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        if let Err(error) = self.mutex.release(&lock).await {
            tracing::debug!(%error, "a lock was not released; it expires");
        }
    }
}

/// A panic or a dropped call: it is given up beside.
impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lock), Ok(runtime)) = (self.lock.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let mutex = self.mutex.clone();
        runtime.spawn(async move { mutex.release(&lock).await });
    }
}

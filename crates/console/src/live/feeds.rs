//! One task per thing that is looked at, for as long as somebody looks.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Between two looks at the store.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The latest of each thing that somebody looks at.
pub(crate) struct Feeds<K, V> {
    open: Mutex<HashMap<K, watch::Sender<Option<V>>>>,
}

impl<K, V> Default for Feeds<K, V> {
    fn default() -> Self {
        Self { open: Mutex::new(HashMap::new()) }
    }
}

impl<K, V> Feeds<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: PartialEq + Send + Sync + 'static,
{
    /// Follows a thing; `look` reads it, and yields nothing where it cannot be read just now. What is known already
    /// counts as new.
    pub(crate) fn follow<F, R>(self: &Arc<Self>, key: K, look: F) -> watch::Receiver<Option<V>>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Option<V>> + Send,
    {
        let mut open = self.open();
        if let Some(sender) = open.get(&key) {
            let mut receiver = sender.subscribe();
            if receiver.borrow().is_some() {
                receiver.mark_changed();
            }
            return receiver;
        }
        let (sender, receiver) = watch::channel(None);
        open.insert(key.clone(), sender.clone());
        drop(open);
        let feeds = Arc::clone(self);
        tokio::spawn(async move {
            while feeds.is_wanted(&key, &sender) {
                if let Some(seen) = look().await {
                    sender.send_if_modified(|known| {
                        let is_new = known.as_ref() != Some(&seen);
                        if is_new {
                            *known = Some(seen);
                        }
                        is_new
                    });
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        receiver
    }

    /// Whether somebody looks; if not, the thing is forgotten. Nobody can begin to look in between.
    fn is_wanted(&self, key: &K, sender: &watch::Sender<Option<V>>) -> bool {
        let mut open = self.open();
        let is_wanted = sender.receiver_count() > 0;
        if !is_wanted {
            open.remove(key);
        }
        is_wanted
    }

    fn open(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<Option<V>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A thing that changes with each look.
    fn counted(looks: &Arc<AtomicU32>) -> impl Fn() -> std::future::Ready<Option<u32>> + use<> {
        let looks = Arc::clone(looks);
        move || std::future::ready(Some(looks.fetch_add(1, Ordering::Relaxed)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_who_look_at_the_same_ask_once() {
        let (feeds, looks) = (Arc::new(Feeds::default()), Arc::new(AtomicU32::new(0)));
        let mut all: Vec<_> = (0..100).map(|_| feeds.follow("a", counted(&looks))).collect();
        for receiver in &mut all {
            receiver.changed().await.unwrap();
        }
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        // Whoever comes later is told at once.
        let mut late = feeds.follow("a", counted(&looks));
        late.changed().await.unwrap();
        assert_eq!(*late.borrow(), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_looks_where_nobody_follows() {
        let (feeds, looks) = (Arc::new(Feeds::default()), Arc::new(AtomicU32::new(0)));
        let mut receiver = feeds.follow("a", counted(&looks));
        receiver.changed().await.unwrap();
        drop(receiver);
        while !feeds.open().is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let before = looks.load(Ordering::Relaxed);
        tokio::time::sleep(10 * LOOK_EVERY).await;
        assert_eq!(looks.load(Ordering::Relaxed), before);
    }
}

//! Who has which connection, and who has to go when there are too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The connections of a server.
pub(super) struct Places {
    max: usize,
    taken: Mutex<Taken>,
    /// Somebody left, or became idle.
    changed: Notify,
}

#[derive(Default)]
struct Taken {
    /// Numbers connections, and puts what happens to them in order.
    next: u64,
    by_number: HashMap<u64, Holder>,
}

struct Holder {
    /// Since when it is idle; absent while a request is answered.
    idle_since: Option<u64>,
    task: Option<AbortHandle>,
}

impl Taken {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn longest_idle(&self) -> Option<u64> {
        let idle = self.by_number.iter().filter_map(|(number, it)| Some((it.idle_since?, *number)));
        idle.min().map(|(_, number)| number)
    }
}

impl Places {
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(1), taken: Mutex::default(), changed: Notify::new() }
    }

    /// Completes when one more connection can be had: there is a free place, or an idle connection to be closed.
    pub(super) async fn vacant(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let taken = self.taken();
                if taken.by_number.len() < self.max || taken.longest_idle().is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Takes a place; of too many, the one that has been idle for longest is closed.
    pub(super) fn take(self: &Arc<Self>) -> Place {
        let mut taken = self.taken();
        if taken.by_number.len() >= self.max
            && let Some(number) = taken.longest_idle()
            && let Some(holder) = taken.by_number.remove(&number)
            && let Some(task) = holder.task
        {
            task.abort();
        }
        let number = taken.next();
        taken.by_number.insert(number, Holder { idle_since: Some(number), task: None });
        Place(Handle { number, places: Arc::clone(self) })
    }

    /// What is ended when the place is needed.
    pub(super) fn belongs_to(&self, number: u64, task: AbortHandle) {
        if let Some(holder) = self.taken().by_number.get_mut(&number) {
            holder.task = Some(task);
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct Handle {
    number: u64,
    places: Arc<Places>,
}

impl Handle {
    fn set_idle(&self, is_idle: bool) {
        let mut taken = self.places.taken();
        let since = taken.next();
        if let Some(holder) = taken.by_number.get_mut(&self.number) {
            holder.idle_since = is_idle.then_some(since);
        }
    }
}

/// The place of one connection; dropped, it is free.
pub(super) struct Place(Handle);

impl Place {
    pub(super) const fn number(&self) -> u64 {
        self.0.number
    }

    /// A request is answered, for as long as the answer lives.
    pub(super) fn answering(&self) -> Answering {
        self.0.set_idle(false);
        Answering(self.0.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.places.taken().by_number.remove(&self.0.number);
        self.0.places.changed.notify_one();
    }
}

/// A request that is being answered; dropped, its connection is idle.
pub(super) struct Answering(Handle);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set_idle(true);
        self.0.places.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_was_idle_for_longest_goes_first() {
        let places = Arc::new(Places::new(2));
        let (first, second) = (Places::take(&places), Places::take(&places));
        let answering = first.answering();
        let third = Places::take(&places);
        let left = |place: &Place| places.taken().by_number.contains_key(&place.number());
        assert_eq!([left(&first), left(&second), left(&third)], [true, false, true]);
        drop(answering);
        let _fourth = Places::take(&places);
        assert_eq!([left(&first), left(&third)], [true, false]);
    }

    #[tokio::test]
    async fn a_server_with_nothing_but_busy_connections_waits() {
        let places = Arc::new(Places::new(1));
        let only = Places::take(&places);
        let answering = only.answering();
        let vacant = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.vacant().await }
        });
        tokio::task::yield_now().await;
        assert!(!vacant.is_finished());
        drop(answering);
        vacant.await.unwrap();
    }
}

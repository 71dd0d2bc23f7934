//! What one resource holds.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{
    DeadLetter, Delivery, Depth, Key, Submitted, TopicMessage, Verdict, WorkId, WorkSettings,
};
use tokio::time::Instant;

pub(in crate::broker) type Works = BTreeMap<String, Items>;

#[derive(Debug, Default)]
pub(in crate::broker) struct Items {
    last: u64,
    /// By their place in line.
    items: BTreeMap<u64, Item>,
    pub(super) dead: Vec<DeadLetter>,
    /// What was sent under which key, and when.
    known: BTreeMap<Key, (WorkId, Instant)>,
    pub(super) paused: bool,
    /// Up to which message of its topic a group has taken in.
    pub(super) fed: u64,
}

#[derive(Debug, Clone)]
struct Item {
    id: WorkId,
    key: Option<Key>,
    data: Value,
    /// Items of one lane are taken one after the other.
    lane: Option<u16>,
    /// Attempts that began.
    spent: u32,
    generation: u32,
    state: State,
    stored: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Has no place in line before an instant.
    Later(Instant),
    /// Stands in line, and is not taken before an instant.
    InLine(Instant),
    Held(Instant),
}

/// What is to be stored.
#[derive(Debug, Clone)]
pub(super) struct New {
    pub(super) id: Option<WorkId>,
    pub(super) key: Option<Key>,
    pub(super) known_by: Option<Key>,
    pub(super) data: Value,
    pub(super) lane: Option<u16>,
    pub(super) due: Instant,
}

impl New {
    pub(super) fn size_bytes(&self) -> usize {
        size_bytes(&self.data)
    }
}

fn size_bytes(data: &Value) -> usize {
    data.to_string().len()
}

impl Items {
    /// `None` if it is full.
    pub(super) fn store(
        &mut self,
        new: New,
        joins: bool,
        settings: &WorkSettings,
    ) -> Option<Submitted> {
        let now = Instant::now();
        self.known.retain(|_, (_, sent)| now.duration_since(*sent) < settings.dedupe_window);
        if let Some((id, _)) = new.known_by.as_ref().and_then(|key| self.known.get(key)) {
            let stored = self.items.values().any(|item| item.id == *id);
            return Some(Submitted::Duplicate(stored.then(|| id.clone())));
        }
        let same = |item: &&Item| joins && item.key == new.key || Some(&item.id) == new.id.as_ref();
        if let Some(item) = self.items.values().find(same) {
            return Some(Submitted::Joined(item.id.clone()));
        }
        // The last tenth is kept free, so that what is held can be retried.
        if self.bytes() >= settings.stored_max_bytes / 10 * 9 {
            return None;
        }
        let place = self.next_place();
        let id = new.id.unwrap_or_else(|| WorkId::new(format!("m{place}")));
        if let Some(key) = new.known_by {
            self.known.insert(key, (id.clone(), now));
        }
        let state = if new.due <= now { State::InLine(new.due) } else { State::Later(new.due) };
        let (key, data, lane) = (new.key, new.data, new.lane);
        let (spent, generation, stored) = (0, 0, now);
        let item = Item { id: id.clone(), key, data, lane, spent, generation, state, stored };
        self.items.insert(place, item);
        Some(Submitted::Stored(id))
    }

    /// Takes what is due, and tells when to look again if that is nothing.
    pub(super) fn take(
        &mut self,
        max: usize,
        settings: &WorkSettings,
        since: Timestamp,
    ) -> (Vec<Delivery>, Option<Instant>) {
        let now = Instant::now();
        self.line_up(now);
        if self.paused {
            return (Vec::new(), None);
        }
        let held = |item: &&Item| matches!(item.state, State::Held(until) if until > now);
        let held = self.items.values().filter(held).count();
        let room = usize::try_from(settings.held_max).unwrap_or(usize::MAX).saturating_sub(held);
        let mut lanes = Vec::new();
        let mut due = Vec::new();
        for (place, item) in &self.items {
            let free = match item.state {
                State::Later(_) => continue,
                State::InLine(at) | State::Held(at) => at <= now,
            };
            let first = item.lane.is_none_or(|lane| !lanes.contains(&lane));
            lanes.extend(item.lane);
            if free && first {
                due.push(*place);
            }
        }
        let mut taken = Vec::new();
        for place in due {
            if taken.len() >= max.min(room) {
                break;
            }
            taken.extend(self.deliver(place, now, settings, since));
        }
        let next = self.items.values().map(|item| match item.state {
            State::Later(at) | State::InLine(at) | State::Held(at) => at,
        });
        (taken, next.filter(|at| *at > now).min())
    }

    /// What was to come later gets its place in line when its time has come.
    fn line_up(&mut self, now: Instant) {
        let later = self.items.iter().filter_map(|(place, item)| match item.state {
            State::Later(at) if at <= now => Some((at, *place)),
            State::Later(_) | State::InLine(_) | State::Held(_) => None,
        });
        let mut later: Vec<(Instant, u64)> = later.collect();
        later.sort();
        for (at, place) in later {
            if let Some(item) = self.items.remove(&place) {
                let place = self.next_place();
                self.items.insert(place, Item { state: State::InLine(at), ..item });
            }
        }
    }

    fn deliver(
        &mut self,
        place: u64,
        now: Instant,
        settings: &WorkSettings,
        since: Timestamp,
    ) -> Option<Delivery> {
        let item = self.items.get_mut(&place)?;
        if item.spent >= settings.attempts_max {
            let item = self.items.remove(&place)?;
            self.keep_dead(item, Verdict::HOLDER_LOST.to_owned(), since);
            return None;
        }
        item.spent += 1;
        item.state = State::Held(now + settings.ack_wait);
        Some(Delivery {
            id: item.id.clone(),
            key: item.key.clone(),
            data: item.data.clone(),
            attempt: item.spent,
            generation: item.generation,
            ticket: place.to_string(),
        })
    }

    pub(super) fn hold(&mut self, delivery: &Delivery, span: Duration) {
        if let Some(item) = place(delivery).and_then(|place| self.items.get_mut(&place)) {
            item.state = State::Held(Instant::now() + span);
        }
    }

    pub(super) fn remove(&mut self, delivery: &Delivery) -> bool {
        self.taken_out(delivery).is_some()
    }

    /// In a lane the item keeps its place, and nobody overtakes it.
    pub(super) fn retry(&mut self, delivery: &Delivery, wait: Duration) -> bool {
        let at = Instant::now() + wait;
        let Some(mut item) = self.taken_out(delivery) else { return false };
        let stays = place(delivery).filter(|_| item.lane.is_some());
        item.state = if stays.is_some() { State::InLine(at) } else { State::Later(at) };
        let place = stays.unwrap_or_else(|| self.next_place());
        self.items.insert(place, item);
        true
    }

    pub(super) fn resubmit(&mut self, delivery: &Delivery, wait: Duration, data: Value) -> bool {
        let state = State::Later(Instant::now() + wait);
        let Some(item) = self.taken_out(delivery) else { return false };
        let generation = item.generation + 1;
        let place = self.next_place();
        self.items.insert(place, Item { state, data, generation, spent: 0, ..item });
        true
    }

    pub(super) fn bury(&mut self, delivery: &Delivery, reason: String, since: Timestamp) -> bool {
        let Some(item) = self.taken_out(delivery) else { return false };
        self.keep_dead(item, reason, since);
        true
    }

    fn keep_dead(&mut self, item: Item, reason: String, since: Timestamp) {
        let place = self.next_place();
        let Item { id, key, data, spent: attempts, .. } = item;
        self.dead.push(DeadLetter { id, key, data, attempts, reason, since, place });
    }

    fn taken_out(&mut self, delivery: &Delivery) -> Option<Item> {
        self.items.remove(&place(delivery)?)
    }

    /// What a topic holds behind what was taken in, whatever the room for other work is.
    pub(super) fn feed<'a>(&mut self, messages: impl Iterator<Item = &'a TopicMessage>) {
        let now = Instant::now();
        for message in messages {
            self.fed = message.cursor.seq();
            let item = Item {
                id: WorkId::new(self.fed.to_string()),
                key: Some(message.tenant.clone()),
                data: message.data.clone(),
                lane: None,
                spent: 0,
                generation: 0,
                state: State::InLine(now),
                stored: now,
            };
            let place = self.next_place();
            self.items.insert(place, item);
        }
    }

    pub(super) fn depth(&self, at: impl Fn(Instant) -> Timestamp) -> Depth {
        let now = Instant::now();
        let held = |item: &&Item| matches!(item.state, State::Held(until) if until > now);
        let held = count(self.items.values().filter(held).count());
        Depth {
            waiting: count(self.items.len()) - held,
            held,
            dead: count(self.dead.len()),
            bytes: self.bytes(),
            oldest: self.items.values().map(|item| item.stored).min().map(&at),
            now: at(now),
            paused: self.paused,
        }
    }

    fn bytes(&self) -> u64 {
        count(self.items.values().map(|item| size_bytes(&item.data)).sum())
    }

    fn next_place(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

fn place(delivery: &Delivery) -> Option<u64> {
    delivery.ticket.parse().ok()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

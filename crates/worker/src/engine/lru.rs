//! A small bounded cache.

use std::collections::HashMap;
use std::hash::Hash;

/// Forgets what was not used for longest once entries or their weight are over their limits.
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, Entry<V>>,
    max_entries: usize,
    max_weight: u64,
    weight: u64,
    uses: u64,
}

struct Entry<V> {
    value: V,
    weight: u64,
    used: u64,
}

impl<K: Hash + Eq + Copy, V> Lru<K, V> {
    pub(crate) fn new(max_entries: usize, max_weight: u64) -> Self {
        Self { entries: HashMap::new(), max_entries, max_weight, weight: 0, uses: 0 }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<&V> {
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.uses;
        Some(&entry.value)
    }

    /// Takes a value out.
    pub(crate) fn take(&mut self, key: K) -> Option<V> {
        let entry = self.entries.remove(&key)?;
        self.weight -= entry.weight;
        Some(entry.value)
    }

    /// Keeps a value; one that is over the limit by itself is not kept.
    pub(crate) fn put(&mut self, key: K, value: V, weight: u64) {
        self.take(key);
        if weight > self.max_weight || self.max_entries == 0 {
            return;
        }
        while self.entries.len() >= self.max_entries || self.weight + weight > self.max_weight {
            let oldest =
                self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { break };
            self.take(oldest);
        }
        self.uses += 1;
        self.weight += weight;
        self.entries.insert(key, Entry { value, weight, used: self.uses });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut cache = Lru::new(2, 100);
        cache.put(1, 'a', 10);
        cache.put(2, 'b', 10);
        assert_eq!(cache.get(1), Some(&'a'));
        cache.put(3, 'c', 10);
        let left = [1, 2, 3].map(|key| cache.get(key).copied());
        assert_eq!(left, [Some('a'), None, Some('c')]);
    }

    #[test]
    fn weight_is_bounded_too() {
        let mut cache = Lru::new(10, 100);
        cache.put(1, 'a', 60);
        cache.put(2, 'b', 60);
        cache.put(3, 'c', 101);
        assert_eq!([1, 2, 3].map(|key| cache.get(key).copied()), [None, Some('b'), None]);
        assert_eq!((cache.take(2), cache.weight), (Some('b'), 0));
    }
}

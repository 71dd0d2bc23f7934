//! Chance that can be repeated.

/// A number that depends on a seed and a place, and looks like chance: the finaliser of splitmix64.
pub(crate) fn roll(seed: u64, place: &[u64]) -> u64 {
    place.iter().fold(seed, |state, part| {
        let mut bits = state ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)).wrapping_add(0x9e37_79b9_7f4a_7c15)
    })
}

/// Numbers in a row.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// From 0 up to, and without, a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = roll(self.0, &[1]);
        (self.0 >> 11) % limit.max(1)
    }

    /// Between minus a limit and the limit.
    pub(crate) fn signed(&mut self, limit: u64) -> i64 {
        let number = self.below(limit.saturating_mul(2).saturating_add(1));
        i64::try_from(number).unwrap_or(i64::MAX).saturating_sub_unsigned(limit)
    }

    /// The numbers below a limit, each once, in an order that looks like chance.
    pub(crate) fn shuffled(&mut self, limit: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..limit).collect();
        for last in (1..limit).rev() {
            let other = self.below(last as u64 + 1);
            numbers.swap(last, usize::try_from(other).unwrap_or(last));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_has_every_number_once() {
        for limit in [0, 1, 2, 1_000] {
            let mut numbers = Dice(7).shuffled(limit);
            let is_sorted = numbers.is_sorted();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..limit).collect::<Vec<_>>());
            assert!(limit < 1_000 || !is_sorted);
        }
    }
}

//! Stretches of time.

use serde::{Deserialize, Serialize};
use surefoot_kernel_core::Timestamp;

/// The instants behind one and up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Not part of it.
    pub after: Timestamp,
    /// The last of it.
    pub until: Timestamp,
}

impl Span {
    const fn is_empty(&self) -> bool {
        self.after.micros() >= self.until.micros()
    }

    /// What of it lies in none of these, which are in order and apart.
    #[must_use]
    pub fn without(self, others: &[Self]) -> Vec<Self> {
        let (mut left, mut rest) = (Vec::new(), self);
        for other in others {
            let before = Self { until: rest.until.min(other.after), ..rest };
            if !before.is_empty() {
                left.push(before);
            }
            rest.after = rest.after.max(other.until);
        }
        if !rest.is_empty() {
            left.push(rest);
        }
        left
    }

    /// These and it, in order and apart.
    #[must_use]
    pub fn joined_with(self, others: &[Self]) -> Vec<Self> {
        let mut all: Vec<Self> = others.iter().copied().chain([self]).collect();
        all.sort_by_key(|span| span.after);
        let mut joined: Vec<Self> = Vec::with_capacity(all.len());
        for span in all {
            match joined.last_mut().filter(|last| last.until >= span.after) {
                Some(last) => last.until = last.until.max(span.until),
                None => joined.push(span),
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span((after, until): (i64, i64)) -> Span {
        Span { after: Timestamp::from_micros(after), until: Timestamp::from_micros(until) }
    }

    fn has(spans: &[Span], at: i64) -> bool {
        let at = Timestamp::from_micros(at);
        spans.iter().any(|span| span.after < at && at <= span.until)
    }

    proptest! {
        #[test]
        fn a_span_is_cut_and_joined_instant_by_instant(
            parts in proptest::collection::vec((0_i64..30, 1_i64..8), 0..6),
            new in (0_i64..30, 0_i64..20),
        ) {
            let of = |(after, length): (i64, i64)| span((after, after + length));
            let new = of(new);
            let known = parts.into_iter().fold(Vec::new(), |all, it| of(it).joined_with(&all));
            let (left, all) = (new.without(&known), new.joined_with(&known));
            for at in 0..60 {
                prop_assert_eq!(has(&left, at), has(&[new], at) && !has(&known, at));
                prop_assert_eq!(has(&all, at), has(&[new], at) || has(&known, at));
            }
            prop_assert!(all.windows(2).all(|pair| pair[0].until < pair[1].after));
        }
    }
}

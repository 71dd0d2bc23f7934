//! A bar in a row: a part of a whole, in thousandths.

/// From where to where, in thousandths of the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) x: i64,
    pub(crate) width: i64,
    pub(crate) tone: &'static str,
}

impl Span {
    /// `from` to `to` inside of `start` to `end`; never so narrow that it cannot be seen.
    pub(crate) fn of((from, to): (i64, i64), (start, end): (i64, i64), tone: &'static str) -> Self {
        let x = share(from.saturating_sub(start), end.saturating_sub(start)).min(994);
        let until = share(to.saturating_sub(start), end.saturating_sub(start));
        Self { x, width: (until - x).max(6), tone }
    }
}

/// A part of a whole in thousandths, from 0 to 1,000.
pub(crate) fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    let part = i128::from(part.clamp(0, whole));
    i64::try_from(part * 1_000 / i128::from(whole)).unwrap_or(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_stays_inside_and_can_be_seen() {
        let of = |from, to| {
            let span = Span::of((from, to), (1_000, 2_000), "good");
            (span.x, span.width)
        };
        assert_eq!(of(1_000, 2_000), (0, 1_000));
        assert_eq!(of(1_250, 1_500), (250, 250));
        assert_eq!(of(2_000, 2_000), (994, 6));
        assert_eq!(of(0, i64::MAX), (0, 1_000));
        assert_eq!(share(5, 0), 0);
        assert_eq!(share(i64::MAX, i64::MAX), 1_000);
    }
}

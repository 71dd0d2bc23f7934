//! Whether two stores show the same.

use surefoot_kernel_core::Timestamp;

/// What a store shows, each with a name.
pub(super) type Seen = Vec<(String, String)>;

/// Two times that are the same differ by less: a script takes far less than that, and moves clocks by far more.
const SAME_US: i64 = 90_000_000;
/// The digits of a time in microseconds, from 2001 to 2286.
const TIME_DIGITS: usize = 16;

/// What was looked at, and what is there.
pub(super) fn difference(
    (first, began): (&Seen, Timestamp),
    (second, other_began): (&Seen, Timestamp),
) -> Option<(String, String, String)> {
    for ((what, one), (other_what, other)) in first.iter().zip(second) {
        if what != other_what || !is_same((one, began.micros()), (other, other_began.micros())) {
            return Some((what.clone(), one.clone(), format!("{other_what}: {other}")));
        }
    }
    let more = first.get(second.len()).or(second.get(first.len()));
    more.map(|(what, one)| (what.clone(), one.clone(), "(one of them has it)".to_owned()))
}

fn is_same((one, began): (&str, i64), (other, other_began): (&str, i64)) -> bool {
    let (mut ones, mut others) = (parts(one), parts(other));
    loop {
        let is_same = match (ones.next(), others.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) => match (time(one), time(other)) {
                (Some(one), Some(other)) => {
                    let (one, other) =
                        (one.saturating_sub(began), other.saturating_sub(other_began));
                    one.abs_diff(other) < SAME_US.unsigned_abs()
                }
                (None, None) => one == other,
                (Some(_), None) | (None, Some(_)) => false,
            },
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            return false;
        }
    }
}

/// Words, and what stands between them.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|it: char| !it.is_ascii_alphanumeric()).flat_map(|part| {
        let word = part.trim_end_matches(|it: char| !it.is_ascii_alphanumeric());
        let (word, rest) = part.split_at(word.len());
        [word, rest]
    })
}

fn time(part: &str) -> Option<i64> {
    let is_one = part.len() == TIME_DIGITS && part.bytes().all(|it| it.is_ascii_digit());
    is_one.then(|| part.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_767_225_600_000_000;

    #[test]
    fn times_are_compared_by_their_distance_and_all_else_exactly() {
        let same = |one: &str, other: &str| is_same((one, T), (other, T + 5_000_000));
        assert!(same("at: 1767225600000000, n: 1", "at: 1767225605000001, n: 1"));
        assert!(!same("at: 1767225600000000, n: 1", "at: 1767225605000001, n: 2"));
        assert!(!same("at: 1767225600000000", "at: 1767225705000001"));
        assert!(!same("at: 1767225600000000", "at: None"));
        assert!(!same("a b", "a"));
    }
}

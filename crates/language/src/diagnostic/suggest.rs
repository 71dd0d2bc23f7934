//! "did you mean".

/// Names longer than this are not compared.
const MAX_CHARS: usize = 48;

/// The candidate that differs least from a name, if it differs little. Equal distances: the first by alphabet.
pub(crate) fn closest<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let wanted: Vec<char> = name.chars().flat_map(char::to_lowercase).take(MAX_CHARS + 1).collect();
    if wanted.len() > MAX_CHARS || wanted.is_empty() {
        return None;
    }
    let allowed = if wanted.len() <= 2 { 1 } else { wanted.len().div_ceil(3) };
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_CHARS * 4)
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            if letters.len().abs_diff(wanted.len()) > allowed {
                return None;
            }
            let away = distance(&wanted, &letters);
            (away <= allowed && away < wanted.len()).then_some((away, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn distance(one: &[char], two: &[char]) -> usize {
    let width = two.len() + 1;
    let mut older: Vec<usize> = vec![0; width];
    let mut old: Vec<usize> = (0..width).collect();
    for (i, a) in one.iter().enumerate() {
        let mut new = vec![i + 1; width];
        for (j, b) in two.iter().enumerate() {
            let replaced = old[j] + usize::from(a != b);
            let mut best = replaced.min(old[j + 1] + 1).min(new[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *b && *a == two[j - 1] {
                best = best.min(older[j - 1] + 1);
            }
            new[j + 1] = best;
        }
        older = std::mem::replace(&mut old, new);
    }
    old[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_found_and_strangers_are_not() {
        let known = ["loadItem", "sendEmail", "saveAs", "to", "if"];
        assert_eq!(closest("laodItem", known), Some("loadItem"));
        assert_eq!(closest("saveas", known), Some("saveAs"));
        assert_eq!(closest("loadItems", known), Some("loadItem"));
        assert_eq!(closest("chargeCard", known), None);
        assert_eq!(closest("x", known), None);
        assert_eq!(closest("", known), None);
        assert_eq!(closest(&"x".repeat(100), known), None);
    }
}

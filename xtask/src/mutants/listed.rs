//! The list of mutants that no test can catch, because they change nothing that anybody can see.

use super::Extent;
use super::outcomes::{Mutant, Outcomes};
use crate::failure::Failure;

/// Where the list is.
pub(super) const PLACE: &str = "docs/mutants.md";

/// Reads the rows of the table: place, mutation, and why it is equivalent.
pub(super) fn parse(text: &str) -> Result<Vec<Mutant>, Failure> {
    // The first two are the head of the table and the line below it.
    text.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect()
}

fn row(line: &str) -> Result<Mutant, Failure> {
    let cells = cells(line);
    match cells.as_slice() {
        [place, mutation, reason] if !reason.is_empty() && reason != WHY => {
            let code = |cell: &String| cell.trim_matches('`').to_owned();
            Ok(Mutant { place: code(place), mutation: code(mutation) })
        }
        _ => Err(Failure::new(format!(
            "{PLACE}: a row is a place, a mutation and the reason why it is equivalent: {line}"
        ))),
    }
}

/// The cells of a row; in a cell, a bar is written `\|`.
fn cells(line: &str) -> Vec<String> {
    let marked = line.replace("\\|", "\0");
    let inner = marked.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// What a person has to fill in.
const WHY: &str = "WHY";

fn shown(mutant: &Mutant, reason: &str) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    format!("| `{}` | `{}` | {reason} |", cell(&mutant.place), cell(&mutant.mutation))
}

/// What must change so that the list says what the pass found, a line for people each.
pub(super) fn compare(listed: &[Mutant], outcomes: &Outcomes, extent: &Extent) -> Vec<String> {
    let mut lines = Vec::new();
    for mutant in beyond(&outcomes.missed, listed) {
        let row = shown(mutant, WHY);
        lines.push(format!("missed: write a test that notices it, or add to {PLACE}\n  {row}"));
    }
    let covered = |mutant: &&&Mutant| match extent {
        Extent::Whole => true,
        Extent::Files(_) => outcomes.files.contains(mutant.file()),
        // The same change in another place of the same function may be in another part.
        Extent::Shard(..) => false,
    };
    for mutant in beyond(listed, &outcomes.missed).iter().filter(covered) {
        let row = shown(mutant, "…");
        lines.push(format!("caught now, or no longer there: take off {PLACE}\n  {row}"));
    }
    lines
}

/// Those of `some` that are not in `others`; one that is there twice needs two.
fn beyond<'a>(some: &'a [Mutant], others: &[Mutant]) -> Vec<&'a Mutant> {
    let mut left: Vec<&Mutant> = others.iter().collect();
    some.iter()
        .filter(|mutant| match left.iter().position(|other| other == mutant) {
            Some(at) => {
                left.swap_remove(at);
                false
            }
            None => true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# List\n\n| place | mutation | why it is equivalent |\n|---|---|---|\n\
                        | `a.rs: f` | `replace \\|\\| with && in f` | Both are false. |\n";

    fn mutant(file: &str) -> Mutant {
        Mutant::new(file, Some("f"), "replace || with && in f")
    }

    fn missed(files: &[&str]) -> Outcomes {
        Outcomes {
            missed: files.iter().map(|file| mutant(file)).collect(),
            files: files.iter().map(|file| (*file).to_owned()).collect(),
            ..Outcomes::default()
        }
    }

    #[test]
    fn a_row_is_read_as_it_is_shown() {
        assert_eq!(parse(LIST), Ok(vec![mutant("a.rs")]));
        let head = "| place | mutation | why |\n|---|---|---|\n";
        let row = shown(&mutant("a.rs"), "Both are false.");
        assert_eq!(parse(&format!("{head}{row}\n")), Ok(vec![mutant("a.rs")]));
    }

    #[test]
    fn a_row_without_a_reason_is_refused() {
        for reason in ["", "WHY"] {
            assert!(parse(&LIST.replace("Both are false.", reason)).is_err(), "{reason}");
        }
    }

    #[test]
    fn a_list_that_says_what_was_found_is_fine() {
        let listed = parse(LIST).unwrap();
        assert!(compare(&listed, &missed(&["a.rs"]), &Extent::Whole).is_empty());
    }

    #[test]
    fn what_was_missed_and_is_not_listed_is_to_be_added_each_time_it_occurs() {
        let listed = parse(LIST).unwrap();
        let lines = compare(&listed, &missed(&["a.rs", "a.rs"]), &Extent::Whole);
        assert_eq!(
            lines,
            ["missed: write a test that notices it, or add to docs/mutants.md\n  \
              | `a.rs: f` | `replace \\|\\| with && in f` | WHY |"]
        );
    }

    #[test]
    fn what_is_listed_and_was_not_missed_is_to_be_taken_off_where_the_pass_can_tell() {
        let listed = parse(LIST).unwrap();
        let count = |outcomes: &Outcomes, extent: &Extent| compare(&listed, outcomes, extent).len();
        let nothing = missed(&[]);
        let seen = Outcomes { files: ["a.rs".to_owned()].into(), ..Outcomes::default() };
        assert_eq!(count(&nothing, &Extent::Whole), 1);
        assert_eq!(count(&seen, &Extent::Files(vec![])), 1);
        assert_eq!(count(&nothing, &Extent::Files(vec![])), 0);
        assert_eq!(count(&seen, &Extent::Shard("0/2".to_owned(), vec![])), 0);
    }
}

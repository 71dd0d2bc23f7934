//! The list of what is over a size limit and may be for now. It only shrinks: an entry says the exact size, so
//! what grew is found, and what shrank must be written down.

use super::Finding;
use crate::failure::Failure;

/// Where the list is.
pub(super) const PLACE: &str = "xtask/over-size.txt";

/// A file or function over its limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) place: String,
    pub(super) lines: usize,
    pub(super) lines_max: usize,
}

/// An entry of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    place: String,
    lines: usize,
}

/// Reads the list: a place and its lines on each line, `#` before a remark.
pub(super) fn parse(text: &str) -> Result<Vec<Allowed>, Failure> {
    let mut allowed = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let entry = line.split_once(' ');
        let entry = entry.and_then(|(place, lines)| Some((place, lines.parse().ok()?)));
        let Some((place, lines)) = entry else {
            return Err(Failure::new(format!("{PLACE}: `{line}` is no place and number of lines")));
        };
        allowed.push(Allowed { place: place.to_owned(), lines });
    }
    Ok(allowed)
}

pub(super) fn judge(allowed: &[Allowed], over: &[Measured]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Measured { place, lines, lines_max } in over {
        match allowed.iter().find(|entry| entry.place == *place) {
            Some(entry) if entry.lines >= *lines => {}
            _ => findings
                .push(Finding::new(place, format!("has {lines} lines and may have {lines_max}"))),
        }
    }
    for entry in allowed {
        let problem = match over.iter().find(|measured| measured.place == entry.place) {
            None => format!("is within its limit: take it off {PLACE}"),
            Some(measured) if measured.lines < entry.lines => {
                format!("shrank to {} lines: write that into {PLACE}", measured.lines)
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(&entry.place, problem));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, lines: usize) -> Vec<String> {
        let over = match lines {
            0 => vec![],
            _ => vec![Measured { place: "a.rs::f".to_owned(), lines, lines_max: 70 }],
        };
        judge(&parse(list).unwrap(), &over).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_on_the_list_may_not_be_over() {
        assert_eq!(check("# nothing\n", 80), ["a.rs::f: has 80 lines and may have 70"]);
        assert!(check("a.rs::f 80\n", 80).is_empty());
    }

    #[test]
    fn what_is_on_the_list_may_not_grow_and_must_be_written_down_when_it_shrinks() {
        assert_eq!(check("a.rs::f 80", 81), ["a.rs::f: has 81 lines and may have 70"]);
        assert_eq!(
            check("a.rs::f 80", 75),
            ["a.rs::f: shrank to 75 lines: write that into xtask/over-size.txt"]
        );
        assert_eq!(
            check("a.rs::f 80", 0),
            ["a.rs::f: is within its limit: take it off xtask/over-size.txt"]
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_is_a_failure() {
        assert!(parse("a.rs::f many").is_err());
        assert!(parse("a.rs::f").is_err());
    }
}

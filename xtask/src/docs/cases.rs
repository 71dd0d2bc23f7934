//! The list of cases: what has to be shown, and what is left out.

use std::collections::BTreeMap;
use std::fmt;

use crate::failure::Failure;

/// Where the list is.
pub(super) const PLACE: &str = "xtask/cases.txt";

/// Of which list a case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Behaviour,
    Fault,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Behaviour, Self::Fault];

    /// The word in the list.
    const fn word(self) -> &'static str {
        match self {
            Self::Behaviour => "behaviour",
            Self::Fault => "fault",
        }
    }

    /// How a test names it, in one and in many.
    pub(super) const fn claimed_as(self) -> [&'static str; 2] {
        match self {
            Self::Behaviour => ["behaviours", "behaviour"],
            Self::Fault => ["field faults", "field fault"],
        }
    }
}

/// One case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) number: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.number)
    }
}

/// Every case with its sentence, and why some are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cases {
    pub(super) sentences: BTreeMap<Case, String>,
    pub(super) left_out: BTreeMap<Case, String>,
}

impl Cases {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let mut cases = Self::default();
        for (at, line) in text.lines().enumerate() {
            let wrong = |what: &str| Failure::new(format!("{PLACE}:{}: {what}: {line}", at + 1));
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (head, rest) = line.split_once(": ").ok_or_else(|| wrong("has no `: `"))?;
            let (list, named) = match head.strip_prefix("left out, ") {
                Some(named) => (&mut cases.left_out, named),
                None => (&mut cases.sentences, head),
            };
            for name in named.split(", ") {
                let case = case(name).ok_or_else(|| wrong("names no case"))?;
                if list.insert(case, rest.to_owned()).is_some() {
                    return Err(wrong("names a case a second time"));
                }
            }
        }
        let unknown = cases.left_out.keys().find(|case| !cases.sentences.contains_key(case));
        match unknown {
            Some(case) => Err(Failure::new(format!("{PLACE}: {case} is left out and unknown"))),
            None => Ok(cases),
        }
    }
}

fn case(name: &str) -> Option<Case> {
    let (word, number) = name.split_once(' ')?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
    Some(Case { kind, number: number.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_reasons_are_read() {
        let text =
            "# Head.\n\nbehaviour 1: One.\nfault 7: Seven: twice.\nleft out, fault 7: later\n";
        let cases = Cases::parse(text).unwrap();
        let fault = Case { kind: Kind::Fault, number: 7 };
        assert_eq!(cases.sentences.len(), 2);
        assert_eq!(cases.sentences[&fault], "Seven: twice.");
        assert_eq!(cases.left_out[&fault], "later");
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_with_its_place() {
        for (text, problem) in [
            ("behaviour 1", "has no `: `"),
            ("behavior 1: One.", "names no case"),
            ("behaviour 1: One.\nbehaviour 1: One.", "names a case a second time"),
            ("left out, behaviour 1: later", "behaviour 1 is left out and unknown"),
        ] {
            let failure = Cases::parse(text).unwrap_err().to_string();
            assert!(failure.contains(problem), "{failure}");
        }
    }
}

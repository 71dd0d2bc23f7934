//! What a status means: the author's word first, then the table.

use super::input::{StatusRule, Statuses};

/// What an answer means for the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It was done.
    Success,
    /// It was not done, and will not be.
    Refused,
    /// It was not done; asking again may help.
    Retry,
    /// It may have been done.
    Unclear,
}

impl Statuses {
    /// A status that stands in two lists means nothing.
    pub(super) fn contradiction(&self) -> Option<String> {
        let lists = [&self.success, &self.refused, &self.retry];
        let all: Vec<&StatusRule> = lists.into_iter().flatten().collect();
        let twice = all
            .iter()
            .enumerate()
            .find(|(at, rule)| all.iter().skip(at + 1).any(|other| other == *rule));
        twice.map(|(_, rule)| match rule {
            StatusRule::One(status) => format!("status {status} stands in `statuses` twice"),
            StatusRule::Class(class) => format!("status {class} stands in `statuses` twice"),
        })
    }

    fn said(&self, matches: impl Fn(&StatusRule) -> bool) -> Option<Meaning> {
        let lists = [
            (&self.success, Meaning::Success),
            (&self.refused, Meaning::Refused),
            (&self.retry, Meaning::Retry),
        ];
        let found = lists.into_iter().find(|(rules, _)| rules.iter().any(&matches));
        found.map(|(_, meaning)| meaning)
    }

    fn meaning(&self, status: u16, usually: impl FnOnce(u16) -> Meaning) -> Meaning {
        let one = |rule: &StatusRule| matches!(rule, StatusRule::One(it) if *it == status);
        let class = format!("{}xx", status / 100);
        let classes = |rule: &StatusRule| matches!(rule, StatusRule::Class(it) if *it == class);
        self.said(one).or_else(|| self.said(classes)).unwrap_or_else(|| usually(status))
    }

    /// For a request that must not be repeated: only what cannot be misunderstood is a no.
    pub(super) fn of_request(&self, status: u16) -> Meaning {
        self.meaning(status, |status| match status {
            200..=299 => Meaning::Success,
            429 => Meaning::Retry,
            // A request that is still being worked on, or that came too late or too early, may yet be done.
            408 | 409 | 425 => Meaning::Unclear,
            // Sent elsewhere with its body: it was not done here.
            307 | 308 | 400..=499 => Meaning::Refused,
            // Also what a gateway said: the server behind it may have done it.
            _ => Meaning::Unclear,
        })
    }

    /// For a call that may be repeated under its key.
    pub(super) fn of_call(&self, status: u16) -> Meaning {
        self.meaning(status, |status| match status {
            200..=299 => Meaning::Success,
            408 | 409 | 425 | 429 | 500..=599 => Meaning::Retry,
            _ => Meaning::Refused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_says_more_than_the_table() {
        let plain = Statuses::default();
        for (status, request, call) in [
            (200, Meaning::Success, Meaning::Success),
            (302, Meaning::Unclear, Meaning::Refused),
            (307, Meaning::Refused, Meaning::Refused),
            (402, Meaning::Refused, Meaning::Refused),
            (409, Meaning::Unclear, Meaning::Retry),
            (429, Meaning::Retry, Meaning::Retry),
            (500, Meaning::Unclear, Meaning::Retry),
            (503, Meaning::Unclear, Meaning::Retry),
        ] {
            assert_eq!(
                (plain.of_request(status), plain.of_call(status)),
                (request, call),
                "{status}"
            );
        }
        let said = Statuses {
            success: vec![StatusRule::One(404)],
            refused: vec![StatusRule::Class("5xx".to_owned())],
            retry: vec![StatusRule::One(503)],
        };
        assert_eq!(said.of_request(404), Meaning::Success);
        assert_eq!(said.of_request(500), Meaning::Refused);
        assert_eq!(said.of_request(503), Meaning::Retry);
        assert_eq!(said.contradiction(), None);
    }

    #[test]
    fn a_status_in_two_lists_is_a_contradiction() {
        let both = vec![StatusRule::One(404)];
        let odd = Statuses { success: both.clone(), refused: both, retry: Vec::new() };
        assert_eq!(odd.contradiction().unwrap(), "status 404 stands in `statuses` twice");
    }
}

//! Addresses: what one says, and how one is written. All that a person chose stands in it.

use std::fmt::Write as _;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::request::check_encoding;

/// What stands in an address as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What other pages lead here with.
const OF_EVERY_PAGE: &[&str] = &["app", "done", "unknown"];

/// The questions of an address, or the fields of a form. Blank ones count as not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pairs: Vec<(String, String)>,
    /// What was said and is not known, for the page to say so.
    pub(crate) unknown: Vec<String>,
}

impl Asked {
    /// Reads what stands behind the `?` of an address. Of one that is no text, nothing is known.
    pub(crate) fn of(encoded: &str) -> Self {
        Self::read_all(encoded).unwrap_or_else(|why| Self { unknown: vec![why], ..Self::default() })
    }

    /// Reads the body of a form: what is no text is refused, since what it was meant to be is not known.
    pub(crate) fn of_form(body: &[u8]) -> Result<Self, String> {
        let encoded = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned())?;
        Self::read_all(encoded)
    }

    fn read_all(encoded: &str) -> Result<Self, String> {
        check_encoding(encoded)?;
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(encoded).unwrap_or_default();
        let is_given = |(_, value): &(String, String)| !value.trim().is_empty();
        Ok(Self { pairs: pairs.into_iter().filter(is_given).collect(), unknown: Vec::new() })
    }

    /// Notes every question that a page does not have, and what is asked twice where only the first counts. A list that
    /// looks as if it were filtered, and is not, would mislead; to refuse an old link would leave its reader with nothing.
    pub(crate) fn only(&mut self, known: &[&str]) {
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in &self.pairs {
            let is_known = known.contains(&&**name) || OF_EVERY_PAGE.contains(&&**name);
            if !is_known || seen.contains(&&**name) && name != "state" {
                self.unknown.push(format!("{name}={value}"));
            }
            seen.push(name);
        }
    }

    /// The first of a name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let of_name = |(key, _): &&(String, String)| key == name;
        self.pairs.iter().find(of_name).map(|(_, value)| value.as_str())
    }

    /// All of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first of a name, read; what cannot be read is noted and left out.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let given = self.text(name)?.trim().to_owned();
        let known = read(&given);
        if known.is_none() {
            self.unknown.push(format!("{name}={given}"));
        }
        known
    }

    /// The same, for what reads itself.
    pub(crate) fn parse<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.read(name, |text| text.parse().ok())
    }
}

/// An address inside the console, written piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
    has_query: bool,
}

impl Address {
    /// A path, below the path that the console is mounted at.
    pub(crate) fn new(base: &str, path: &str) -> Self {
        // The root of a mounted router has no slash at its end.
        let path = if base.is_empty() || path != "/" { path } else { "" };
        Self { text: format!("{base}{path}"), has_query: false }
    }

    /// One more segment.
    pub(crate) fn segment(mut self, segment: &str) -> Self {
        let _ = write!(self.text, "/{}", utf8_percent_encode(segment, KEPT));
        self
    }

    /// A question; none for a blank value.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            let separator = if self.has_query { '&' } else { '?' };
            let value = utf8_percent_encode(value, KEPT);
            let _ = write!(self.text, "{separator}{name}={value}");
            self.has_query = true;
        }
        self
    }

    /// The same, if there is one.
    pub(crate) fn maybe(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value.as_ref()),
            None => self,
        }
    }

    /// A place in the page.
    pub(crate) fn at(mut self, id: &str) -> Self {
        let _ = write!(self.text, "#{id}");
        self
    }

    pub(crate) fn done(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_carries_any_text() {
        let address = Address::new("/ops", "/workflow").with("app", "a&b=c?#/\u{202e}\"<");
        let text = address.with("scope", "").maybe("none", None::<&str>).at("act").done();
        assert_eq!(text, "/ops/workflow?app=a%26b%3Dc%3F%23%2F%E2%80%AE%22%3C#act");
        let asked = Asked::of(text.split_once('?').unwrap().1.split_once('#').unwrap().0);
        assert_eq!(asked.text("app"), Some("a&b=c?#/\u{202e}\"<"));
        let segment = Address::new("", "/runs").segment("../x y").done();
        assert_eq!(segment, "/runs/..%2Fx%20y");
    }

    #[test]
    fn what_is_not_known_is_noted_and_left_out() {
        let mut asked = Asked::of("page=two&state=&state=failed&mode=execute");
        assert_eq!(asked.parse::<u32>("page"), None);
        assert_eq!(asked.parse::<u32>("none"), None);
        assert_eq!(asked.text("state"), Some("failed"), "a blank one is not given");
        assert_eq!(asked.unknown, ["page=two"]);
        assert_eq!(Asked::of("a=%00&&&=&b"), Asked::of("a=%00"));
    }

    #[test]
    fn what_a_page_does_not_ask_is_noted() {
        let mut asked =
            Asked::of("app=shop&stat=failed&state=failed&state=queued&scope=a&scope=b&done=x");
        asked.only(&["state", "scope"]);
        assert_eq!(asked.unknown, ["stat=failed", "scope=b"]);
    }

    #[test]
    fn what_is_no_text_is_not_guessed() {
        let asked = Asked::of("app=shop&scope=%ff");
        assert_eq!((asked.text("app"), asked.unknown.len()), (None, 1));
        for odd in [&b"reason=%ff"[..], b"reason=\xff", b"reason=%2"] {
            assert!(Asked::of_form(odd).is_err(), "{odd:?}");
        }
        assert_eq!(Asked::of_form(b"reason=a+%C3%A4").unwrap().text("reason"), Some("a ä"));
    }
}

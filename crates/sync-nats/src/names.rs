//! Names on the server: subjects, streams, message ids. Nothing that a user typed reaches the server as it is.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use surefoot_sync_core::{Namespace, ResourceId};

/// The longest part of a stream's name that is still the resource's own id.
const SLUG_MAX_BYTES: usize = 64;

/// One token of a subject. Letters, digits, `_` and `-` stay, every other byte is written in hex, and nothing is `=`:
/// so two texts never share a token, and a token can be read back.
pub(crate) fn token(text: &str) -> String {
    if text.is_empty() {
        return "=".to_owned();
    }
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            token.push(char::from(byte));
        } else {
            token.push_str(&format!("={byte:02X}"));
        }
    }
    token
}

/// The text of a token; `None` if it is none.
pub(crate) fn text_of(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(token.len()), token.bytes());
    while let Some(byte) = rest.next() {
        if byte == b'=' {
            let digits = [rest.next()?, rest.next()?];
            let upper = digits.iter().all(|it| matches!(it, b'0'..=b'9' | b'A'..=b'F'));
            let hex = std::str::from_utf8(&digits).ok().filter(|_| upper)?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
        } else if is_plain(byte) {
            bytes.push(byte);
        } else {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The name of a stream, readable as far as the id is. The true id stands in the stream's metadata.
pub(crate) fn stream(namespace: &Namespace, kind: &str, id: &ResourceId) -> String {
    format!("{namespace}_{kind}_{}", slug(id.as_str()))
}

/// The text as far as it is plain and short; where it is not, with a hash.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii() && is_plain(c as u8) { c } else { '_' };
    let slug: String = text.chars().map(plain).take(SLUG_MAX_BYTES).collect();
    if slug == text {
        return slug;
    }
    let hash = Sha256::digest(text);
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{slug}-{hash}")
}

/// Sixteen digits of hex that nobody had before.
pub(crate) fn incarnation() -> String {
    let hash = Sha256::digest(nuid::next().as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// An id of fixed length for texts of any kind.
pub(crate) fn hashed(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, so that no two lists are one text.
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    BASE64_URL_SAFE_NO_PAD.encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Covers behaviour 208.
    /// Covers field fault 156.
    #[test]
    fn no_two_texts_share_a_token_and_each_is_read_back() {
        let texts = [
            "", "=", "a", "A", "a.b", "a=2Eb", "a%2Eb", "a b", "*", ">", "ä", "\u{0}", "\r\nX: y",
            "a*b", "a>b", "日本",
        ];
        let tokens: BTreeSet<String> = texts.iter().map(|text| token(text)).collect();
        assert_eq!(tokens.len(), texts.len());
        for text in texts {
            let token = token(text);
            assert!(token.bytes().all(|byte| is_plain(byte) || byte == b'='), "{token}");
            assert_eq!(text_of(&token).as_deref(), Some(text));
        }
        assert_eq!(token("a.b/ä"), "a=2Eb=2F=C3=A4");
        for none in ["a.b", "=2", "=2e", "=FF", "ä", "==", "=+1"] {
            assert_eq!(text_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_streams_name_is_readable_and_its_own() {
        let namespace = Namespace::new("shop").unwrap();
        let name = |id: &str| stream(&namespace, "JOB", &ResourceId::new(id).unwrap());
        assert_eq!(name("mail-1"), "shop_JOB_mail-1");
        assert!(name("mail/1").starts_with("shop_JOB_mail_1-"));
        assert_ne!(name("mail/1"), name("mail.1"));
        let long = "x".repeat(65);
        assert_ne!(name(&long), name(&format!("{long}y")));
        assert_ne!(hashed(&["a", "bc"]), hashed(&["ab", "c"]));
        assert_eq!(hashed(&["a"]).len(), 43);
    }
}

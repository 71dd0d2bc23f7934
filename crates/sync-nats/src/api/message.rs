//! Messages as a stream holds them.

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::SyncError;

/// Headers by name; of several values of one name the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number; 0 if there is none.
    pub(crate) fn number<N: std::str::FromStr + Default>(&self, name: &str) -> N {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// As they go over the wire: a line for the version, then one each.
    fn parse(text: &str) -> Self {
        let lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        Self(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    pub(crate) fn of(map: Option<&HeaderMap>) -> Self {
        let all = map.into_iter().flat_map(HeaderMap::iter);
        let last = all.filter_map(|(name, values)| {
            Some((name.to_string(), values.last()?.as_str().to_owned()))
        });
        Self(last.collect())
    }
}

/// A message in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    pub(crate) seq: u64,
    pub(crate) headers: Headers,
    pub(crate) data: Vec<u8>,
    pub(crate) time: Timestamp,
}

impl Stored {
    /// The last token of its subject.
    pub(crate) fn last_token(&self) -> &str {
        self.subject.rsplit('.').next().unwrap_or_default()
    }
}

/// The same, as the server writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Raw {
    subject: String,
    seq: u64,
    #[serde(default)]
    data: String,
    #[serde(default)]
    hdrs: String,
    time: String,
}

impl Raw {
    pub(super) fn read(self) -> Result<Stored, SyncError> {
        let (subject, seq) = (self.subject, self.seq);
        let corrupt = |why: String| SyncError::Corrupt { what: format!("message {seq}"), why };
        let decode =
            |text: &str| BASE64_STANDARD.decode(text).map_err(|error| corrupt(error.to_string()));
        let headers = String::from_utf8(decode(&self.hdrs)?);
        let headers = headers.map_err(|error| corrupt(error.to_string()))?;
        Ok(Stored {
            headers: Headers::parse(&headers),
            data: decode(&self.data)?,
            time: self.time.parse().map_err(|_| corrupt(format!("its time is {}", self.time)))?,
            subject,
            seq,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_by_name() {
        let headers = Headers::parse("NATS/1.0\r\nSync-V: 1\r\nSync-Attempt: 3\r\nA: b:c\r\n\r\n");
        assert_eq!(headers.get("Sync-V"), Some("1"));
        assert_eq!(headers.get("A"), Some("b:c"));
        assert_eq!(headers.number::<u32>("Sync-Attempt"), 3);
        assert_eq!(headers.number::<u32>("Sync-Gen"), 0);
        assert_eq!(Headers::parse(""), Headers::default());
    }

    #[test]
    fn what_cannot_be_read_says_which_message_it_is() {
        let raw = |text: &str| serde_json::from_str::<Raw>(text).unwrap().read();
        let time = "2026-11-29T12:00:00.123456789Z";
        let good =
            format!("{{\"subject\":\"a.b\",\"seq\":7,\"data\":\"e30=\",\"time\":\"{time}\"}}");
        let stored = raw(&good).unwrap();
        assert_eq!((stored.last_token(), stored.data.as_slice()), ("b", b"{}".as_slice()));
        assert_eq!(stored.time.to_string(), "2026-11-29T12:00:00.123456Z");
        let bad = raw(&good.replace("e30=", "?")).unwrap_err().to_string();
        assert!(bad.starts_with("message 7 cannot be read"), "{bad}");
    }
}

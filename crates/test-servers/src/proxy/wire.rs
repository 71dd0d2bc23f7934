//! As much of PostgreSQL's protocol as the proxy needs: where messages end, and which statements are carried out.

use std::collections::HashMap;
use std::io::{self, Read};

/// Nobody sends a longer one.
const MESSAGE_MAX: usize = 1 << 30;
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;
/// What a server says that has no encryption.
pub(super) const NO_ENCRYPTION: &[u8] = b"N";
/// The last message of every answer.
pub(super) const READY: u8 = b'Z';

/// What one side says, up to where the other one has to answer.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) bytes: Vec<u8>,
    /// The statements that are carried out with it.
    pub(super) statements: Vec<String>,
}

/// The first thing that a client says: how it wants to talk.
pub(super) enum Opening {
    Encryption,
    /// The whole message.
    Startup(Vec<u8>),
}

pub(super) fn opening(from: &mut impl Read) -> io::Result<Opening> {
    let (length, head) = length(from)?;
    let body = body(from, length)?;
    let code = body.first_chunk::<4>().map(|code| i32::from_be_bytes(*code));
    let message = [&head[..], &body].concat();
    Ok(match code {
        Some(SSL_REQUEST | GSS_REQUEST) => Opening::Encryption,
        _ => Opening::Startup(message),
    })
}

/// The startup message without one of its settings.
pub(super) fn without(startup: &[u8], setting: &str) -> Vec<u8> {
    // Length and version come first.
    let (head, body) = startup.split_at(startup.len().min(8));
    let mut kept = head.get(4..).unwrap_or_default().to_vec();
    let mut words = body.split(|byte| *byte == 0);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        if !name.is_empty() && name != setting.as_bytes() {
            kept.extend([name, b"\0", value, b"\0"].concat());
        }
    }
    kept.push(0);
    let length = i32::try_from(kept.len().saturating_add(4)).unwrap_or(i32::MAX);
    [&length.to_be_bytes()[..], &kept].concat()
}

/// One message with its type.
pub(super) fn message(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    let (length, head) = length(from)?;
    let mut message = kind.to_vec();
    message.extend(head);
    message.extend(body(from, length)?);
    Ok((kind[0], message))
}

fn length(from: &mut impl Read) -> io::Result<(usize, [u8; 4])> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let length = usize::try_from(i32::from_be_bytes(head)).ok().and_then(|all| all.checked_sub(4));
    let length = length.filter(|length| *length <= MESSAGE_MAX);
    let not_one = || io::Error::new(io::ErrorKind::InvalidData, "not a message of PostgreSQL");
    Ok((length.ok_or_else(not_one)?, head))
}

fn body(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

/// What a client has prepared, by name.
#[derive(Debug, Default)]
pub(super) struct Prepared(HashMap<Vec<u8>, String>);

impl Prepared {
    /// Reads until the client waits.
    pub(super) fn unit(&mut self, from: &mut impl Read) -> io::Result<Unit> {
        let mut unit = Unit::default();
        loop {
            let (kind, message) = message(from)?;
            self.note(kind, message.get(5..).unwrap_or_default(), &mut unit);
            unit.bytes.extend(message);
            // Parse, bind, describe, execute and close wait for a sync.
            if !matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C') {
                return Ok(unit);
            }
        }
    }

    fn note(&mut self, kind: u8, body: &[u8], unit: &mut Unit) {
        let mut parts = body.split(|byte| *byte == 0);
        let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match kind {
            b'Q' => unit.statements.push(text(first)),
            b'P' => drop(self.0.insert(first.to_vec(), text(second))),
            b'B' => unit.statements.extend(self.0.get(second).cloned()),
            _ => {}
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A statement that fails as the server's own would: the transaction that it is in is aborted as well.
pub(super) fn failing(sqlstate: &str) -> Vec<u8> {
    let statement =
        format!("DO $$ BEGIN RAISE EXCEPTION 'by a test' USING ERRCODE = '{sqlstate}'; END $$\0");
    let length = i32::try_from(statement.len().saturating_add(4)).unwrap_or(i32::MAX);
    let mut message = vec![b'Q'];
    message.extend(length.to_be_bytes());
    message.extend(statement.into_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(kind: u8, body: &str) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend(i32::try_from(body.len() + 4).unwrap().to_be_bytes());
        message.extend(body.bytes());
        message
    }

    #[test]
    fn what_is_prepared_is_known_when_it_is_bound() {
        let mut prepared = Prepared::default();
        let prepare = [say(b'P', "s1\0SELECT 7\0\0\0"), say(b'D', "Ss1\0"), say(b'S', "")].concat();
        let unit = prepared.unit(&mut &*prepare).unwrap();
        assert_eq!((unit.bytes, unit.statements), (prepare, Vec::new()));
        let bind = [say(b'B', "\0s1\0\0\0"), say(b'E', "\0\0\0\0\0"), say(b'S', "")].concat();
        let unit = prepared.unit(&mut &*bind).unwrap();
        assert_eq!((unit.bytes, unit.statements), (bind, vec!["SELECT 7".to_owned()]));
        let unit = prepared.unit(&mut &*say(b'Q', "COMMIT\0")).unwrap();
        assert_eq!(unit.statements, ["COMMIT"]);
    }

    #[test]
    fn an_opening_asks_for_encryption_or_begins() {
        let ssl = [8_i32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat();
        assert!(matches!(opening(&mut &*ssl).unwrap(), Opening::Encryption));
        let startup = [8_i32.to_be_bytes(), 196_608_i32.to_be_bytes()].concat();
        let Opening::Startup(said) = opening(&mut &*startup).unwrap() else { panic!("no startup") };
        assert_eq!(said, startup);
    }

    #[test]
    fn a_startup_can_lose_a_setting() {
        let say = |body: &str| {
            let length = i32::try_from(body.len() + 8).unwrap().to_be_bytes();
            [&length[..], &196_608_i32.to_be_bytes(), body.as_bytes()].concat()
        };
        let all = say("user\0ann\0options\0-c jit=off\0database\0shop\0\0");
        assert_eq!(without(&all, "options"), say("user\0ann\0database\0shop\0\0"));
        assert_eq!(without(&all, "nothing"), all);
        assert_eq!(without(&[], "options").len(), 5);
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        assert!(message(&mut &[b'Q', 0, 0, 0, 3][..]).is_err());
        assert!(message(&mut &[b'Q', 255, 255, 255, 255][..]).is_err());
        assert!(message(&mut &[b'Q', 0, 0, 0, 9, 1][..]).is_err());
    }
}

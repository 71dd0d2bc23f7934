//! What is given as arguments: files, JSON, times.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{Micros, Timestamp};

use crate::error::CliError;

/// Far more than the largest event. What is longer is the wrong file, or has no end.
const INPUT_MAX_MIB: u64 = 64;

/// A file's text; `-` is standard input.
pub(crate) fn text_of(path: &Path) -> Result<String, CliError> {
    let text = if path == Path::new("-") {
        read_text(io::stdin().lock())
    } else {
        File::open(path).and_then(read_text)
    };
    text.map_err(|source| CliError::Unreadable { what: path.display().to_string(), source })
}

fn read_text(source: impl Read) -> io::Result<String> {
    let max = INPUT_MAX_MIB * 1024 * 1024;
    let mut bytes = Vec::new();
    if source.take(max + 1).read_to_end(&mut bytes)? as u64 > max {
        let message = format!("it has more than {INPUT_MAX_MIB} MiB");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        io::Error::new(io::ErrorKind::InvalidData, not_text(bytes, valid))
    })
}

/// Where bytes stop being text, and what to do.
fn not_text(bytes: &[u8], valid: usize) -> String {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return "it is written in UTF-16: save it as UTF-8".to_owned();
    }
    let before = bytes.iter().take(valid);
    let line = before.filter(|byte| **byte == b'\n').count().saturating_add(1);
    format!("line {line} is not valid UTF-8: save it as UTF-8")
}

/// JSON as it stands, or the path of a file with JSON (`-` is standard input). What could not be kept exactly is
/// refused with its place.
pub(crate) fn json_of(what: &str, given: &str) -> Result<Value, CliError> {
    let as_json = Payload::parse(given);
    let text = match as_json {
        Ok(payload) => return Ok(payload.into_value()),
        Err(_) if given == "-" || Path::new(given).is_file() => text_of(Path::new(given))?,
        Err(error) => {
            let place = place_of(&error.pointer);
            let no_json = format!("no JSON that can be kept{place}: {}", error.rule);
            let why = match looked_for(given) {
                None => format!("it is {no_json}"),
                Some(path) => format!("there is no file `{path}`, and it is {no_json}"),
            };
            return Err(CliError::Input { what: what.to_owned(), why });
        }
    };
    Payload::parse(&text).map(Payload::into_value).map_err(|error| {
        let place = place_of(&error.pointer);
        let why = format!("`{given}` holds no JSON that can be kept{place}: {}", error.rule);
        CliError::Input { what: what.to_owned(), why }
    })
}

/// Where a file was looked for, unless the text was meant to be JSON.
fn looked_for(given: &str) -> Option<String> {
    let is_meant_as_json = given.trim_start().starts_with(['{', '[', '"']);
    let path = (!is_meant_as_json).then(|| std::path::absolute(given).ok()).flatten()?;
    Some(path.display().to_string())
}

fn place_of(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
}

/// An instant, or how long ago: `2026-11-29T16:06:45Z`, `2h`.
pub(crate) fn instant_of(text: &str, wall: Timestamp) -> Result<Timestamp, CliError> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    text.parse::<Micros>()
        .map(|span| Timestamp::from_micros(wall.micros().saturating_sub(span.get())))
        .map_err(|_| CliError::Input {
            what: format!("`{text}`"),
            why: "write an instant like `2026-11-29T16:06:45Z`, or how long ago, like `2h`"
                .to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_strict_and_says_where() {
        assert_eq!(json_of("data", "7").unwrap(), 7);
        let error = json_of("data", r#"{"a": 1, "a": 2}"#).unwrap_err();
        assert!(error.to_string().contains("at `/a`"), "{error}");
        assert!(error.to_string().starts_with("data is not usable: it is no JSON"), "{error}");
        let missing = json_of("data", "no-such-file.json").unwrap_err().to_string();
        let path = std::env::current_dir().unwrap().join("no-such-file.json");
        let wanted = format!("data is not usable: there is no file `{}`", path.display());
        assert!(missing.starts_with(&wanted), "{missing}");
    }

    #[test]
    fn what_is_no_text_says_where_and_what_to_do() {
        let refused = |bytes: &[u8]| read_text(bytes).unwrap_err().to_string();
        assert_eq!(refused(b"a\nb\nc\xe9\n"), "line 3 is not valid UTF-8: save it as UTF-8");
        assert_eq!(refused(b"\xff\xfes\0"), "it is written in UTF-16: save it as UTF-8");
    }

    #[test]
    fn since_is_an_instant_or_a_span() {
        let wall = Timestamp::from_micros(10_000_000);
        assert_eq!(instant_of("3s", wall).unwrap().micros(), 7_000_000);
        assert_eq!(instant_of("1970-01-01T00:00:01Z", wall).unwrap().micros(), 1_000_000);
        assert!(instant_of("yesterday", wall).is_err());
    }
}

//! The lines of server-sent events, however the bytes are cut.

use super::provider::AiError;

/// Bytes of one line.
const LINE_MAX_BYTES: usize = 1024 * 1024;

/// The part of a line that has not ended yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Whether the last byte was a CR: a LF behind it belongs to the same end.
    after_cr: bool,
}

impl Lines {
    /// The data of each line that ends in these bytes: with CR, LF, or both. The API writes an event in one line.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<Vec<Vec<u8>>, AiError> {
        let mut events = Vec::new();
        for byte in data {
            let is_second = std::mem::replace(&mut self.after_cr, *byte == b'\r') && *byte == b'\n';
            if is_second {
                continue;
            }
            if !matches!(byte, b'\n' | b'\r') {
                self.begun.push(*byte);
                if self.begun.len() > LINE_MAX_BYTES {
                    return Err(AiError::unusable("the provider sends a line without end"));
                }
                continue;
            }
            let line = std::mem::take(&mut self.begun);
            // A byte order mark may stand before the first.
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if let Some(data) = line.strip_prefix(b"data:") {
                events.push(data.trim_ascii().to_vec());
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_cr_lf_or_both() {
        for text in ["data: a\ndata:b\n", "data: a\rdata:b\r", "data: a\r\ndata:b\r\n"] {
            let text = format!("\u{feff}{text}");
            for cut in 0..=text.len() {
                let mut lines = Lines::default();
                let (one, other) = text.as_bytes().split_at(cut);
                let mut events = lines.take(one).unwrap();
                events.extend(lines.take(other).unwrap());
                assert_eq!(events, [b"a".to_vec(), b"b".to_vec()], "{text:?} at {cut}");
            }
        }
    }

    #[test]
    fn a_line_has_an_end() {
        let endless = vec![b'x'; LINE_MAX_BYTES + 1];
        assert!(matches!(Lines::default().take(&endless), Err(AiError::Unusable { .. })));
    }
}

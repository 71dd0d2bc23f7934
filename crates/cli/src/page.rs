//! Text for people, on its way to a stream. What comes from a store is never trusted: control characters, and whatever else
//! nobody sees, are shown as escapes, so that no payload can act on a terminal.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use surefoot_kernel_core::is_unseen;

/// How a word is set off. Colour repeats what the word says; nothing is said by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Strong,
    Good,
    Bad,
    Dim,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Dim => "2",
        }
    }
}

/// Lines that are gathered before they are written.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    colour: bool,
}

impl Page {
    pub(crate) const fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    pub(crate) const fn has_colour(&self) -> bool {
        self.colour
    }

    /// A line of its own.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(&clean(text.as_ref()));
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A line that is set off.
    pub(crate) fn toned(&mut self, tone: Tone, text: impl AsRef<str>) {
        let text = clean(text.as_ref());
        if self.colour {
            let _ = writeln!(self.text, "\u{1b}[{}m{text}\u{1b}[0m", tone.code());
        } else {
            let _ = writeln!(self.text, "{text}");
        }
    }

    /// A heading with a blank line before it.
    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.toned(Tone::Strong, text);
    }

    /// Lines that were rendered elsewhere, colours included.
    pub(crate) fn block(&mut self, text: &str) {
        self.text.push_str(&quoting(text.trim_end(), self.colour));
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A text without anything that a terminal would act on. Line breaks inside become `\n`: a line stays a line.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\t' => out.push(' '),
            odd if is_unseen(odd) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(odd));
            }
            other => out.push(other),
        }
    }
    out
}

/// Lines that quote what they are about: only their own colours act on a terminal.
pub(crate) fn quoting(lines: &str, has_colour: bool) -> String {
    let harmless = |char| match char {
        '\u{1b}' if has_colour => char,
        odd if odd != '\n' && is_unseen(odd) => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    lines.chars().map(harmless).collect()
}

/// JSON that reads the same, in which no character acts on a terminal: outside of texts there is none but line breaks.
pub(crate) fn plain_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        if char != '\n' && is_unseen(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(char);
        }
    }
    out
}

/// Whether colours suit a stream: only on a terminal, and never where `NO_COLOR` says something.
pub(crate) fn wants_colour(stream: &impl IsTerminal) -> bool {
    has_colour(stream.is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

fn has_colour(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Writes data to standard output. A reader that has left is no failure.
pub(crate) fn to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes talk to standard error; nothing can be done where even that fails.
pub(crate) fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_act_on_comes_through() {
        let text = "a\u{1b}[2Jb\nc\td\u{202e}e\u{9b}f\0é";
        assert_eq!(clean(text), "a\\u{1b}[2Jb\\nc d\\u{202e}e\\u{9b}f\\u{0}é");
    }

    #[test]
    fn what_nobody_sees_is_shown() {
        let text = "a\u{200b}b\u{2028}c\u{feff}d\u{ad}e\u{3164}f\u{fe0f}g\u{e0041}";
        assert_eq!(
            clean(text),
            "a\\u{200b}b\\u{2028}c\\u{feff}d\\u{ad}e\\u{3164}f\\u{fe0f}g\\u{e0041}"
        );
    }

    #[test]
    fn json_reads_the_same_and_acts_on_no_terminal() {
        let value =
            serde_json::json!({ "a\u{202e}": ["\u{1b}[2J", "\u{9b}", "\u{200b}é\n", "\u{e0041}"] });
        let json = plain_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(json.chars().all(|char| char == '\n' || !is_unseen(char)), "{json}");
        assert!(json.contains("\\u202e") && json.contains('é'), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }

    #[test]
    fn no_color_and_pipes_are_respected() {
        let set = |text| Some(OsStr::new(text));
        for (is_terminal, no_color, expected) in [
            (true, None, true),
            (true, set(""), true),
            (true, set("1"), false),
            (false, None, false),
            (false, set(""), false),
        ] {
            assert_eq!(has_colour(is_terminal, no_color), expected, "{is_terminal} {no_color:?}");
        }
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        for (colour, expected) in [(false, "red\n"), (true, "\u{1b}[31mred\u{1b}[0m\n")] {
            let mut page = Page::new(colour);
            page.toned(Tone::Bad, "red");
            assert_eq!(page.into_text(), expected);
        }
    }
}

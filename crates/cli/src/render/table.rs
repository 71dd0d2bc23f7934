//! Columns.

use comfy_table::presets::NOTHING;
use surefoot_operator::At;

use crate::page::{Page, clean};

/// Rows under headings, as wide as their longest cell: pipes get what terminals get.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        table.set_header(headings.iter().copied());
        Self(table)
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.0.add_row(cells.iter().map(|cell| clean(cell)));
    }

    pub(crate) fn print(&self, page: &mut Page) {
        for line in self.0.lines() {
            // The first column needs no padding before it.
            page.line(line.strip_prefix(' ').unwrap_or(&line).trim_end());
        }
    }
}

/// To the second: a list is no log.
pub(crate) fn at(at: At) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// What is there, or a dash.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// An age in its largest unit and the next one.
pub(crate) fn age(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        ..=0 => format!("{ms} ms"),
        1..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} m {} s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{} h {} m", seconds / 3_600, seconds / 60 % 60),
        86_400.. => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (59_999, "59 s"),
            (300_000, "5 m 0 s"),
            (86_399_000, "23 h 59 m"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(age(ms), text);
        }
    }
}

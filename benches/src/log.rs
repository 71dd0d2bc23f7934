//! The log of the load program: warnings and worse, counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

static LINES: AtomicU64 = AtomicU64::new(0);

/// Shows warnings, and counts them.
pub(crate) fn count_warnings() {
    let log =
        tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN);
    log.with_ansi(false).with_writer(|| Counting).init();
}

/// How many there were so far.
pub(crate) fn warnings() -> u64 {
    LINES.load(Ordering::Relaxed)
}

/// One line of the log.
struct Counting;

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        LINES.fetch_add(lines as u64, Ordering::Relaxed);
        io::stderr().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

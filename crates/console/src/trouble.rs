//! What went wrong on this side, for the log of whoever runs the server: who asked is told of it, and can do nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::Method;
use axum::response::Response;
use surefoot_operator::OperatorError;

/// So many lines are written in one span.
const LINES: u32 = 10;
const SPAN: Duration = Duration::from_secs(10);

/// Why an answer could not be given, with what is below it. Travels beside the answer, and is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause(String);

impl Cause {
    pub(crate) fn of(error: &OperatorError) -> Self {
        let top: &(dyn std::error::Error + 'static) = error;
        let causes = std::iter::successors(Some(top), |error| error.source());
        Self(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }

    pub(crate) fn said(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Beside an answer.
    pub(crate) fn beside(self, mut response: Response) -> Response {
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the log, and keeps it short where everybody is told the same.
#[derive(Debug, Default)]
pub(crate) struct Troubles(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Told {
    /// Whether one more line is written; then how many were not since the last one.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.duration_since(since) >= SPAN) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Troubles {
    /// Warns of an answer that is an error of this side.
    pub(crate) fn tell(&self, method: &Method, path: &str, response: &Response) {
        let status = response.status();
        if !status.is_server_error() {
            return;
        }
        let admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        let Some(left_out) = admitted else { return };
        let cause = response.extensions().get::<Cause>().map_or("", |Cause(text)| text);
        let status = status.as_u16();
        tracing::warn!(%method, path, status, cause, left_out, "a request could not be answered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_writes_a_few_lines_and_is_counted() {
        let (mut told, start) = (Told::default(), Instant::now());
        let admitted = (0..100).filter(|_| told.admit(start) == Some(0)).count();
        assert_eq!(admitted, LINES as usize);
        assert_eq!(told.admit(start + SPAN / 2), None);
        assert_eq!(told.admit(start + SPAN), Some(91));
        assert_eq!(told.admit(start + SPAN), Some(0));
    }
}

//! Requests that are being worked on, and the log of all of them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::wire::OpenCall;

/// Every request, from its arrival to its answer or to the moment when the caller hung up.
#[derive(Debug)]
pub(super) struct Calls {
    began: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: File,
    next: u64,
    open: BTreeMap<u64, (Instant, OpenCall)>,
}

impl Calls {
    pub(super) fn open(path: &Path) -> io::Result<Arc<Self>> {
        let log = OpenOptions::new().create(true).append(true).open(path)?;
        let inner = Mutex::new(Inner { log, next: 0, open: BTreeMap::new() });
        Ok(Arc::new(Self { began: Instant::now(), inner }))
    }

    /// A request came.
    pub(super) fn begin(self: &Arc<Self>, call: OpenCall) -> Call {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.next += 1;
        let id = inner.next;
        self.note(&mut inner, id, "asked", json!(call));
        inner.open.insert(id, (Instant::now(), call));
        Call { calls: self.clone(), id }
    }

    /// Those without an answer, oldest first.
    pub(super) fn list(&self) -> Vec<OpenCall> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let aged = |(since, call): &(Instant, OpenCall)| {
            let age_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            OpenCall { age_ms, ..call.clone() }
        };
        inner.open.values().map(aged).collect()
    }

    /// This log is for people who look on. A provider does not stop charging because its disk is full.
    fn note(&self, inner: &mut Inner, call: u64, what: &str, details: Value) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = json!({ "at_ms": at_ms, "call": call, "event": what, "details": details });
        let _ = writeln!(inner.log, "{line}");
    }
}

/// A request that is being worked on. Dropped without an answer, it is one whose caller hung up.
#[derive(Debug)]
pub(super) struct Call {
    calls: Arc<Calls>,
    id: u64,
}

impl Call {
    /// The charge is in the provider's log; the answer is not sent yet.
    pub(super) fn carried_out(&self) {
        let mut inner = self.calls.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, call)) = inner.open.get_mut(&self.id) {
            call.carried_out = true;
        }
        self.calls.note(&mut inner, self.id, "carried_out", Value::Null);
    }

    /// The answer goes out.
    pub(super) fn answered(self, status: u16) {
        self.end("answered", json!(status));
    }

    fn end(&self, what: &str, details: Value) {
        let mut inner = self.calls.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.open.remove(&self.id).is_some() {
            self.calls.note(&mut inner, self.id, what, details);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end("hung_up", Value::Null);
    }
}

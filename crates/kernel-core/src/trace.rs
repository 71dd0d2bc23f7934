//! W3C Trace Context: where an event belongs in a trace of the application.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Entries of a `tracestate`.
const MEMBERS_MAX: usize = 32;
/// Characters of a `traceparent` of a version that this build does not know.
const TRACEPARENT_MAX: usize = 512;
/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const TRACEPARENT_00: usize = 55;

/// Trace context as the W3C recommendation has it, kept byte for byte. A run may live for days, so it is meant to be
/// linked to, rather than to be the parent of an open span.
///
/// ```
/// use surefoot_kernel_core::TraceContext;
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let trace = TraceContext::new(text)?.with_state("congo=t61rcWkgMzE")?;
/// assert_eq!((trace.traceparent(), trace.tracestate()), (text, Some("congo=t61rcWkgMzE")));
/// assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert!(TraceContext::new("00-zz").is_err());
/// # Ok::<(), surefoot_kernel_core::BadTraceContext>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct TraceContext {
    traceparent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

/// Why a text is no trace context. The text itself is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the `{header}` is not as W3C Trace Context has it: {why}")]
pub struct BadTraceContext {
    /// `traceparent` or `tracestate`.
    pub header: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

#[derive(Deserialize)]
struct Stored {
    traceparent: String,
    #[serde(default)]
    tracestate: Option<String>,
}

impl TryFrom<Stored> for TraceContext {
    type Error = BadTraceContext;

    fn try_from(stored: Stored) -> Result<Self, BadTraceContext> {
        let trace = Self::new(stored.traceparent)?;
        match stored.tracestate {
            Some(state) => trace.with_state(state),
            None => Ok(trace),
        }
    }
}

impl TraceContext {
    /// From the value of the header `traceparent`.
    ///
    /// # Errors
    /// [`BadTraceContext`]. A version after 00 may have more fields behind the known ones.
    pub fn new(traceparent: impl Into<String>) -> Result<Self, BadTraceContext> {
        let traceparent = traceparent.into();
        check_parent(&traceparent).map_err(|why| BadTraceContext { header: "traceparent", why })?;
        Ok(Self { traceparent, tracestate: None })
    }

    /// With the value of the header `tracestate`; several headers are joined by commas.
    ///
    /// # Errors
    /// [`BadTraceContext`].
    pub fn with_state(mut self, tracestate: impl Into<String>) -> Result<Self, BadTraceContext> {
        let tracestate = tracestate.into();
        check_state(&tracestate).map_err(|why| BadTraceContext { header: "tracestate", why })?;
        self.tracestate = Some(tracestate);
        Ok(self)
    }

    /// The value of the header `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The value of the header `tracestate`.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// The trace's id: 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        self.traceparent.get(3..35).unwrap_or_default()
    }

    /// The id of the span that the event was emitted in: 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        self.traceparent.get(36..52).unwrap_or_default()
    }

    /// Whether the emitter sampled the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let flags = self.traceparent.get(53..55).unwrap_or_default();
        u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }
}

fn check_parent(text: &str) -> Result<(), &'static str> {
    if text.len() < TRACEPARENT_00 {
        return Err("it is shorter than 55 characters");
    }
    if text.len() > TRACEPARENT_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has a blank, a character that is not ASCII, or more than 512 characters");
    }
    let mut fields = text.splitn(5, '-');
    let mut field = |length: usize| {
        fields.next().filter(|field| field.len() == length && field.bytes().all(is_hex))
    };
    let version = field(2).ok_or("the version is not two lower-case hexadecimal digits")?;
    let trace = field(32).ok_or("the trace id is not 32 lower-case hexadecimal digits")?;
    let parent = field(16).ok_or("the parent id is not 16 lower-case hexadecimal digits")?;
    field(2).ok_or("the flags are not two lower-case hexadecimal digits")?;
    let more = fields.next();
    if version == "ff" {
        return Err("version ff is not allowed");
    }
    if version == "00" && more.is_some() {
        return Err("version 00 has nothing behind its flags");
    }
    if is_zero(trace) {
        return Err("the trace id is zero");
    }
    if is_zero(parent) {
        return Err("the parent id is zero");
    }
    Ok(())
}

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|digit| digit == b'0')
}

fn check_state(text: &str) -> Result<(), &'static str> {
    let mut keys = BTreeSet::new();
    let blank = [' ', '\t'];
    // A header without a member, and empty members, are allowed.
    let members = text.split(',').map(|member| member.trim_matches(blank));
    for member in members.filter(|member| !member.is_empty()) {
        let (key, value) = member.split_once('=').ok_or("an entry has no `=`")?;
        if !is_key(key) {
            return Err("a key is not well formed");
        }
        if !is_value(value) {
            return Err("a value is empty, over 256 characters, or has one that is not allowed");
        }
        if !keys.insert(key) {
            return Err("a key comes twice");
        }
    }
    if keys.len() > MEMBERS_MAX {
        return Err("it has more than 32 entries");
    }
    // So many blanks between entries are nothing that anybody needs.
    if text.len() > MEMBERS_MAX * (256 + 1 + 256 + 3) {
        return Err("it is too long");
    }
    Ok(())
}

/// `key`, or `tenant@system`.
fn is_key(key: &str) -> bool {
    let all = |text: &str| {
        text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte)
        })
    };
    let lower = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let digit = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    match key.split_once('@') {
        None => lower(key) && all(key) && key.len() <= 256,
        Some((tenant, system)) => {
            (lower(tenant) || digit(tenant))
                && all(tenant)
                && tenant.len() <= 241
                && lower(system)
                && all(system)
                && system.len() <= 14
        }
    }
}

/// Printable ASCII without `,` and `=`; its last character is no blank.
fn is_value(value: &str) -> bool {
    let may_stand = |byte: u8| matches!(byte, 0x20..=0x2b | 0x2d..=0x3c | 0x3e..=0x7e);
    (1..=256).contains(&value.len()) && value.bytes().all(may_stand) && !value.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_taken_apart() {
        let trace = TraceContext::new(GOOD).unwrap();
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((trace.parent_id(), trace.is_sampled()), ("00f067aa0ba902b7", true));
        assert!(!TraceContext::new(GOOD.replace("-01", "-02")).unwrap().is_sampled());
    }

    #[test]
    fn a_later_version_may_say_more() {
        let later = format!("cc{}-what-the.future-will_bring", &GOOD[2..]);
        assert_eq!(TraceContext::new(&later).unwrap().traceparent(), later);
        assert!(TraceContext::new(format!("cc{}", &GOOD[2..])).is_ok());
        assert!(TraceContext::new(format!("cc{}.x", &GOOD[2..])).is_err());
        assert!(TraceContext::new(format!("cc{}-{}", &GOOD[2..], "x".repeat(500))).is_err());
    }

    #[test]
    fn a_malformed_traceparent_is_refused() {
        let zero_trace = GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        let zero_parent = GOOD.replace("00f067aa0ba902b7", &"0".repeat(16));
        let bad = [
            "",
            "00",
            "-",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!("{GOOD}0"),
            &format!(" {GOOD}"),
            &format!("{GOOD}\n"),
            &GOOD.to_uppercase(),
            &GOOD.replace("4bf9", "4bg9"),
            &GOOD.replace('-', "_"),
            &GOOD.replace("-01", "-0é"),
            &format!("ff{}", &GOOD[2..]),
            &zero_trace,
            &zero_parent,
        ];
        for text in bad {
            let refused = TraceContext::new(text).unwrap_err();
            assert_eq!(refused.header, "traceparent", "{text}");
        }
    }

    #[test]
    fn a_tracestate_is_a_list_of_entries() {
        let long = format!("{}={}", "k".repeat(256), "v".repeat(256));
        let tenant = format!("{}@{}=v", "1".repeat(241), "s".repeat(14));
        let many: Vec<String> = (0..32).map(|index| format!("k{index}=v")).collect();
        let good = [
            "",
            "a=1",
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "a=1 ,\t b=2,,c=\"\\ !~",
            "fw529a3039@dt=FfD/w",
            "a_-*/9=x y",
            &long,
            &tenant,
            &many.join(","),
        ];
        let trace = TraceContext::new(GOOD).unwrap();
        for text in good {
            let kept = trace.clone().with_state(text).unwrap();
            assert_eq!(kept.tracestate(), Some(text));
            let stored = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<TraceContext>(&stored).unwrap(), kept);
        }
        let bad = [
            "a",
            "=1",
            "a=",
            "A=1",
            "1a=1",
            "a b=1",
            "a=1=2",
            "a=é",
            "a=\u{7f}",
            "a=1,a=2",
            "@s=1",
            "t@=1",
            "t@9s=1",
            &format!("k{long}"),
            &format!("{long}v"),
            &format!("1{tenant}"),
            &format!("{},k32=v", many.join(",")),
            &",".repeat(20_000),
        ];
        for text in bad {
            let refused = trace.clone().with_state(text).unwrap_err();
            assert_eq!(refused.header, "tracestate", "{text}");
        }
    }

    #[test]
    fn what_is_stored_is_checked_when_it_is_read() {
        assert!(serde_json::from_str::<TraceContext>(r#"{"traceparent":"00"}"#).is_err());
    }
}

//! How an encoded payload is told from a plain one: by a head that names its form, and whether it belongs to a scope.
//!
//! A plain text that begins like this was stored before there was a codec, if ever: it is reported as undecodable, never
//! taken for something else.

/// Encoded for a place inside a scope.
const SCOPED: &str = "surefoot/encoded/1/scope:";
/// Encoded for a place outside every scope.
const APP_WIDE: &str = "surefoot/encoded/1/app:";

/// The kept text of an encoded payload.
pub(crate) fn wrap(is_app_wide: bool, encoded: &str) -> String {
    let head = if is_app_wide { APP_WIDE } else { SCOPED };
    format!("{head}{encoded}")
}

/// What the codec gave, and whether it was for a place outside every scope; `None` for a plain text.
pub(crate) fn unwrap(kept: &str) -> Option<(bool, &str)> {
    let scoped = kept.strip_prefix(SCOPED).map(|encoded| (false, encoded));
    scoped.or_else(|| kept.strip_prefix(APP_WIDE).map(|encoded| (true, encoded)))
}

//! Payloads: what can be kept exactly, and what is refused with its place.

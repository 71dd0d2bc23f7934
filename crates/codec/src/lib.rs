//! Payloads encrypted at rest and redacted in views: a decorator of any store, which no store needs to know.
//!
//! An application gives a [`PayloadCodec`]; [`CodecStore`] has it encode what goes into a store and decode what comes out.
//! What is covered, and what is deliberately not, is listed in `docs/payload-codec.md`.
#![cfg_attr(doctest, doc = include_str!("../../../docs/payload-codec.md"))]

mod codec;
mod decode;
mod encode;
mod envelope;
mod fault;
mod hidden;
mod parts;
mod ports;
mod store;

pub use codec::{CodecError, PayloadCodec, PayloadKind, PayloadPlace};
pub use fault::CodecFault;
pub use store::{CodecStore, Exact, Redacted, View, WithCodec};

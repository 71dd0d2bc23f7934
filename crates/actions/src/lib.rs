//! Ready-made actions: what every application needs, written once, each with the effect class that it can keep.
//!
//! | action | class | feature |
//! |---|---|---|
//! | `httpRequest` | ambiguous | `http` |
//! | `httpCall` | idempotent | `http` |
//! | `emitEvent`, `signal` | transactional | `events` |
//! | `query` | transactional | `sqlite`, `postgres` |
//! | `publishMessage` | idempotent | `messages` |
//! | `generateText`, `classify`, `classifyMany`, `extract` | idempotent | `ai` |
//!
//! A module takes each of them by one line; `docs/actions.md` says what authors may write.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "http")] {
//! use surefoot_actions::http::{HttpCall, HttpClient, HttpRequest};
//! use surefoot_language::Module;
//!
//! let client = HttpClient::builder().allow_host("api.example.com").build()?;
//! let module = Module::builder("shop", 1)
//!     .ambiguous(HttpRequest::new(client.clone()))
//!     .idempotent(HttpCall::new(client))
//!     .build()?;
//! # let _ = module; }
//! # Ok(()) }
//! ```
#![cfg_attr(doctest, doc = include_str!("../../../docs/actions.md"))]

#[cfg(feature = "ai")]
pub mod ai;
#[cfg(any(feature = "http", feature = "events", feature = "ai"))]
mod config;
#[cfg(feature = "events")]
pub mod event;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "messages")]
pub mod message;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod query;
pub mod secret;

#[cfg(any(feature = "http", feature = "events", feature = "ai"))]
pub use config::check_config;

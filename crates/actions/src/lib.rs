//! Ready-made actions: what every application needs, written once, each with the effect class that it can keep.
//!
//! | action | class | feature |
//! |---|---|---|
//! | `httpRequest` | ambiguous | `http` |
//! | `httpCall` | idempotent | `http` |
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

#[cfg(feature = "http")]
pub mod http;
pub mod secret;

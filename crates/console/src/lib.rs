//! The HTTP API and the web console, as an axum router: `surefoot serve` listens with it, and an application can mount
//! it under a path of its own, behind its own authentication.
//!
//! Everything is the operator's use cases, so that command line, API and console say the same words. The router holds
//! no rules about runs: it knows who asks ([`Access`]), what a request may look like, and how an answer is written.

mod access;
mod api;
mod console;
mod live;
mod metrics;
mod pages;
mod problem;
mod request;
mod server;
mod shared;

pub use access::{Access, BadTokens, Identity, Role, TOKEN_MIN_CHARS, Tokens};
pub use console::Console;
pub use server::{Limits, ServeError, Server};
pub use surefoot_operator::Operator;

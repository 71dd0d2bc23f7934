//! The HTTP API and the web console, as an axum router: `surefoot serve` listens with it, and an application can mount
//! it under a path of its own, behind its own authentication.
//!
//! Everything is the operator's use cases, so that command line, API and console say the same words. The router holds
//! no rules about runs: it knows who asks ([`Access`]), what a request may look like, and how an answer is written.
//!
//! ```
//! use axum::{Extension, Router};
//! use surefoot_console::{Access, Console, Identity, Operator, Role};
//! use surefoot_testkit::{MemoryStore, SeqIds, VirtualClock};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let operator = Operator::new(MemoryStore::new(), "console");
//! let (ids, clock) = (SeqIds::new(), VirtualClock::default());
//! let console = Console::new(operator, ids, clock, Access::Application);
//! // In an application, a layer that knows who is signed in says so, with each request.
//! let ann = Extension(Identity::new("ann", Role::Viewer)?);
//! let app: Router = Router::new().nest("/surefoot", console.router()).layer(ann);
//! # drop(app);
//! # Ok(())
//! # }
//! ```

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
mod trouble;

pub use access::{Access, BadTokens, Identity, Role, TOKEN_MIN_CHARS, Tokens};
pub use console::Console;
pub use server::{Limits, ServeError, Server};
pub use surefoot_operator::Operator;

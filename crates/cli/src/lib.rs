//! The command line of Surefoot, as a library: an application ships the same commands with its module built in.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use surefoot_cli::Cli;
//! use surefoot_language::{Manifest, Module};
//!
//! fn manifest() -> Manifest {
//!     let module = Module::builder("inventory", 1).build().expect("the module is sound");
//!     module.manifest().clone()
//! }
//!
//! fn main() -> ExitCode {
//!     Cli::new().manifest(manifest()).main()
//! }
//! ```
//!
//! Data goes to standard output, talk to standard error. What a command came to is its [`Exit`] code.

mod args;
mod broker;
mod builtin;
mod command;
mod confirm;
#[cfg(feature = "demo")]
mod demo;
mod error;
mod exit;
mod input;
mod interrupt;
mod page;
mod render;
mod run;
mod store;
mod traces;

pub use exit::Exit;
pub use run::Cli;

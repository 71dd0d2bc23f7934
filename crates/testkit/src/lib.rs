//! In-memory store, conformance suites, simulation and crash matrix, for Surefoot and its users.
#![cfg_attr(doctest, doc = include_str!("../../../docs/choosing.md"))]

#[cfg(feature = "ai")]
mod ai;
mod aside;
mod bench;
mod broker;
pub mod certify;
mod claims;
mod clock;
pub mod coordination;
mod dice;
pub mod differential;
mod drive;
mod exposition;
mod fault;
mod faulty;
mod ids;
mod living;
pub mod matrix;
mod memory;
pub mod plans;
pub mod simulation;
pub mod suite;

#[cfg(feature = "ai")]
pub use ai::{Say, ScriptedProvider};
pub use aside::Aside;
pub use bench::{Bench, Crash, End, StepEnd};
pub use broker::{MemoryBroker, MemoryRateLimit};
pub use claims::ClaimRows;
pub use clock::VirtualClock;
pub use drive::{Drive, DriveError, Reply};
pub use exposition::Exposition;
pub use fault::{Fault, FaultPlan, Method, Stop, When};
pub use faulty::FaultyStore;
pub use ids::SeqIds;
pub use memory::{MemoryConflict, MemoryFactory, MemoryStore, MemoryTx, OpenMemoryTx};
#[cfg(feature = "servers")]
pub use surefoot_test_servers as servers;

//! In-memory store, conformance suites, simulation and crash matrix, for Surefoot and its users.

mod clock;
mod drive;
mod fault;
mod faulty;
mod ids;
pub mod matrix;
mod memory;
pub mod plans;
pub mod suite;

pub use clock::VirtualClock;
pub use drive::{Drive, DriveError, Reply};
pub use fault::{Fault, FaultPlan, Method, Stop, When};
pub use faulty::FaultyStore;
pub use ids::SeqIds;
pub use memory::{MemoryConflict, MemoryFactory, MemoryStore, MemoryTx, OpenMemoryTx};

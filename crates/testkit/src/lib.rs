//! In-memory store, conformance suites, simulation and crash matrix, for Surefoot and its users.

mod clock;
mod drive;
mod faulty;
mod ids;
mod memory;
pub mod plans;
pub mod suite;

pub use clock::VirtualClock;
pub use drive::{Drive, DriveError, Reply};
pub use faulty::{Fault, FaultPlan, FaultyStore, Method};
pub use ids::SeqIds;
pub use memory::{MemoryConflict, MemoryFactory, MemoryStore, MemoryTx, OpenMemoryTx};

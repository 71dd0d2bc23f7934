//! In-memory store, conformance suites, simulation and crash matrix, for Surefoot and its users.

mod clock;
mod ids;
mod memory;

pub use clock::VirtualClock;
pub use ids::SeqIds;
pub use memory::{MemoryConflict, MemoryStore, MemoryTx, OpenMemoryTx};

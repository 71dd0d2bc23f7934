//! What the operator needs of a store.

use surefoot_kernel_core::{EventStore, OperatorStore, PlanStore, RetentionStore, RunStore};

/// A store with every object-safe port. Implemented by each store, never by hand.
pub trait Store: RunStore + EventStore + PlanStore + OperatorStore + RetentionStore {}

impl<T: RunStore + EventStore + PlanStore + OperatorStore + RetentionStore + ?Sized> Store for T {}

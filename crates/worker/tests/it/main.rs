//! Workers on a store in memory, with virtual time.

mod actions;
mod plans;
mod store;
mod world;

mod classes;

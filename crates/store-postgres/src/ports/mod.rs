//! The ports, each method in a line or two: what it does is in the module of its noun.

mod events;
mod operator;
mod plans;
mod retention;
mod runs;
mod transactions;

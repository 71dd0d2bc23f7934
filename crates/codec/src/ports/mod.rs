//! Every port of a store, with payloads encoded on the way in and decoded on the way out.

mod children;
mod events;
mod operator;
mod plans;
mod retention;
mod runs;
mod tasks;
mod transaction;

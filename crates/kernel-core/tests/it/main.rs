//! The core's properties, for any script of inputs.

mod properties;

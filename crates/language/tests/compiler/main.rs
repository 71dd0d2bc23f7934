//! The compiler from the outside: sources in, findings or plans out.

mod plans;
mod support;

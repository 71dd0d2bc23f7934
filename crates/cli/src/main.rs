//! The command line of Surefoot.
fn main() {}

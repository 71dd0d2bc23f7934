//! What rustc says about the commonest mistakes is part of the API: one file per mistake, with its message.
//!
//! `TRYBUILD=overwrite cargo nextest run -p surefoot-language --test mistakes` writes the messages anew, for a new
//! toolchain or a better text. Read them before they are committed.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}

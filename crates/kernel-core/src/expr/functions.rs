//! The functions of the language.

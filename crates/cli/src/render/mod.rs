//! Views as text for people.

mod explanation;
mod show;
mod table;

pub(crate) use explanation::explanation;
pub(crate) use show::{runs, show};
pub(crate) use table::{Table, age, at, or_dash};

//! Views as text for people.

mod bill;
mod explanation;
mod show;
mod table;

pub(crate) use bill::{bill, preview};
pub(crate) use explanation::explanation;
pub(crate) use show::{runs, show};
pub(crate) use table::{Table, age, at, counted, or_dash};

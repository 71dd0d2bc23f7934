//! What a request may look like. Nothing unknown is let through: a misspelt filter must not look like a full list.

mod body;
mod path;
mod precondition;
mod query;
mod text;

pub(crate) use body::{Body, Input};
pub(crate) use path::{PathOf, named};
pub(crate) use precondition::{IfMatch, Revisioned};
pub(crate) use query::{Query, refuse_query};
pub(crate) use text::{Limit, List, NameShape, Since, maybe, one};

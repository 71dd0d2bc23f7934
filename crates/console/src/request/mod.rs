//! What a request may look like. Nothing unknown is let through: a misspelt filter must not look like a full list.

mod body;
mod path;
mod precondition;
mod query;
mod text;

pub(crate) use body::{Body, Input, Rooms, one_of};
pub(crate) use path::{PathOf, named};
pub(crate) use precondition::{IfMatch, Revisioned};
pub(crate) use query::{Query, check_encoding, refuse_query};
pub(crate) use text::{EventType, Limit, List, NameShape, Since, Tag, maybe, one};

//! Pictures, drawn here: plain numbers that a template writes as SVG. What they show also stands in words beside them.

mod bars;
mod chart;
mod graph;

pub(crate) use bars::{Span, share};
pub(crate) use chart::Chart;
pub(crate) use graph::{Graph, Tones};

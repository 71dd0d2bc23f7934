//! A chart of bars over time.

use surefoot_operator::{SliceView, TimelineView};

/// The height of the drawing.
const HEIGHT: u64 = 100;
/// From the bottom up: a tone, and the states in it.
const STACK: &[(&str, &[&str])] = &[
    ("good", &["succeeded"]),
    ("busy", &["queued", "running", "waiting"]),
    ("mute", &["canceled"]),
    ("warn", &["needs_attention"]),
    ("bad", &["failed"]),
];

/// A chart: as many columns as there are slices, each ten wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    pub(crate) width: usize,
    pub(crate) bars: Vec<Bar>,
    /// What the whole height stands for.
    pub(crate) top: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) x: usize,
    pub(crate) y: u64,
    pub(crate) height: u64,
    pub(crate) tone: &'static str,
}

impl Chart {
    /// How many runs, by what became of them.
    pub(crate) fn runs(timeline: &TimelineView) -> Self {
        let top = timeline.slices.iter().map(|slice| slice.runs).max().unwrap_or(0);
        let stacks = timeline.slices.iter().map(|slice| {
            let of = |states: &[&str]| states.iter().filter_map(|it| slice.by_state.get(it)).sum();
            STACK.iter().map(|(tone, states)| (*tone, of(states))).collect()
        });
        Self::of(top, stacks)
    }

    /// The worst wait for a first claim.
    pub(crate) fn lag(timeline: &TimelineView) -> Self {
        let lag = |slice: &SliceView| slice.worst_lag_ms.map_or(0, i64::unsigned_abs);
        let top = timeline.slices.iter().map(lag).max().unwrap_or(0);
        Self::of(top, timeline.slices.iter().map(|slice| vec![("busy", lag(slice))]))
    }

    fn of(top: u64, columns: impl Iterator<Item = Vec<(&'static str, u64)>>) -> Self {
        let (mut bars, mut width) = (Vec::new(), 0);
        for (index, column) in columns.enumerate() {
            width = (index + 1) * 10;
            let mut below = 0;
            for (tone, value) in column.into_iter().filter(|(_, value)| *value > 0) {
                let from = scaled(below, top);
                below += value;
                let height = scaled(below, top).saturating_sub(from).max(1);
                let y = HEIGHT.saturating_sub(from + height);
                bars.push(Bar { x: index * 10 + 1, y, height, tone });
            }
        }
        Self { width, bars, top }
    }
}

fn scaled(value: u64, top: u64) -> u64 {
    if top == 0 {
        return 0;
    }
    let scaled = u128::from(value) * u128::from(HEIGHT) / u128::from(top);
    u64::try_from(scaled).unwrap_or(HEIGHT)
}

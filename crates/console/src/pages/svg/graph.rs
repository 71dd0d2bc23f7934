//! The plan as a picture: steps from top to bottom, what is inside of a step in columns below it.

use std::collections::BTreeMap;

use surefoot_kernel_core::{EffectClass, PlanBranch, PlanStep, Shown, StepState};

use crate::pages::text::Text;
use crate::pages::words::{Badge, step_state};

const NODE_WIDTH: i64 = 208;
const NODE_HEIGHT: i64 = 62;
/// Between a step and the next, with an arrow in it.
const GAP: i64 = 22;
/// Between columns, and around what is inside of a step.
const PAD: i64 = 14;
/// The name of a column.
const HEAD: i64 = 24;
/// Steps that are drawn. More of them show nothing that a table does not show better.
const DRAWN_MAX: usize = 200;
/// What fits into a box.
const LABEL_CHARS: usize = 25;

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    pub(crate) width: i64,
    pub(crate) height: i64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) names: Vec<Name>,
    /// Steps that are not drawn.
    pub(crate) omitted: usize,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) label: Text,
    pub(crate) place: Text,
    /// `built-in` for a step that calls no action.
    pub(crate) class: &'static str,
    pub(crate) badge: Option<Badge>,
    pub(crate) title: Text,
}

/// Around what is inside of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) width: i64,
    pub(crate) height: i64,
}

/// From a step to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) to_x: i64,
    pub(crate) to_y: i64,
}

/// The name of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) text: String,
}

/// The state of each place of a plan: of a loop's inside, the one that matters most.
#[derive(Debug, Default)]
pub(crate) struct Tones(BTreeMap<String, StepState>);

impl Tones {
    pub(crate) fn of(steps: &[Shown]) -> Self {
        let mut states: BTreeMap<String, StepState> = BTreeMap::new();
        for step in steps {
            let place = step.key.as_str().split('#').next().unwrap_or_default();
            let state = states.entry(place.to_owned()).or_insert(step.state);
            if weight(step.state) > weight(*state) {
                *state = step.state;
            }
        }
        Self(states)
    }
}

const fn weight(state: StepState) -> u8 {
    match state {
        StepState::NotReached => 0,
        StepState::Completed => 1,
        StepState::Canceled => 2,
        StepState::Terminal => 3,
        StepState::Failed => 4,
        StepState::Waiting => 5,
        StepState::Running => 6,
        StepState::NeedsAttention => 7,
    }
}

impl Graph {
    /// Draws a plan, with the states of a run if there is one.
    pub(crate) fn of(steps: &[PlanStep], tones: Option<&Tones>) -> Self {
        let mut pen = Pen { graph: Self::default(), tones, room: DRAWN_MAX };
        let (width, height) = size_of_list(steps);
        pen.list(steps, PAD + width / 2, PAD);
        pen.graph.width = width + 2 * PAD;
        pen.graph.height = height + 2 * PAD;
        // What was not drawn leaves no empty paper.
        if pen.graph.omitted > 0 {
            let bottom = pen.graph.nodes.iter().map(|node| node.y + NODE_HEIGHT).max();
            pen.graph.height = bottom.unwrap_or(0) + 2 * PAD;
            for frame in &mut pen.graph.frames {
                frame.height = frame.height.min(pen.graph.height - PAD - frame.y);
            }
        }
        pen.graph
    }
}

struct Pen<'t> {
    graph: Graph,
    tones: Option<&'t Tones>,
    room: usize,
}

impl Pen<'_> {
    /// Steps one below the other, around a middle line.
    fn list(&mut self, steps: &[PlanStep], middle: i64, top: i64) {
        let mut y = top;
        for (index, step) in steps.iter().enumerate() {
            if self.room == 0 {
                self.graph.omitted += steps.iter().skip(index).map(count).sum::<usize>();
                return;
            }
            self.room -= 1;
            if index > 0 {
                let edge = Edge { x: middle, y: y - GAP, to_x: middle, to_y: y - 2 };
                self.graph.edges.push(edge);
            }
            self.step(step, middle, y);
            y += size_of(step).1 + GAP;
        }
    }

    fn step(&mut self, step: &PlanStep, middle: i64, y: i64) {
        let (width, height) = size_of(step);
        if !step.branches.is_empty() {
            let (x, inner) = (middle - width / 2, NODE_HEIGHT / 2);
            self.graph.frames.push(Frame { x, y: y + inner, width, height: height - inner });
        }
        let node = self.node(step, middle - NODE_WIDTH / 2, y);
        self.graph.nodes.push(node);
        let columns: i64 = step.branches.iter().map(|it| size_of_list(&it.steps).0 + PAD).sum();
        let mut x = middle - (columns - PAD) / 2;
        for PlanBranch { name, steps } in &step.branches {
            let width = size_of_list(steps).0;
            let (column, under, top) = (x + width / 2, y + NODE_HEIGHT, y + NODE_HEIGHT + HEAD);
            self.graph.edges.push(Edge { x: middle, y: under, to_x: column, to_y: top - 2 });
            let text = name.clone();
            self.graph.names.push(Name { x: column + 6, y: top - 7, text });
            self.list(steps, column, top);
            x += width + PAD;
        }
    }

    fn node(&self, step: &PlanStep, x: i64, y: i64) -> Node {
        let state = self.tones.map(|tones| {
            // A place that is not listed was not come to.
            tones.0.get(&step.place).copied().unwrap_or(StepState::NotReached)
        });
        let badge = state.map(step_state);
        let label = step.label.as_deref().unwrap_or(&step.action);
        let class = step.class.map(EffectClass::as_str);
        let state = badge.map_or_else(String::new, |badge| format!(": {}", badge.word));
        let title = format!("{} `{}`{state}", step.place, step.action);
        Node {
            x,
            y,
            label: short(label),
            place: short(&step.place),
            class: class.unwrap_or("built-in"),
            badge,
            title: Text::name(title),
        }
    }
}

fn short(text: &str) -> Text {
    if text.chars().count() <= LABEL_CHARS {
        return Text::name(text);
    }
    let cut: String = text.chars().take(LABEL_CHARS - 1).chain(std::iter::once('…')).collect();
    Text::name(cut)
}

fn size_of_list(steps: &[PlanStep]) -> (i64, i64) {
    let sizes = steps.iter().map(size_of);
    let (width, height) =
        sizes.fold((NODE_WIDTH, -GAP), |(width, height), (w, h)| (width.max(w), height + GAP + h));
    (width, height.max(0))
}

fn size_of(step: &PlanStep) -> (i64, i64) {
    if step.branches.is_empty() {
        return (NODE_WIDTH, NODE_HEIGHT);
    }
    let sizes = step.branches.iter().map(|branch| size_of_list(&branch.steps));
    let (width, height) =
        sizes.fold((PAD, 0), |(width, height), (w, h)| (width + w + PAD, height.max(h)));
    (width.max(NODE_WIDTH + 2 * PAD), NODE_HEIGHT + HEAD + height + PAD)
}

fn count(step: &PlanStep) -> usize {
    1 + step.branches.iter().flat_map(|branch| &branch.steps).map(count).sum::<usize>()
}

//! What the end of a child means: to its group, to a sibling that is held back, and to the parent.

use crate::{Parent, Phase, Resume, Run, RunState, StepKey};

/// The children of one step, as stores keep them. Only a child's end, its retry and the release of a held one touch
/// it: claims do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildGroup {
    /// Created so far.
    pub total: u32,
    /// Not ended. Attention is not an end.
    pub live: u32,
    /// Held back until a sibling ends.
    pub held: u32,
    /// At most so many are unfinished and not held at once.
    pub parallel: u32,
    /// Whether the step that created them has recorded an outcome on their results.
    pub taken: bool,
}

/// What a write of a child means to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildMove {
    /// It ended.
    Ended {
        /// It was held back when it ended: canceled before it could begin.
        was_held: bool,
    },
    /// An operator had it tried again.
    Revived {
        /// It is held back: as many siblings as may are unfinished.
        is_held: bool,
    },
}

impl ChildMove {
    /// What a write means, by the state before it. `None` if the run is no child, or has ended neither before nor
    /// after.
    #[must_use]
    pub fn of(before: RunState, was_held: bool, after: &Run) -> Option<(&Parent, Self)> {
        let parent = after.origin.parent.as_ref()?;
        match (before.is_terminal(), after.state().is_terminal()) {
            (false, true) => Some((parent, Self::Ended { was_held })),
            (true, false) => Some((parent, Self::Revived { is_held: after.is_held() })),
            (false, false) | (true, true) => None,
        }
    }
}

impl ChildGroup {
    /// A group without children.
    #[must_use]
    pub const fn new(parallel: u32) -> Self {
        Self { total: 0, live: 0, held: 0, parallel, taken: false }
    }

    /// A new child is in it. Answers whether that child is held back.
    #[must_use]
    pub const fn add(&mut self) -> bool {
        let is_held = self.is_full();
        self.total = self.total.saturating_add(1);
        self.live = self.live.saturating_add(1);
        if is_held {
            self.held = self.held.saturating_add(1);
        }
        is_held
    }

    /// Whether whoever comes now is held back: a new child, or one that is tried again.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.unfinished() >= self.parallel
    }

    /// A child has moved.
    pub const fn moved(&mut self, child: ChildMove) {
        match child {
            ChildMove::Ended { was_held } => {
                self.live = self.live.saturating_sub(1);
                if was_held {
                    self.held = self.held.saturating_sub(1);
                }
            }
            ChildMove::Revived { is_held } => {
                self.live = self.live.saturating_add(1);
                if is_held {
                    self.held = self.held.saturating_add(1);
                }
            }
        }
    }

    /// Takes as many held children out as may begin now, and says how many: those of the lowest index.
    #[must_use]
    pub const fn release(&mut self) -> u32 {
        let room = self.parallel.saturating_sub(self.unfinished());
        let released = if room < self.held { room } else { self.held };
        self.held -= released;
        released
    }

    /// Whether every child has ended: then a parent that waits for them is woken.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.live == 0
    }

    /// Whether a failed child may be tried again, as far as its parent alone is concerned: not once the parent has gone on
    /// with its result, nor while the parent may be reading it.
    #[must_use]
    pub fn may_revive(&self, parent: &Run, step: &StepKey) -> bool {
        if parent.cancel.is_some() {
            return false;
        }
        match &parent.phase {
            Phase::Waiting(wait) => {
                !self.taken || wait.on.as_ref().is_some_and(|on| on.is_children_of(step))
            }
            // It stands at the step, and reads the results again when it is retried.
            Phase::Failed { error, abandoned: None } => {
                !self.taken || error.step.as_ref() == Some(step)
            }
            Phase::NeedsAttention(attention) => {
                !self.taken || attention.error.step.as_ref() == Some(step)
            }
            Phase::Queued { .. } | Phase::Running { .. } => {
                let reads = parent.resume.as_ref().and_then(Resume::on_children) == Some(step);
                !self.taken && !reads
            }
            Phase::Failed { abandoned: Some(_), .. }
            | Phase::Succeeded { .. }
            | Phase::Canceled { .. } => !self.taken,
        }
    }

    const fn unfinished(&self) -> u32 {
        self.live.saturating_sub(self.held)
    }
}

/// Whether a failed child may be tried again, as far as those above it are concerned. Stores ask of one after the other,
/// from its parent up to the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revival {
    /// Whether the one below has ended, so that only its own retry would read what the child comes to.
    below_has_ended: bool,
}

impl Default for Revival {
    fn default() -> Self {
        Self { below_has_ended: true }
    }
}

impl Revival {
    /// Whether the next one above leaves the child free to be tried again: it is not canceled, and the one below it
    /// lives or may be tried again itself.
    #[must_use]
    pub fn passes(&mut self, above: &Run, step: &StepKey, group: Option<&ChildGroup>) -> bool {
        let may_revive =
            !self.below_has_ended || group.is_none_or(|group| group.may_revive(above, step));
        self.below_has_ended = above.state().is_terminal();
        above.cancel.is_none() && may_revive
    }
}

/// The step whose children's results a write has taken: it had resumed on their end, and has an outcome now.
#[must_use]
pub fn takes_results<'r>(resumed: Option<&'r StepKey>, after: &Run) -> Option<&'r StepKey> {
    let step = resumed?;
    let resumes = after.resume.as_ref().is_some_and(|resume| resume.step == *step);
    let waits = matches!(&after.phase, Phase::Waiting(wait) if wait.step == *step);
    (!resumes && !waits).then_some(step)
}

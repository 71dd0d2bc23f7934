//! What is decided about a run before the facts ahead of it are durable, to be written with them.

use surefoot_kernel_core::{Call, Decision, Fact, Sealed, StepKey, Timestamp, TxStore};
use surefoot_language::Object;

use super::book::Book;
use super::prepare::cost_of;
use super::{Driver, Left, defect};
use crate::engine::pace::part;
use crate::engine::shift::Phase;

/// What opens once everything pending is durable.
pub(super) struct Ahead {
    pub(super) command: Sealed,
    /// The step whose call is marked among what is pending.
    pub(super) marked: Option<StepKey>,
    /// That mark is not the decision's own.
    pub(super) took_mark_along: bool,
}

impl<S: TxStore> Driver<S> {
    /// Applies a decision that is made durable at once, and takes the mark of the call that comes next along if the
    /// application has nothing to say before it.
    pub(super) fn go_on(
        &self,
        book: &mut Book<S::Tx>,
        mut decision: Decision,
        now: Timestamp,
        with_mark: bool,
    ) -> Result<Ahead, Left> {
        let facts = std::mem::take(&mut decision.facts);
        let marked = marked_in(&facts);
        book.go_on(facts).map_err(defect)?;
        let mark = if with_mark && self.calls_at_once() {
            let needs_nothing = |call: &Call| self.needs_nothing(book, call);
            decision.next_mark(&book.held, &book.plan.plan, now, needs_nothing)
        } else {
            None
        };
        let Some(mark) = mark else {
            return Ok(Ahead { command: decision.command, marked, took_mark_along: false });
        };
        let marked = marked_in(&mark.facts);
        book.go_on(mark.facts).map_err(defect)?;
        Ok(Ahead { command: mark.command, marked, took_mark_along: true })
    }

    /// Whether a call would be made as soon as it is marked: between two steps a driver may have to do something else.
    fn calls_at_once(&self) -> bool {
        self.engine.settings.authorize.is_none()
            && self.shift.phase() < Phase::HandingOver
            && !self.hold.is_lost()
            && !self.hold.is_canceled()
            && self.hold.remaining() >= part(self.engine.settings.lease, 5)
    }

    /// Whether nothing of the application's is asked before a call, and nothing is wrong with its config.
    fn needs_nothing(&self, book: &Book<S::Tx>, call: &Call) -> bool {
        let Ok(action) = self.action(book, call) else { return false };
        let Object::Ambiguous(object) = action.object() else { return false };
        !object.is_guarded()
            && action.validate_input(&call.config).is_ok()
            // Reads the input, which a schema that is written by hand may judge otherwise than its type.
            && cost_of(&**object, call).is_ok_and(|cost| cost.is_nothing())
    }
}

fn marked_in(facts: &[Fact]) -> Option<StepKey> {
    facts.iter().find_map(Fact::marked_step).cloned()
}

//! The mark of the next call, decided before what comes ahead of it is durable, so that both are one commit.

use super::{
    Call, Command, Decision, Held, Input, OUTPUT_MAX_BYTES, Prepared, advance, decide,
    journal_is_full,
};
use crate::plan::{Plan, StepKind};
use crate::{Amounts, Next, Timestamp};

impl Decision {
    /// The mark of the call that comes next, and the call behind it, if nothing has to be asked ahead of it: the run
    /// goes on after this decision with the preparation of an ambiguous call (or this decision is that preparation),
    /// and `needs_nothing` says of the call that it may be made at no cost and without a word of the application.
    ///
    /// `held` is the run as this decision's facts leave it. Written together with them, the mark is no less durable
    /// before its call than by a commit of its own: it is sealed like every other. `None`: this decision stands alone.
    #[must_use]
    pub fn next_mark(
        &self,
        held: &Held,
        plan: &Plan,
        now: Timestamp,
        needs_nothing: impl FnOnce(&Call) -> bool,
    ) -> Option<Self> {
        let advanced;
        let next = match self.command.peek() {
            None if stands_at_marked_call(held, plan) => {
                advanced = advance::advance(held, plan, now).ok()?;
                advanced.command.peek()
            }
            command => command,
        };
        let Some(Command::Prepare(call)) = next else { return None };
        if !call.class.is_marked_before_call() || !needs_nothing(call) {
            return None;
        }
        // The outcome ahead is not counted yet, and may be as large as the next.
        if journal_is_full(&held.run, 2 * OUTPUT_MAX_BYTES).is_some() {
            return None;
        }
        let result = Prepared::Ready { cost: Amounts::default() };
        let prepared = Input::Prepared { step: call.step.clone(), result };
        let mark = decide(held, plan, prepared, now).ok()?;
        matches!(mark.command.peek(), Some(Command::Call(_))).then_some(mark)
    }
}

/// Looked at first: where another step comes next, nothing is rendered twice.
fn stands_at_marked_call(held: &Held, plan: &Plan) -> bool {
    let Ok(Next::Step { node, .. }) = held.cursor.next(plan) else { return false };
    let StepKind::Action { action, .. } = &node.kind else { return false };
    let policy = plan.policies.get(action);
    policy.is_some_and(|policy| policy.class.is_marked_before_call())
}

//! How many runs there were, and how long they waited, over time.

use surefoot_kernel_core::{App, Micros, RunSpan, Scope, TIMELINE_MAX_SLICES, Timestamp};

use crate::view::TimelineView;
use crate::{Operator, OperatorError};

/// The span of a timeline, which ends now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineOf {
    /// Whose runs.
    pub app: App,
    /// Only there.
    pub scope: Option<Scope>,
    /// How long.
    pub span: Micros,
    /// In how many slices, 1 to [`TIMELINE_MAX_SLICES`].
    pub slices: u32,
}

impl Operator {
    /// Counts the runs that were created in a span that ends now: slices for a chart, never more than were asked for,
    /// and the true total. Children and dry runs are left out.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`] for a scope of which nothing is known; the store's.
    pub async fn timeline(&self, of: TimelineOf) -> Result<TimelineView, OperatorError> {
        let TimelineOf { app, scope, span, slices } = of;
        let slices = slices.clamp(1, TIMELINE_MAX_SLICES);
        let slice = Micros::new((span.get() / i64::from(slices)).max(1));
        let now = self.store.store_now().await?;
        // Slices begin at whole multiples of their length, so that a chart that is drawn again moves by whole slices.
        let last = now.micros().div_euclid(slice.get()).saturating_mul(slice.get());
        let from = last.saturating_sub(slice.get().saturating_mul(i64::from(slices) - 1));
        let span = RunSpan { app, scope, from: Timestamp::from_micros(from), slice, slices };
        let counts = self.store.run_timeline(span.clone()).await?;
        self.if_empty(counts.is_empty(), Some(&span.app), span.scope.as_ref()).await?;
        Ok(TimelineView::of(&span, &counts))
    }
}

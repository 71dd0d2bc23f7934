//! Looking at parts of a run, page by page.

use surefoot_kernel_core::{RestoreInvalid, RunId, shown_steps};

use crate::view::{JournalRowView, JournalView, StepsView};
use crate::{Operator, OperatorError};

impl Operator {
    /// The steps that a run has come to, in order.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::NotACursor`]; [`OperatorError::Unreadable`] where plan or journal
    /// cannot be read.
    pub async fn steps(
        &self,
        run: RunId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<StepsView, OperatorError> {
        let before = usize::try_from(place(cursor)?).map_err(|_| OperatorError::NotACursor)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let reading = self.reading(run).await?;
        if let Some(why) = &reading.unreadable {
            let what = format!("what run {run} did");
            return Err(OperatorError::Unreadable { what, why: why.clone() });
        }
        let end = before.saturating_add(limit);
        let (steps, behind) = shown_steps(&reading.input(), end);
        let total = steps.len() as u64 + behind;
        let next = (behind > 0).then(|| end.to_string());
        let steps = steps.into_iter().skip(before).map(Into::into).collect();
        Ok(StepsView { steps, total, next })
    }

    /// What was recorded of a run, commit by commit, in order.
    ///
    /// # Errors
    /// [`OperatorError::NotFound`]; [`OperatorError::NotACursor`]; [`OperatorError::Unreadable`] where the journal
    /// cannot be read.
    pub async fn journal(
        &self,
        run: RunId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<JournalView, OperatorError> {
        let page = self.store.journal_list(run, place(cursor)?, limit).await?;
        let page = page.ok_or_else(|| OperatorError::not_found(format!("run {run}")))?;
        let next = page.next().map(|next| next.to_string());
        let unreadable = |invalid: RestoreInvalid| OperatorError::Unreadable {
            what: format!("the journal of run {run}"),
            why: invalid.what,
        };
        let entries = page.rows.map_err(unreadable)?;
        Ok(JournalView { entries: entries.iter().map(JournalRowView::from).collect(), next })
    }
}

/// A cursor is the number of what was shown before.
fn place(cursor: Option<&str>) -> Result<u64, OperatorError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let place = cursor.parse::<u32>().map(u64::from).map_err(|_| OperatorError::NotACursor)?;
    if place.to_string() == cursor { Ok(place) } else { Err(OperatorError::NotACursor) }
}

//! A person who tells the truth where nobody else can know, and operators who meddle.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde_json::json;
use surefoot_kernel_core::{
    Attention, Code, Commit, Micros, Phase, RowInput, Run, RunId, RunStore, Verdict, decide_row,
};

use super::play::{Stage, text};
use super::shop::DECLINED;
use crate::matrix::Did;
use crate::suite::StoreFactory;

/// The person waits longer than anything can be under way.
const PERSON_AFTER: Micros = Micros::from_secs(60);

/// Since when the person knows a run as it is.
pub(super) type Known = BTreeMap<(RunId, u64), Micros>;

impl<F: StoreFactory> Stage<F> {
    /// What a person does about a run that nobody else can help: says what is true, when nothing is under way any more.
    pub(super) async fn help(&self, run: &Run, known: &mut Known) -> Result<(), String> {
        let Some(input) = self.truth(run)? else { return Ok(()) };
        let now = self.sky.now();
        let since = *known.entry((run.id, run.revision)).or_insert(now);
        if now.get().saturating_sub(since.get()) < PERSON_AFTER.get() {
            return Ok(());
        }
        self.verdicts.fetch_add(1, Ordering::SeqCst);
        let at = self.clean.store_now().await.map_err(text)?;
        let facts = decide_row(run, input, at).map_err(text)?;
        self.clean.run_commit(Commit::new(run, &facts)).await.map(drop).map_err(text)
    }

    /// What there is to say about a run.
    fn truth(&self, run: &Run) -> Result<Option<RowInput>, String> {
        Ok(match &run.phase {
            Phase::NeedsAttention(Attention { effect: Some(effect), .. }) => {
                let key = run.effect_key(&effect.step);
                let done = self.provider.done(&key);
                let verdict = if self.provider.knows(&key) {
                    Verdict::Succeeded { output: json!(1) }
                } else if done.contains(&Did::Called) && self.sky.script.declines(&key) {
                    let message = "the bank declined".to_owned();
                    Verdict::Failed { code: Some(Code::from(DECLINED)), message }
                } else {
                    Verdict::NotPerformed
                };
                Some(RowInput::Resolve { step: effect.step.clone(), verdict })
            }
            Phase::Failed { error, .. } if error.code == Code::RETRY_EXHAUSTED => {
                Some(RowInput::Retry)
            }
            Phase::Failed { error, .. } if error.code == Code::from(DECLINED) => None,
            Phase::Canceled { .. } if self.is_canceled(run) => None,
            Phase::NeedsAttention(_) | Phase::Failed { .. } | Phase::Canceled { .. } => {
                return Err(format!("a run ends where it should not: {run:?}"));
            }
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::Succeeded { .. } => None,
        })
    }

    /// Whether somebody asked to cancel the run, or one above it.
    fn is_canceled(&self, run: &Run) -> bool {
        let order = self.order_of(run.origin.root);
        order.is_some_and(|order| self.sky.script.cancels(order))
    }

    /// An operator tries a verb on a run and all below it: what cannot be done now is not done.
    pub(super) async fn meddle(&self, root: RunId) -> Result<(), String> {
        for run in self.runs().await?.into_iter().filter(|run| run.origin.root == root) {
            let input = match &run.phase {
                Phase::NeedsAttention(Attention { effect: Some(effect), .. }) => {
                    RowInput::AskReconcile { step: effect.step.clone() }
                }
                Phase::Failed { .. } | Phase::NeedsAttention(_) => RowInput::Retry,
                Phase::Queued { .. }
                | Phase::Running { .. }
                | Phase::Waiting(_)
                | Phase::Succeeded { .. }
                | Phase::Canceled { .. } => continue,
            };
            let at = self.clean.store_now().await.map_err(text)?;
            if let Ok(facts) = decide_row(&run, input, at) {
                // Somebody may be faster.
                let _ = self.clean.run_commit(Commit::new(&run, &facts)).await;
            }
        }
        Ok(())
    }
}

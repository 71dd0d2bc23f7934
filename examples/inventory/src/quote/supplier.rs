//! The supplier's process: it takes tasks, does the work, delivers.

use std::future::Future;

use surefoot::prelude::*;

use super::QUOTE_SIGNAL;
use super::task::{self, Task};
use crate::store::{AppStore, sqlx};

/// Questions to the supplier's desk that may fail before the task has failed.
pub const ATTEMPTS_MAX: u32 = 3;
/// Tasks of one pass.
const PASS_MAX: u32 = 50;

/// The desk did not answer. Trying again may help.
#[derive(Debug, thiserror::Error)]
#[error("the supplier's desk did not answer: {0}")]
pub struct DeskError(pub String);

/// Why a pass ended early. The tasks that are left come with the next one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupplierError {
    /// The store's word.
    #[error("the store is not available")]
    Store(#[from] StoreError),
    /// The database's word.
    #[error("the tasks could not be read or written")]
    Database(#[from] sqlx::Error),
    /// The signal was refused.
    #[error("the answer could not be signaled")]
    Signal(#[from] SignalError),
}

/// What became of one task in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The answer is in the table and the step is woken.
    Delivered,
    /// Nobody waits any more: nothing was asked, or the answer was thrown away.
    Discarded,
    /// The desk did not answer; the task is asked again.
    Postponed,
    /// The desk did not answer for the last time; the step is woken to fail.
    GivenUp,
}

/// Does the work of tasks. Runs wherever there is access to the database: here, or in a process of its own.
#[derive(Clone)]
pub struct Supplier {
    /// The application's kernel.
    pub kernel: Kernel<AppStore>,
}

impl Supplier {
    /// Does every task that is open, once. `desk` answers with the text of a [`Quote`](super::Quote).
    ///
    /// # Errors
    /// The store's word. Nothing is half done.
    pub async fn pass<F, Fut>(&self, desk: F) -> Result<Vec<Delivery>, SupplierError>
    where
        F: Fn(Task) -> Fut,
        Fut: Future<Output = Result<String, DeskError>>,
    {
        let mut tx = self.kernel.begin().await?;
        let tasks = task::list_open(&mut tx, PASS_MAX).await?;
        // On SQLite it held the only write lock, which nobody can wait for during the work.
        tx.commit().await?;
        let mut deliveries = Vec::with_capacity(tasks.len());
        for task in tasks {
            deliveries.push(self.work(task, &desk).await?);
        }
        Ok(deliveries)
    }

    async fn work<F, Fut>(&self, task: Task, desk: &F) -> Result<Delivery, SupplierError>
    where
        F: Fn(Task) -> Fut,
        Fut: Future<Output = Result<String, DeskError>>,
    {
        // Before the work, so that none is done for nobody.
        if !self.is_wanted(&task).await? {
            return self.discard(&task).await;
        }
        let answer = desk(task.clone()).await;
        // And before the delivery: the work may have taken long.
        if !self.is_wanted(&task).await? {
            return self.discard(&task).await;
        }
        self.deliver(&task, answer).await
    }

    /// Only the kernel can say so. That the run has another worker by now, or waits for another try, is no reason
    /// to drop the work: the next attempt of the step has the same effect key and finds the same task.
    async fn is_wanted(&self, task: &Task) -> Result<bool, StoreError> {
        Ok(match self.kernel.step_interest(task.run, &task.step).await? {
            StepInterest::Wanted => true,
            StepInterest::Canceled | StepInterest::Over => false,
        })
    }

    async fn discard(&self, task: &Task) -> Result<Delivery, SupplierError> {
        let mut tx = self.kernel.begin().await?;
        task::cancel(&mut tx, &task.effect_key).await?;
        tx.commit().await?;
        Ok(Delivery::Discarded)
    }

    /// Answer and signal in one transaction: no step is woken without an answer, and none is answered and sleeps on.
    async fn deliver(
        &self,
        task: &Task,
        answer: Result<String, DeskError>,
    ) -> Result<Delivery, SupplierError> {
        let mut tx = self.kernel.begin().await?;
        let key = &task.effect_key;
        let delivery = match answer {
            Ok(answer) if task::answer(&mut tx, key, &answer).await? => Delivery::Delivered,
            Ok(_) => Delivery::Discarded,
            Err(error) => {
                let why = error.to_string();
                if task::attempt_failed(&mut tx, key, &why, ATTEMPTS_MAX).await? {
                    Delivery::GivenUp
                } else {
                    Delivery::Postponed
                }
            }
        };
        match delivery {
            Delivery::Delivered | Delivery::GivenUp => {
                let signal = Signal::new(QUOTE_SIGNAL, key.as_str());
                let sent = self.kernel.signal_in(&mut tx, signal).await?;
                tx.commit().await?;
                sent.committed();
            }
            Delivery::Discarded | Delivery::Postponed => tx.commit().await?,
        }
        Ok(delivery)
    }
}

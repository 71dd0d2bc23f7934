//! Work that another process does for a waiting step: a supplier's quote.
//!
//! The step writes a task and waits for a signal; it holds no worker meanwhile, for minutes or for weeks. The supplier's
//! process takes tasks from the table, asks the kernel whether anybody still waits, does the work, and delivers answer
//! and signal in one transaction. Neither of the two knows the other, and each may crash at any point.

mod supplier;
pub mod task;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

pub use supplier::{ATTEMPTS_MAX, Delivery, DeskError, Supplier};
use task::{NewTask, TaskState};

use crate::store::{AppStore, AppTx};

/// What kind of signal ends the wait. Its key is the effect key of the step.
pub const QUOTE_SIGNAL: &str = "quote";
/// How long a step waits before it looks for itself.
const LOOK_AFTER: Duration = Duration::from_secs(3_600);

/// What `requestQuote` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct QuoteRequest {
    /// The item's id.
    pub item: String,
    /// How many.
    pub pieces: i64,
}

/// What `requestQuote` yields, and what the supplier has to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    /// The price of all pieces; never negative.
    pub cents: i64,
}

/// Has another process ask the supplier, and waits for it.
///
/// Idempotent: the task's key is the effect key, so the step may run as often as it likes and finds the same task.
#[derive(Clone)]
pub struct RequestQuote {
    /// The database with the tasks.
    pub store: AppStore,
    /// The terms for new tasks. Those that exist keep theirs.
    pub terms: String,
}

impl Idempotent<On<AppTx>> for RequestQuote {
    const NAME: &'static str = "requestQuote";
    const ABOUT: &'static str = "Asks a supplier for a price, and waits for it.";
    type Input = QuoteRequest;
    type Output = Quote;

    async fn run(
        &self,
        cx: &IdempotentCx<On<AppTx>>,
        request: QuoteRequest,
    ) -> ActionResult<Quote> {
        let mut tx = self.store.begin().await?;
        cx.heartbeat_in(&mut tx).await?;
        let new = NewTask {
            effect_key: cx.effect_key(),
            run: cx.run_id(),
            step: cx.step_key(),
            item: &request.item,
            pieces: request.pieces,
            terms: &self.terms,
        };
        let task = task::create_or_find(&mut tx, new).await?;
        tx.commit().await?;
        match task.state {
            TaskState::Open => Err(Stop::wait_for(
                // App-wide: the effect key names one step of one run, whatever its scope. The deadline is no limit
                // for the supplier. When it passes the step comes here again, finds its task and waits on.
                Dependency::on(QUOTE_SIGNAL, cx.effect_key().as_str())
                    .app_wide()
                    .deadline_in(LOOK_AFTER),
            )),
            TaskState::Answered(answer) => usable(&answer),
            TaskState::Failed(why) => Err(Stop::fail("SUPPLIER_UNREACHABLE", why)),
            TaskState::Canceled => Err(Stop::fail("QUOTE_CANCELED", "nobody waited for the quote")),
        }
    }

    async fn plan(&self, _: &StepCx, request: &QuoteRequest) -> PlanResult<Quote> {
        let QuoteRequest { item, pieces } = request;
        Ok(Planned::new(format!("Ask a supplier what {pieces} pieces of {item} cost")))
    }
}

/// An answer that cannot be used does not get better by asking again: the step fails at once.
fn usable(answer: &str) -> ActionResult<Quote> {
    let quote: Quote = serde_json::from_str(answer).or_fail("QUOTE_UNUSABLE")?;
    if quote.cents < 0 {
        return Err(Stop::fail("QUOTE_UNUSABLE", "the supplier quoted less than nothing"));
    }
    Ok(quote)
}

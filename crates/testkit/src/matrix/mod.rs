//! The crash matrix: a scenario, with something going wrong at every single call that its process makes to the store.
//!
//! The scenario is run once undisturbed, to count the calls. Then it is run once per call and kind of trouble, each
//! time on new data, until the run rests, and what the provider was asked to do is compared with what the effect
//! class of each action promises.
//!
//! A failure of the matrix is one of these:
//!
//! - an invariant of the store is broken ([`check_invariants`](crate::suite::check_invariants));
//! - a run that could go on is not looked at for longer than the longest backoff;
//! - the runs do not come to rest, or end otherwise than undisturbed, or a person is asked elsewhere than in the undisturbed
//!   run and where an ambiguous call was marked and its provider does not know it;
//! - an output differs from that of the undisturbed run, or there are other runs: the one of the event and its children;
//! - a run that a person canceled is not canceled, has outcomes or charges that the undisturbed run has not, begins more
//!   than the one step whose call was decided already, or drops an ambiguous effect that happened;
//! - an effect key is not that of its step;
//! - a transactional step's writes are there without its outcome, twice, or not at all;
//! - an ambiguous action is called a second time, or nobody asks about a call that may have happened;
//! - a step whose outcome was recorded is called again (by a worker that can know);
//! - the fence lets a worker through that lost its lease to another one.
//!
//! These are allowed: a pure action is called any number of times before its outcome is recorded, an idempotent one any
//! number of times under its key; a worker that has lost its lease and cannot know it calls an idempotent action; time
//! passes.
//!
//! ```
//! use surefoot_testkit::MemoryFactory;
//! use surefoot_testkit::matrix::{EveryClass, crash_matrix};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // A scenario of one's own implements `Scenario`, a store of one's own brings its `StoreFactory`.
//! let report = crash_matrix::<MemoryFactory, _>(EveryClass::new(), 8).await;
//! assert!(report.failures.is_empty(), "{report}");
//! # }
//! ```

mod attended;
mod canceled;
mod case;
mod every_class;
mod people;
mod plan;
mod process;
mod provider;
mod table;
mod tree;
mod verdict;
mod with_children;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use surefoot_kernel_core::{Amounts, BoxFuture, Dependency, Failure, Micros};
use surefoot_language::{Module, RunsOn};
use tokio::task::JoinSet;

use crate::suite::StoreFactory;
use crate::{Method, living};
pub use attended::Attended;
pub use canceled::Canceled;
use case::{Case, Seen};
pub use every_class::EveryClass;
pub use people::{Reply, Verb};
pub use plan::{Kind, Trouble};
pub use process::{Process, TxOf};
pub use provider::{Did, Entry, Provider};
pub use table::Table;
use verdict::Expected;
pub use with_children::WithChildren;

/// The lease of every worker in the matrix.
pub const LEASE: Micros = living::LEASE;

/// What is run: an application's module, and a workflow on it. Its actions say what they do through the [`Process`]
/// that they run in.
pub trait Scenario<F: StoreFactory>: Send + Sync + 'static {
    /// What the module asks of the store.
    type Binding: RunsOn<TxOf<F>>;

    /// The module, in one process. Its outputs must not depend on ids, time or process.
    fn module(&self, process: &Process<F>) -> Module<Self::Binding>;

    /// The workflows, each with its key. The first one is started, without inputs.
    fn workflows(&self) -> &[(&str, &str)];

    /// The caps of the first one.
    fn budget(&self) -> Amounts;

    /// What the application does when a run waits; none lets time pass.
    fn reply(&self, on: &Dependency) -> Option<Reply>;

    /// What a person does about a run that failed, or that needs one, when the action and people have done so much under
    /// the effect key of the step that is named in the error. None leaves a failed run as it is.
    fn attend(&self, error: &Failure, done: &[Did]) -> Option<Verb>;

    /// What the process does beside the work of its worker, each time behind it: the tasks of its steps, say. It dies with
    /// the process, wherever it is. Nothing, if a scenario does not say.
    fn beside<'a>(&'a self, process: &'a Process<F>) -> BoxFuture<'a, ()> {
        let _ = process;
        Box::pin(std::future::ready(()))
    }
}

/// What came of a matrix.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The calls of the undisturbed run, in order: the points. The keeper's are none: they come in a rhythm of their own.
    pub points: Vec<Method>,
    /// How often the scenario was run: once per point and kind of trouble that makes sense there.
    pub cases: usize,
    /// What is not as it should be. Empty if all is well.
    pub failures: Vec<String>,
    /// What happened to steps, by class and moment.
    pub table: Table,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (points, cases, failures) = (self.points.len(), self.cases, self.failures.len());
        writeln!(f, "{points} points, {cases} cases, {failures} failures")?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "{failure}"))
    }
}

/// Runs a scenario once per point and kind of trouble, so many at the same time.
///
/// # Panics
/// If the undisturbed run does not come to its end: then the scenario is at fault, not a crash.
pub async fn crash_matrix<F: StoreFactory, S: Scenario<F>>(scenario: S, at_once: usize) -> Report {
    crash_matrix_in_steps(scenario, at_once, 1).await
}

/// The same with one of so many cases only, the first one and then each `step`th: for what takes long on a slow store.
/// Where `step` shares no factor with the number of kinds, all points and kinds come by.
///
/// # Panics
/// If the undisturbed run does not come to its end: then the scenario is at fault, not a crash.
pub async fn crash_matrix_in_steps<F: StoreFactory, S: Scenario<F>>(
    scenario: S,
    at_once: usize,
    step: usize,
) -> Report {
    let scenario = Arc::new(scenario);
    let (points, expected) = undisturbed::<F, S>(&scenario).await;
    let expected = Arc::new(expected);
    let mut report =
        Report { cases: 0, failures: Vec::new(), table: Table::default(), points: points.clone() };
    let mut running = JoinSet::new();
    for trouble in plan::all(&points).into_iter().step_by(step.max(1)) {
        report.cases += 1;
        if running.len() >= at_once.max(1) {
            collect(&mut report, &mut running, &expected).await;
        }
        let case = Case::<F, S>::new(scenario.clone(), Some(trouble));
        running.spawn(one(case, trouble));
    }
    while !running.is_empty() {
        collect(&mut report, &mut running, &expected).await;
    }
    report
}

/// Runs a scenario so many times on data that its factory disturbs by itself, on the line for instance, and judges each as
/// if an answer had been lost: the process lives, and finds out what became of whatever is in doubt. The first data set is
/// for the undisturbed run; of each, the first two handles are the test's own.
///
/// # Panics
/// If the undisturbed run does not come to its end: then the scenario is at fault.
pub async fn disturbed_matrix<F: StoreFactory, S: Scenario<F>>(
    scenario: S,
    at_once: usize,
    cases: usize,
) -> Report {
    let scenario = Arc::new(scenario);
    let (points, expected) = undisturbed::<F, S>(&scenario).await;
    let expected = Arc::new(expected);
    let mut report = Report { cases, failures: Vec::new(), table: Table::default(), points };
    let mut running = JoinSet::new();
    for nth in 1..=cases {
        if running.len() >= at_once.max(1) {
            collect(&mut report, &mut running, &expected).await;
        }
        let method = Method::RunCommit;
        let trouble = Trouble { nth: nth as u64, method, kind: Kind::AnswerLost };
        running.spawn(one(Case::<F, S>::new(scenario.clone(), None), trouble));
    }
    while !running.is_empty() {
        collect(&mut report, &mut running, &expected).await;
    }
    report.table = Table::default();
    report
}

type Outcome = (Trouble, Result<Seen, String>);

async fn one<F: StoreFactory, S: Scenario<F>>(case: Case<F, S>, trouble: Trouble) -> Outcome {
    let seen = caught(case.run()).await.and_then(|seen| seen);
    (trouble, seen)
}

async fn collect(report: &mut Report, running: &mut JoinSet<Outcome>, expected: &Expected) {
    match running.join_next().await {
        None => {}
        Some(Err(gone)) => report.failures.push(gone.to_string()),
        Some(Ok((trouble, Err(why)))) => report.failures.push(format!("{trouble}: {why}")),
        Some(Ok((trouble, Ok(seen)))) => {
            let failures = verdict::judge(&seen, expected, trouble);
            report.failures.extend(failures.into_iter().map(|why| format!("{trouble}: {why}")));
            report.table.add(&seen, expected, trouble);
        }
    }
}

#[expect(clippy::panic, reason = "an assertion: a scenario that does not run cannot be tested")]
async fn undisturbed<F: StoreFactory, S: Scenario<F>>(
    scenario: &Arc<S>,
) -> (Vec<Method>, Expected) {
    let case = Case::<F, S>::new(scenario.clone(), None);
    match case.run().await {
        Ok(seen) => (seen.calls.clone(), Expected::of(&seen)),
        Err(why) => panic!("the scenario does not end undisturbed: {why}"),
    }
}

/// The invariants say by a panic what is wrong.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panicked) => std::task::Poll::Ready(Err(said(&*panicked))),
        }
    })
    .await
}

fn said(panicked: &(dyn std::any::Any + Send)) -> String {
    let text = panicked.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panicked.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

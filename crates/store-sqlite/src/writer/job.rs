//! What waits for the writer: an operation, and whoever wants its answer.

use std::time::Instant;

use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use surefoot_kernel_core::{
    BoxFuture, Commit, Committed, Emission, Emit, EmitError, StoreError, Timestamp,
};

use crate::error::{Fault, PortError, Said, Shared};
use crate::event::record::emit_all;
use crate::run::commit::commit_group;

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// A lease must not run out because others write.
    Renew,
    /// A worker waits with a commit in doubt.
    TakeOver,
    Claim,
    Rest,
}

impl Lane {
    pub(crate) const COUNT: usize = 4;
}

/// What an operation may read beside its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cx {
    /// The store's time, one for the whole transaction.
    pub(crate) now: Timestamp,
    /// Past it, an operation that can be continued later stops.
    pub(crate) pause_at: Instant,
}

impl Cx {
    pub(crate) fn is_long(self) -> bool {
        Instant::now() >= self.pause_at
    }
}

/// An operation inside the writer's transaction. It may be run again after a rollback.
///
/// An error that is the store's verdict is found before the first write, so that the transaction goes on without
/// it; an error of the database is not, and costs the transaction.
pub(crate) trait Op: Send + Sync + 'static {
    type Out: Send + 'static;
    type Err: PortError;
    const LANE: Lane;

    /// What it roughly adds to a transaction.
    fn bytes(&self) -> usize {
        0
    }

    fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> impl Future<Output = Result<Self::Out, Self::Err>> + Send + 'a;
}

/// How an operation went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has its answer.
    Done,
    /// It broke a rule of the schema and may have written a part.
    Refused,
    /// The transaction is of no use any more.
    Broken,
}

impl Step {
    fn of(error: Option<&StoreError>) -> Self {
        match error {
            Some(StoreError::Refused(_)) => Self::Refused,
            Some(
                StoreError::Unavailable(_)
                | StoreError::TransactionConflict(_)
                | StoreError::TransactionTimeout { .. }
                | StoreError::UnknownOutcome(_),
            ) => Self::Broken,
            _ => Self::Done,
        }
    }
}

/// What became of the transaction that an operation was in.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// Each has its own answer.
    Committed,
    /// Nobody knows.
    Unknown(Shared),
    /// Rolled back: who has an error of its own has it, the others could not be served.
    RolledBack,
}

/// Something that waits for the writer.
pub(crate) trait Job: Send {
    fn since(&self) -> Instant;
    fn bytes(&self) -> usize;
    fn run<'a>(&'a mut self, conn: &'a mut SqliteConnection, cx: Cx) -> BoxFuture<'a, Step>;
    fn settle(self: Box<Self>, fate: Fate);
}

/// An operation and who asked for it.
pub(crate) struct Ask<O: Op> {
    op: O,
    since: Instant,
    outcome: Option<Result<O::Out, O::Err>>,
    reply: oneshot::Sender<Result<O::Out, O::Err>>,
}

impl<O: Op> Ask<O> {
    pub(crate) fn new(op: O, reply: oneshot::Sender<Result<O::Out, O::Err>>) -> Self {
        Self { op, since: Instant::now(), outcome: None, reply }
    }
}

impl<O: Op> Job for Ask<O> {
    fn since(&self) -> Instant {
        self.since
    }

    fn bytes(&self) -> usize {
        self.op.bytes()
    }

    fn run<'a>(&'a mut self, conn: &'a mut SqliteConnection, cx: Cx) -> BoxFuture<'a, Step> {
        Box::pin(async move {
            let outcome = self.op.run(conn, cx).await;
            let step = outcome.as_ref().err().map_or(Step::Done, |error| Step::of(error.store()));
            self.outcome = Some(outcome);
            step
        })
    }

    fn settle(self: Box<Self>, fate: Fate) {
        settle(self.reply, self.outcome, fate);
    }
}

/// What several of a kind are told, each by itself.
pub(crate) type Answers<G> = Vec<Result<<G as Grouped>::Out, <G as Grouped>::Err>>;

/// What is written together with others of its kind.
pub(crate) trait Grouped: Sized + Send + Sync + 'static {
    type Out: Send;
    type Err: PortError;

    /// What it roughly adds to a transaction.
    fn bytes(&self) -> usize;

    /// Each has an answer of its own: an error costs all of them, a verdict only one.
    fn write(
        conn: &mut SqliteConnection,
        some: &[&Self],
        now: Timestamp,
    ) -> impl Future<Output = Result<Answers<Self>, Fault>> + Send;
}

impl Grouped for Commit {
    type Out = Committed;
    type Err = StoreError;

    fn bytes(&self) -> usize {
        let journal = self.journal.as_ref().map_or(0, |journal| journal.facts.len());
        journal.saturating_add(512)
    }

    async fn write(
        conn: &mut SqliteConnection,
        some: &[&Self],
        now: Timestamp,
    ) -> Result<Answers<Self>, Fault> {
        commit_group(conn, some, now).await
    }
}

impl Grouped for Emit {
    type Out = Emission;
    type Err = EmitError;

    fn bytes(&self) -> usize {
        let (data, context) = (self.event.data.text(), self.event.context.text());
        data.len().saturating_add(context.len())
    }

    async fn write(
        conn: &mut SqliteConnection,
        some: &[&Self],
        now: Timestamp,
    ) -> Result<Answers<Self>, Fault> {
        emit_all(conn, some, now).await
    }
}

/// One of them, and who asked for it.
pub(crate) struct Waiting<G: Grouped> {
    pub(crate) what: G,
    pub(crate) since: Instant,
    outcome: Option<Result<G::Out, G::Err>>,
    reply: oneshot::Sender<Result<G::Out, G::Err>>,
}

impl<G: Grouped> Waiting<G> {
    pub(crate) fn new(what: G, reply: oneshot::Sender<Result<G::Out, G::Err>>) -> Self {
        Self { what, since: Instant::now(), outcome: None, reply }
    }
}

/// Some that are written at once.
pub(crate) struct Group<G: Grouped>(pub(crate) Vec<Waiting<G>>);

impl<G: Grouped> Group<G> {
    /// Each on its own.
    pub(crate) fn split(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|ask| Self(vec![ask]))
    }

    pub(crate) async fn run(&mut self, conn: &mut SqliteConnection, cx: Cx) -> Step {
        let some: Vec<&G> = self.0.iter().map(|ask| &ask.what).collect();
        match G::write(conn, &some, cx.now).await {
            Ok(outcomes) => {
                for (ask, outcome) in self.0.iter_mut().zip(outcomes) {
                    ask.outcome = Some(outcome);
                }
                Step::Done
            }
            Err(fault) => {
                let error = StoreError::from(fault);
                let step = Step::of(Some(&error));
                if let [ask] = &mut *self.0 {
                    ask.outcome = Some(Err(error.into()));
                }
                step
            }
        }
    }

    pub(crate) fn settle(self, fate: Fate) {
        for ask in self.0 {
            settle(ask.reply, ask.outcome, fate.clone());
        }
    }
}

/// Whoever asked may be gone: then nobody needs the answer.
fn settle<T, E: PortError>(
    reply: oneshot::Sender<Result<T, E>>,
    outcome: Option<Result<T, E>>,
    fate: Fate,
) {
    let answer = match (fate, outcome) {
        (Fate::Committed, Some(outcome)) => outcome,
        (Fate::RolledBack, Some(Err(error))) if Step::of(error.store()) != Step::Done => Err(error),
        (Fate::Committed | Fate::RolledBack, _) => {
            let said = Said("the transaction that the write was in was rolled back");
            Err(StoreError::Unavailable(Box::new(said)).into())
        }
        (Fate::Unknown(error), _) => Err(StoreError::UnknownOutcome(Box::new(error)).into()),
    };
    drop(reply.send(answer));
}

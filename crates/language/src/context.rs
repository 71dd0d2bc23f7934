//! What hooks may know and do besides their input.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use surefoot_kernel_core::{
    App, BoxFuture, Cancel, Children, ChildrenCreated, ChildrenError, ChildrenPage, Code,
    EffectKey, FenceError, Invocation, RunId, Scope, StepKey, StoreError, TraceContext,
};

use crate::answer::{Halt, Stop};
use crate::binding::{AnyStore, Binding, Fenced};

mod children;

pub use children::ChildrenOnStep;

/// What a context asks of the worker that made it. Object safe, without default bodies: a wrapper that forgets one
/// would silently change what it answers.
pub trait StepPort: Send + Sync {
    /// Whether this worker still holds the run and nobody wants it canceled; renews the lease on the way.
    fn heartbeat(&self) -> BoxFuture<'_, Result<(), FenceError>>;

    /// Asks the application's resolver. `None` is missing; a value that is not there yet is [`Stop::wait_for`].
    fn resolve<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Option<Value>, Stop>>;

    /// Whether the value at this JSON pointer of the step's config stands in the plan as it is, and does not come out of an
    /// expression.
    fn is_written(&self, pointer: &str) -> bool;

    /// Until the step's `timeout`, if it has one.
    fn time_left(&self) -> Option<Duration>;

    /// Creates children of the step, those that do not exist yet.
    fn children_create(
        &self,
        children: Children,
    ) -> BoxFuture<'_, Result<ChildrenCreated, ChildrenError>>;

    /// Reads children of the step, by index.
    fn children_read(
        &self,
        from: u32,
        limit: u32,
    ) -> BoxFuture<'_, Result<ChildrenPage, StoreError>>;
}

/// No worker behind it: nothing is ever lost, nothing is ever resolved, there is no timeout. For tests of actions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detached;

impl StepPort for Detached {
    fn heartbeat(&self) -> BoxFuture<'_, Result<(), FenceError>> {
        Box::pin(async { Ok(()) })
    }

    fn resolve<'a>(&'a self, _reference: &'a str) -> BoxFuture<'a, Result<Option<Value>, Stop>> {
        Box::pin(async { Ok(None) })
    }

    /// There is no plan that could say otherwise.
    fn is_written(&self, _pointer: &str) -> bool {
        true
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }

    fn children_create(
        &self,
        children: Children,
    ) -> BoxFuture<'_, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(std::future::ready(Ok(children::created(&children))))
    }

    fn children_read(
        &self,
        _from: u32,
        _limit: u32,
    ) -> BoxFuture<'_, Result<ChildrenPage, StoreError>> {
        let page = ChildrenPage { children: Vec::new(), total: 0, next: None };
        Box::pin(std::future::ready(Ok(page)))
    }
}

/// How a step came back from its own wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Resumed {
    /// The signal occurred; this is its data, null if it had none.
    Signaled(Value),
    /// The deadline passed first.
    DeadlinePassed,
    /// The last of the children that it waited for has ended.
    ChildrenEnded,
}

/// What a context is made of. For workers, and for tests of actions.
#[derive(Clone)]
pub struct StepData {
    /// Whose the run is.
    pub app: App,
    /// Where the run is.
    pub scope: Scope,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepKey,
    /// From 1.
    pub attempt: u32,
    /// What started the run.
    pub invocation: Arc<Invocation>,
    /// What publication pinned: kind → name → id.
    pub bindings: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    /// Set if the step comes back from its own wait.
    pub resumed: Option<Resumed>,
    /// Fires when the lease is lost, cancel is requested or the step's time is over.
    pub cancel: Cancel,
    /// The worker.
    pub port: Arc<dyn StepPort>,
}

impl StepData {
    /// The first attempt of a step that nobody works on but the caller.
    ///
    /// ```
    /// use surefoot_kernel_core::RunId;
    /// use surefoot_language::{StepCx, StepData};
    ///
    /// let data = StepData { attempt: 2, ..StepData::detached(RunId::from_bytes([7; 16]), "steps.0") };
    /// let cx = StepCx::new(data);
    /// assert_eq!((cx.attempt(), cx.time_left(), cx.resumed()), (2, None, false));
    /// ```
    #[must_use]
    pub fn detached(run: RunId, step: impl Into<StepKey>) -> Self {
        Self {
            app: App::from("detached"),
            scope: Scope::from("detached"),
            run,
            step: step.into(),
            attempt: 1,
            invocation: Arc::default(),
            bindings: Arc::default(),
            resumed: None,
            cancel: Cancel::default(),
            port: Arc::new(Detached),
        }
    }
}

struct Shared {
    data: StepData,
    /// Made of run and step, once a hook asks for it.
    key: OnceLock<EffectKey>,
    /// The fence's refusal, once it was heard.
    halted: OnceLock<Halt>,
}

/// What every hook of a non-pure action may know. Cheap to clone, `Send + Sync + 'static`.
#[derive(Clone)]
pub struct StepCx(Arc<Shared>);

impl StepCx {
    /// A context, its effect key made of run and step.
    #[must_use]
    pub fn new(data: StepData) -> Self {
        Self(Arc::new(Shared { data, key: OnceLock::new(), halted: OnceLock::new() }))
    }

    /// Whose the run is.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.0.data.app
    }

    /// Where the run is.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.0.data.scope
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.0.data.run
    }

    /// The step: plan path plus iteration indexes.
    #[must_use]
    pub fn step_key(&self) -> &StepKey {
        &self.0.data.step
    }

    /// 1 for the first attempt. For logs; never decide an effect by it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.data.attempt
    }

    /// What started the run, frozen.
    #[must_use]
    pub fn invocation(&self) -> &Invocation {
        &self.0.data.invocation
    }

    /// Where the event that started the run's tree belongs in a trace; link to it from spans of this step.
    #[must_use]
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.invocation().trace.as_ref()
    }

    /// The frozen actor in the application's own shape; `None` for nobody and for an unknown shape.
    #[must_use]
    pub fn actor<A: DeserializeOwned>(&self) -> Option<A> {
        self.invocation().actor.as_ref().and_then(|actor| A::deserialize(actor).ok())
    }

    /// Whether this execution comes back from a wait that the step itself asked for, by signal or by deadline.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.0.data.resumed.is_some()
    }

    /// The data of the signal that ended the step's own wait; `None` if it does not resume, or resumes because its
    /// deadline passed.
    #[must_use]
    pub fn signal(&self) -> Option<&Value> {
        match self.0.data.resumed.as_ref()? {
            Resumed::Signaled(data) => Some(data),
            Resumed::DeadlinePassed | Resumed::ChildrenEnded => None,
        }
    }

    /// The id that publication pinned for a mutable name: `cx.binding("warehouse.main")?`.
    ///
    /// # Errors
    /// `VALUE_UNAVAILABLE` if the plan pins no such name.
    pub fn binding(&self, path: &str) -> Result<String, Stop> {
        let pinned = path.split_once('.').and_then(|(kind, name)| {
            self.0.data.bindings.get(kind).and_then(|names| names.get(name))
        });
        let missing = || unavailable(format!("the plan pins nothing for `{path}`"));
        pinned.cloned().ok_or_else(missing)
    }

    /// Asks the worker's value resolver, once per step: the value is journaled before this returns it to a call of an
    /// idempotent or ambiguous action, and every later attempt of the step, and `reconcile`, is given the same. In a
    /// transactional action it is journaled with the outcome, or rolled back with it.
    ///
    /// At most 64 KiB of JSON, and 1 MiB for all values of a step. Call it before opening a transaction of the action's
    /// own on the kernel's database, which would keep the journal from being written.
    ///
    /// Cancel safe: dropping it forgets the answer, though a value may be journaled already.
    ///
    /// # Errors
    /// `VALUE_UNAVAILABLE` if there is no resolver, no such value, one of another shape, or one that could not be
    /// journaled; `VALUE_TOO_LARGE` past a limit; a wait if the resolver waits; whatever else the resolver stops with.
    pub fn resolve<T: DeserializeOwned>(
        &self,
        reference: &str,
    ) -> impl Future<Output = Result<T, Stop>> + Send + use<T> {
        let (port, reference) = (self.0.data.port.clone(), reference.to_owned());
        async move {
            let value = port.resolve(&reference).await?;
            let missing = || unavailable(format!("there is no value for `{reference}`"));
            serde_json::from_value(value.ok_or_else(missing)?)
                .map_err(|error| unavailable(format!("the value of `{reference}`: {error}")))
        }
    }

    /// Asks now whether this worker still holds the run. Leases renew themselves: nobody has to call this often.
    ///
    /// `cx.heartbeat().await?` is right in every class: the kernel recognises the refusal and records no failure.
    ///
    /// Cancel safe: dropping it forgets the answer.
    ///
    /// # Errors
    /// The lease is lost, cancel was requested, or it could not be found out.
    pub fn heartbeat(&self) -> impl Future<Output = Result<(), FenceError>> + Send + use<> {
        let shared = self.0.clone();
        async move {
            let answer = shared.data.port.heartbeat().await;
            shared.note(&answer);
            answer
        }
    }

    /// Completes when the lease is lost, cancel is requested or the step's time is over. Cancel safe, also in
    /// `select!` loops.
    pub fn canceled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.data.cancel.canceled()
    }

    /// Whether [`StepCx::canceled`] would complete at once.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.0.data.cancel.is_canceled()
    }

    /// Whether the value at this JSON pointer of the step's config was written by the workflow's author, and does not come
    /// out of an expression. What comes out of one is data, which may be anybody's: it must not name what only an author
    /// may name, such as a secret. Of an object it says nothing about its members.
    #[must_use]
    pub fn is_written(&self, pointer: &str) -> bool {
        self.0.data.port.is_written(pointer)
    }

    /// Until the step's `timeout`, if it has one.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.0.data.port.time_left()
    }

    /// What the fence said when it refused this step, if it ever did.
    #[must_use]
    pub fn halted(&self) -> Option<Halt> {
        self.0.halted.get().copied()
    }
}

impl Shared {
    fn note(&self, answer: &Result<(), FenceError>) {
        if let Err(error) = answer {
            self.note_refusal(error);
        }
    }

    fn note_refusal(&self, error: &FenceError) {
        if let Some(halt) = Halt::of_fence(error) {
            // The first refusal stands; a lost lease does not come back.
            let _ = self.halted.set(halt);
        }
    }
}

impl fmt::Debug for StepCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = &self.0.data;
        f.debug_struct("StepCx")
            .field("run", &data.run)
            .field("step", &data.step)
            .field("attempt", &data.attempt)
            .finish_non_exhaustive()
    }
}

fn unavailable(message: String) -> Stop {
    Stop::fail(Code::VALUE_UNAVAILABLE, message)
}

/// Nothing that changes between two runs of the same step is here: no attempt, no key, no clock, nothing to await.
#[derive(Debug, Clone)]
pub struct PureCx(StepCx);

impl PureCx {
    /// The part of a step that a pure action may know.
    #[must_use]
    pub fn new(step: StepCx) -> Self {
        Self(step)
    }

    /// What started the run, frozen.
    #[must_use]
    pub fn invocation(&self) -> &Invocation {
        self.0.invocation()
    }

    /// The id that publication pinned for a mutable name.
    ///
    /// # Errors
    /// `VALUE_UNAVAILABLE` if the plan pins no such name.
    pub fn binding(&self, path: &str) -> Result<String, Stop> {
        self.0.binding(path)
    }

    /// Whether nobody waits for the output any more: a long computation may stop.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.0.is_canceled()
    }
}

/// The only context with a transaction. Dereferences to [`StepCx`].
pub struct TransactionalCx<'t, Tx> {
    step: StepCx,
    tx: &'t mut Tx,
    children: &'t dyn ChildrenOnStep<Tx>,
}

impl<'t, Tx> TransactionalCx<'t, Tx> {
    /// A step on a transaction that the kernel commits with the outcome.
    #[must_use]
    pub fn new(step: StepCx, tx: &'t mut Tx, children: &'t dyn ChildrenOnStep<Tx>) -> Self {
        Self { step, tx, children }
    }

    /// All work of this action goes through here; the kernel commits it with the outcome.
    pub fn tx(&mut self) -> &mut Tx {
        self.tx
    }
}

impl<Tx> Deref for TransactionalCx<'_, Tx> {
    type Target = StepCx;

    fn deref(&self) -> &StepCx {
        &self.step
    }
}

impl<Tx> fmt::Debug for TransactionalCx<'_, Tx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step.fmt(f)
    }
}

macro_rules! keyed_context {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<B: Binding = AnyStore> {
            step: StepCx,
            fence: B::Fence,
        }

        impl<B: Binding> $name<B> {
            pub(crate) fn new(step: StepCx, fence: B::Fence) -> Self {
                Self { step, fence }
            }

            /// Hand it to the provider as it is: the same for every attempt of this step.
            #[must_use]
            pub fn effect_key(&self) -> &EffectKey {
                let Shared { data, key, .. } = &*self.step.0;
                key.get_or_init(|| EffectKey::of(data.run, &data.step))
            }
        }

        impl $name {
            /// A context for an action that names no store: for tests of actions.
            #[must_use]
            pub fn unfenced(step: StepCx) -> Self {
                Self::new(step, ())
            }
        }

        impl<Tx: Send + 'static> $name<crate::binding::On<Tx>> {
            /// A context for an action that names its store: for tests of actions.
            #[must_use]
            pub fn fenced(step: StepCx, fence: crate::erased::SharedFence<Tx>) -> Self {
                Self::new(step, fence)
            }
        }

        impl<B: Binding> Clone for $name<B> {
            fn clone(&self) -> Self {
                Self { step: self.step.clone(), fence: self.fence.clone() }
            }
        }

        impl<B: Binding> Deref for $name<B> {
            type Target = StepCx;

            fn deref(&self) -> &StepCx {
                &self.step
            }
        }

        impl<B: Binding> fmt::Debug for $name<B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.step.fmt(f)
            }
        }
    };
}

keyed_context! {
    /// Has the effect key; and, when the action names a store, the fence for its own transactions. Dereferences to
    /// [`StepCx`].
    IdempotentCx
}

keyed_context! {
    /// Has the effect key, the same in `run` and in every later `reconcile`; and, when the action names a store, the
    /// fence for its own transactions. Dereferences to [`StepCx`].
    AmbiguousCx
}

// Not part of the macro: rustc would show the macro to whoever has no fence.
impl<B: Binding> IdempotentCx<B> {
    /// Checks generation and cancellation on the action's own transaction and locks the run until that ends, so that
    /// a stale worker cannot commit. Call it before the first write, and keep the transaction short.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// The lease is lost, cancel was requested, or it could not be found out. Nothing was written.
    pub async fn heartbeat_in(&self, tx: &mut B::Tx) -> Result<(), FenceError>
    where
        B: Fenced,
    {
        hold::<B>(&self.step, &self.fence, tx).await
    }
}

impl<B: Binding> AmbiguousCx<B> {
    /// Checks generation and cancellation on the action's own transaction and locks the run until that ends, so that
    /// a stale worker cannot commit. Call it before the first write, and keep the transaction short.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// The lease is lost, cancel was requested, or it could not be found out. Nothing was written.
    pub async fn heartbeat_in(&self, tx: &mut B::Tx) -> Result<(), FenceError>
    where
        B: Fenced,
    {
        hold::<B>(&self.step, &self.fence, tx).await
    }
}

async fn hold<B: Fenced>(
    step: &StepCx,
    fence: &B::Fence,
    tx: &mut B::Tx,
) -> Result<(), FenceError> {
    let answer = B::fence(fence).hold(tx).await;
    step.0.note(&answer);
    answer
}

#[cfg(test)]
mod tests;

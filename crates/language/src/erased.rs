//! How typed actions become objects. Applications never see this; workers do.
//!
//! One trait per class, as for the typed ones: what a class may not do is not there to be called. Inputs and outputs
//! are JSON; what does not fit the Rust type is told apart from what the action itself answered.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::payload::{PayloadError, to_value};
use surefoot_kernel_core::{BoxFuture, Code, EffectClass, Fence};

use crate::action::{ActionInput, ActionOutput, Ambiguous, Idempotent, Pure, Transactional};
use crate::answer::{Access, ActionResult, AmbiguousStop, Cost, Planned, Reconciled, Stop};
use crate::binding::Binding;
use crate::context::{AmbiguousCx, ChildrenOnStep, IdempotentCx, PureCx, StepCx, TransactionalCx};

/// A fence as workers share it.
pub type SharedFence<Tx> = Arc<dyn Fence<Tx>>;

/// What an async hook of an object answers.
pub type Hook<'a, T, S = Stop> = BoxFuture<'a, Result<T, HookError<S>>>;

/// The config does not fit the action's `Input`: no hook was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the config does not fit the action's input: {message}")]
pub struct InputError {
    /// What the type says about it.
    pub message: String,
}

impl InputError {
    /// [`Code::CONFIG_INVALID`].
    #[must_use]
    pub fn code(&self) -> Code {
        Code::CONFIG_INVALID
    }
}

/// The output cannot be written as JSON. The hook did its work: an effect stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the output cannot be written as JSON: {message}")]
pub struct OutputError {
    /// What the type says about it.
    pub message: String,
}

impl OutputError {
    /// [`Code::OUTPUT_INVALID`].
    #[must_use]
    pub fn code(&self) -> Code {
        Code::OUTPUT_INVALID
    }
}

/// Why a hook of an object has no answer.
#[derive(Debug)]
pub enum HookError<S = Stop> {
    /// The hook was not called.
    Input(InputError),
    /// The hook was called, and its answer is lost.
    Output(OutputError),
    /// The hook's own word.
    Stopped(S),
}

impl<S> From<InputError> for HookError<S> {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl<S> From<OutputError> for HookError<S> {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

/// A pure action.
pub trait DynPure: Send + Sync {
    /// Whether it wants a thread of its own.
    fn is_heavy(&self) -> bool;

    /// Runs it, on the caller's thread.
    ///
    /// # Errors
    /// The input does not fit, the output cannot be written, or the action stopped.
    fn run(&self, cx: &StepCx, input: &Value) -> Result<Value, HookError>;
}

/// The hooks that every class but pure has.
pub trait DynEffect: Send + Sync {
    /// Whether the run's actor may do this.
    fn authorize<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Access>;

    /// What one call charges.
    ///
    /// # Errors
    /// The input does not fit.
    fn cost(&self, input: &Value) -> Result<Cost, InputError>;

    /// The preview, for dry runs.
    fn plan<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Planned<Value>>;
}

/// A transaction of a step, and what creates children on it.
pub struct OnTx<'a, Tx> {
    /// The caller commits it or rolls it back.
    pub tx: &'a mut Tx,
    /// The worker's.
    pub children: &'a dyn ChildrenOnStep<Tx>,
}

/// A transactional action of one transaction type.
pub trait DynTransactional<Tx>: DynEffect {
    /// Runs it on a transaction that the caller commits or rolls back.
    fn run<'a>(&'a self, cx: &'a StepCx, on: OnTx<'a, Tx>, input: &'a Value) -> Hook<'a, Value>;
}

/// An idempotent action. `F` is its fence: `()` if it names no store.
pub trait DynIdempotent<F>: DynEffect {
    /// Runs it.
    fn run<'a>(&'a self, cx: &'a StepCx, fence: F, input: &'a Value) -> Hook<'a, Value>;
}

/// An ambiguous action. `F` is its fence: `()` if it names no store.
pub trait DynAmbiguous<F>: DynEffect {
    /// Whether its [`authorize`](DynEffect::authorize) and [`cost`](DynEffect::cost) have something to say. Without,
    /// all that they do is to read the input.
    fn is_guarded(&self) -> bool;

    /// Runs it. The mark must be committed.
    fn run<'a>(
        &'a self,
        cx: &'a StepCx,
        fence: F,
        input: &'a Value,
    ) -> Hook<'a, Value, AmbiguousStop>;

    /// Asks what became of the effect.
    fn reconcile<'a>(
        &'a self,
        cx: &'a StepCx,
        fence: F,
        input: &'a Value,
    ) -> Hook<'a, Reconciled<Value>>;
}

/// An action that names no store.
#[derive(Clone)]
pub enum FreeObject {
    /// Of class pure.
    Pure(Arc<dyn DynPure>),
    /// Of class idempotent.
    Idempotent(Arc<dyn DynIdempotent<()>>),
    /// Of class ambiguous.
    Ambiguous(Arc<dyn DynAmbiguous<()>>),
}

/// An action as a worker calls it whose store has transactions of type `Tx`.
pub enum Object<Tx> {
    /// Of class pure.
    Pure(Arc<dyn DynPure>),
    /// Of class transactional.
    Transactional(Arc<dyn DynTransactional<Tx>>),
    /// Of class idempotent, with or without a use for the fence.
    Idempotent(Arc<dyn DynIdempotent<SharedFence<Tx>>>),
    /// Of class ambiguous, with or without a use for the fence.
    Ambiguous(Arc<dyn DynAmbiguous<SharedFence<Tx>>>),
}

impl<Tx> Object<Tx> {
    /// What the action promises.
    #[must_use]
    pub fn class(&self) -> EffectClass {
        match self {
            Self::Pure(_) => EffectClass::Pure,
            Self::Transactional(_) => EffectClass::Transactional,
            Self::Idempotent(_) => EffectClass::Idempotent,
            Self::Ambiguous(_) => EffectClass::Ambiguous,
        }
    }

    /// The hooks that every class but pure has.
    #[must_use]
    pub fn effect(&self) -> Option<&dyn DynEffect> {
        match self {
            Self::Pure(_) => None,
            Self::Transactional(action) => Some(&**action),
            Self::Idempotent(action) => Some(&**action),
            Self::Ambiguous(action) => Some(&**action),
        }
    }
}

impl<Tx> Clone for Object<Tx> {
    fn clone(&self) -> Self {
        match self {
            Self::Pure(action) => Self::Pure(action.clone()),
            Self::Transactional(action) => Self::Transactional(action.clone()),
            Self::Idempotent(action) => Self::Idempotent(action.clone()),
            Self::Ambiguous(action) => Self::Ambiguous(action.clone()),
        }
    }
}

impl<Tx> From<FreeObject> for Object<Tx> {
    fn from(free: FreeObject) -> Self {
        match free {
            FreeObject::Pure(action) => Self::Pure(action),
            FreeObject::Idempotent(action) => Self::Idempotent(Arc::new(Unfenced(action))),
            FreeObject::Ambiguous(action) => Self::Ambiguous(Arc::new(Unfenced(action))),
        }
    }
}

fn read<I: ActionInput>(input: &Value) -> Result<I, InputError> {
    I::deserialize(input).map_err(|error| InputError { message: error.to_string() })
}

fn write<O: ActionOutput>(output: O) -> Result<Value, OutputError> {
    to_value(&output).map_err(|error| OutputError { message: said(error) })
}

/// Where and why.
fn said(PayloadError { pointer, rule }: PayloadError) -> String {
    if pointer.is_empty() { rule.to_string() } else { format!("at `{pointer}`, {rule}") }
}

/// Keeps what the step's fence said, in case the action's error hides it.
fn stopped(cx: &StepCx) -> impl FnOnce(Stop) -> HookError {
    |stop| HookError::Stopped(stop.after(cx.halted()))
}

pub(crate) struct PureObject<A>(pub(crate) A);

impl<A: Pure> DynPure for PureObject<A> {
    fn is_heavy(&self) -> bool {
        A::HEAVY
    }

    fn run(&self, cx: &StepCx, input: &Value) -> Result<Value, HookError> {
        let output = self.0.run(&PureCx::new(cx.clone()), read(input)?).map_err(stopped(cx))?;
        Ok(write(output)?)
    }
}

/// The three hooks that read the same in every class; `self.0` is the typed action. One that is not guarded is asked
/// for nothing before its call, but its input is read all the same.
macro_rules! effect_hooks {
    () => {
        effect_hooks! { true }
    };
    ($guarded:expr) => {
        fn authorize<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Access> {
            Box::pin(async move {
                let input = read(input)?;
                if !$guarded {
                    return Ok(Access::Allowed);
                }
                self.0.authorize(cx, &input).await.map_err(stopped(cx))
            })
        }

        fn cost(&self, input: &Value) -> Result<Cost, InputError> {
            let input = read(input)?;
            Ok(if $guarded { self.0.cost(&input) } else { Cost::none() })
        }

        fn plan<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Planned<Value>> {
            Box::pin(async move {
                let planned = self.0.plan(cx, &read(input)?).await.map_err(stopped(cx))?;
                Ok(planned.try_map(write)?)
            })
        }
    };
}

pub(crate) struct TransactionalObject<A, Tx>(A, PhantomData<fn() -> Tx>);

impl<A, Tx> TransactionalObject<A, Tx> {
    pub(crate) fn new(action: A) -> Self {
        Self(action, PhantomData)
    }
}

impl<Tx: Send + 'static, A: Transactional<Tx>> DynEffect for TransactionalObject<A, Tx> {
    effect_hooks!();
}

impl<Tx: Send + 'static, A: Transactional<Tx>> DynTransactional<Tx> for TransactionalObject<A, Tx> {
    fn run<'a>(&'a self, cx: &'a StepCx, on: OnTx<'a, Tx>, input: &'a Value) -> Hook<'a, Value> {
        Box::pin(async move {
            let input = read(input)?;
            let mut on_tx = TransactionalCx::new(cx.clone(), on.tx, on.children);
            let output = self.0.run(&mut on_tx, input).await.map_err(stopped(cx))?;
            Ok(write(output)?)
        })
    }
}

pub(crate) struct IdempotentObject<A, B>(A, PhantomData<fn() -> B>);

impl<A, B> IdempotentObject<A, B> {
    pub(crate) fn new(action: A) -> Self {
        Self(action, PhantomData)
    }
}

impl<B: Binding, A: Idempotent<B>> DynEffect for IdempotentObject<A, B> {
    effect_hooks!();
}

impl<B: Binding, A: Idempotent<B>> DynIdempotent<B::Fence> for IdempotentObject<A, B> {
    fn run<'a>(&'a self, cx: &'a StepCx, fence: B::Fence, input: &'a Value) -> Hook<'a, Value> {
        Box::pin(async move {
            let keyed = IdempotentCx::<B>::new(cx.clone(), fence);
            let output = self.0.run(&keyed, read(input)?).await.map_err(stopped(cx))?;
            Ok(write(output)?)
        })
    }
}

pub(crate) struct AmbiguousObject<A, B>(A, PhantomData<fn() -> B>);

impl<A, B> AmbiguousObject<A, B> {
    pub(crate) fn new(action: A) -> Self {
        Self(action, PhantomData)
    }
}

impl<B: Binding, A: Ambiguous<B>> DynEffect for AmbiguousObject<A, B> {
    effect_hooks! { A::GUARDED }
}

impl<B: Binding, A: Ambiguous<B>> DynAmbiguous<B::Fence> for AmbiguousObject<A, B> {
    fn is_guarded(&self) -> bool {
        A::GUARDED
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepCx,
        fence: B::Fence,
        input: &'a Value,
    ) -> Hook<'a, Value, AmbiguousStop> {
        Box::pin(async move {
            let keyed = AmbiguousCx::<B>::new(cx.clone(), fence);
            let answer = self.0.run(&keyed, read(input)?).await;
            let output = answer.map_err(|stop| HookError::Stopped(stop.after(cx.halted())))?;
            Ok(write(output)?)
        })
    }

    fn reconcile<'a>(
        &'a self,
        cx: &'a StepCx,
        fence: B::Fence,
        input: &'a Value,
    ) -> Hook<'a, Reconciled<Value>> {
        Box::pin(async move {
            let keyed = AmbiguousCx::<B>::new(cx.clone(), fence);
            let found = self.0.reconcile(&keyed, read(input)?).await.map_err(stopped(cx))?;
            Ok(found.try_map(write)?)
        })
    }
}

pub(crate) struct PureFn<F, I, O>(F, PhantomData<fn(I) -> O>);

impl<F, I, O> PureFn<F, I, O> {
    pub(crate) fn new(run: F) -> Self {
        Self(run, PhantomData)
    }
}

impl<I, O, F> DynPure for PureFn<F, I, O>
where
    I: ActionInput,
    O: ActionOutput,
    F: Fn(I) -> ActionResult<O> + Send + Sync + 'static,
{
    fn is_heavy(&self) -> bool {
        false
    }

    fn run(&self, cx: &StepCx, input: &Value) -> Result<Value, HookError> {
        Ok(write((self.0)(read(input)?).map_err(stopped(cx))?)?)
    }
}

pub(crate) struct IdempotentFn<P, F, I, O> {
    plan: P,
    run: F,
    types: PhantomData<fn(I) -> O>,
}

impl<P, F, I, O> IdempotentFn<P, F, I, O> {
    pub(crate) fn new(plan: P, run: F) -> Self {
        Self { plan, run, types: PhantomData }
    }
}

impl<I, O, P, F> DynEffect for IdempotentFn<P, F, I, O>
where
    I: ActionInput,
    O: ActionOutput,
    P: Fn(&I) -> Planned<O> + Send + Sync + 'static,
    F: Send + Sync + 'static,
{
    fn authorize<'a>(&'a self, _cx: &'a StepCx, input: &'a Value) -> Hook<'a, Access> {
        Box::pin(async move {
            let _: I = read(input)?;
            Ok(Access::Allowed)
        })
    }

    fn cost(&self, input: &Value) -> Result<Cost, InputError> {
        let _: I = read(input)?;
        Ok(Cost::none())
    }

    fn plan<'a>(&'a self, _cx: &'a StepCx, input: &'a Value) -> Hook<'a, Planned<Value>> {
        Box::pin(async move { Ok((self.plan)(&read(input)?).try_map(write)?) })
    }
}

impl<I, O, P, F, Fut> DynIdempotent<()> for IdempotentFn<P, F, I, O>
where
    I: ActionInput,
    O: ActionOutput,
    P: Fn(&I) -> Planned<O> + Send + Sync + 'static,
    F: Fn(IdempotentCx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ActionResult<O>> + Send + 'static,
{
    fn run<'a>(&'a self, cx: &'a StepCx, (): (), input: &'a Value) -> Hook<'a, Value> {
        Box::pin(async move {
            let keyed = IdempotentCx::unfenced(cx.clone());
            let output = (self.run)(keyed, read(input)?).await.map_err(stopped(cx))?;
            Ok(write(output)?)
        })
    }
}

/// Lets an action that names no store run on any: the fence is offered and not used.
struct Unfenced<A: ?Sized>(Arc<A>);

impl<A: DynEffect + ?Sized> DynEffect for Unfenced<A> {
    fn authorize<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Access> {
        self.0.authorize(cx, input)
    }

    fn cost(&self, input: &Value) -> Result<Cost, InputError> {
        self.0.cost(input)
    }

    fn plan<'a>(&'a self, cx: &'a StepCx, input: &'a Value) -> Hook<'a, Planned<Value>> {
        self.0.plan(cx, input)
    }
}

impl<F> DynIdempotent<F> for Unfenced<dyn DynIdempotent<()>> {
    fn run<'a>(&'a self, cx: &'a StepCx, _fence: F, input: &'a Value) -> Hook<'a, Value> {
        self.0.run(cx, (), input)
    }
}

impl<F> DynAmbiguous<F> for Unfenced<dyn DynAmbiguous<()>> {
    fn is_guarded(&self) -> bool {
        self.0.is_guarded()
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepCx,
        _fence: F,
        input: &'a Value,
    ) -> Hook<'a, Value, AmbiguousStop> {
        self.0.run(cx, (), input)
    }

    fn reconcile<'a>(
        &'a self,
        cx: &'a StepCx,
        _fence: F,
        input: &'a Value,
    ) -> Hook<'a, Reconciled<Value>> {
        self.0.reconcile(cx, (), input)
    }
}

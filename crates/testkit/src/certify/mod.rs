//! Certificates: does an action honour the effect class that it declares?
//!
//! [`certify!`](crate::certify!) drives an action through what can happen to it (repeats, crashes at every await,
//! duplicates at the same time) and compares what it did to its world with what its class promises. It expands to one
//! test per drill. The drills are functions that return a [`Verdict`], so they can be called without the macro too.
//!
//! A certificate is as good as its `acted`: it has to count every change of the world, whoever made it.

pub mod ambiguous;
mod hook;
pub mod idempotent;
pub mod pure;
pub mod transactional;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use surefoot_kernel_core::{Micros, RunId};
use surefoot_language::{StepCx, StepData};

/// How long a drill may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// A hook that pauses more often than this is interrupted at so many of its pauses.
const PAUSES_MAX: usize = 200;

/// A future on the test's own thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a drill found.
pub type Verdict = Result<(), Broken>;

/// How an action broke the promise of its class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{action}` {what}")]
pub struct Broken {
    /// The action's name.
    pub action: &'static str,
    /// What it did that its class forbids, and what to do about it.
    pub what: String,
}

impl Broken {
    fn new(action: &'static str, what: impl Into<String>) -> Self {
        Self { action, what: what.into() }
    }
}

/// What a drill needs to know of an action and its world.
pub struct Certificate<W, A, I> {
    world: Box<dyn Fn() -> Local<'static, W>>,
    action: Box<dyn Fn(&W) -> A>,
    input: Box<dyn Fn() -> I>,
    #[expect(clippy::type_complexity, reason = "a closure that lends its argument to its future")]
    acted: Box<dyn for<'w> Fn(&'w W) -> Local<'w, u64>>,
    #[expect(clippy::type_complexity, reason = "a closure that lends its argument to its future")]
    later: Option<Box<dyn for<'w> Fn(&'w W, Micros) -> Local<'w, ()>>>,
}

impl<W, A, I> Certificate<W, A, I> {
    /// `world` makes an untouched world, `action` the action of a new process in it, `input` what it is given, and
    /// `acted` counts how often the world was changed.
    pub fn new(
        world: impl Fn() -> Local<'static, W> + 'static,
        action: impl Fn(&W) -> A + 'static,
        input: impl Fn() -> I + 'static,
        acted: impl for<'w> Fn(&'w W) -> Local<'w, u64> + 'static,
    ) -> Self {
        let (world, action) = (Box::new(world), Box::new(action));
        Self { world, action, input: Box::new(input), acted: Box::new(acted), later: None }
    }

    /// Lets time pass in the world: for providers that learn of something with a delay, and for clocks.
    #[must_use]
    pub fn later(
        mut self,
        later: impl for<'w> Fn(&'w W, Micros) -> Local<'w, ()> + 'static,
    ) -> Self {
        self.later = Some(Box::new(later));
        self
    }

    /// The store in the world, whose transactions a transactional action works on.
    pub fn store<S>(self, store: impl Fn(&W) -> S + 'static) -> OnStore<W, A, I, S> {
        OnStore { certificate: self, store: Box::new(store) }
    }

    async fn fresh(&self) -> World<'_, W, A, I> {
        World { world: (self.world)().await, certificate: self }
    }
}

impl<W, A, I> fmt::Debug for Certificate<W, A, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// A certificate of an action that works on the store's transactions.
pub struct OnStore<W, A, I, S> {
    certificate: Certificate<W, A, I>,
    store: Box<dyn Fn(&W) -> S>,
}

impl<W, A, I, S> fmt::Debug for OnStore<W, A, I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnStore").finish_non_exhaustive()
    }
}

/// One untouched world, for one course of events.
struct World<'c, W, A, I> {
    world: W,
    certificate: &'c Certificate<W, A, I>,
}

impl<W, A, I> World<'_, W, A, I> {
    /// The action as a new process has it.
    fn action(&self) -> A {
        (self.certificate.action)(&self.world)
    }

    fn input(&self) -> I {
        (self.certificate.input)()
    }

    async fn acted(&self) -> u64 {
        (self.certificate.acted)(&self.world).await
    }

    /// Whether the world has a time that can pass.
    async fn later(&self, span: Micros) -> bool {
        let Some(later) = &self.certificate.later else { return false };
        later(&self.world, span).await;
        true
    }
}

/// A step of one run; another number is another effect key.
fn step(number: u8) -> StepCx {
    StepCx::new(StepData::detached(RunId::from_bytes([number; 16]), "steps.0"))
}

/// A drill that gets stuck has found something too.
async fn in_time(action: &'static str, drill: impl Future<Output = Verdict>) -> Verdict {
    let stuck = || Broken::new(action, format!("did not come back within {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, drill).await.unwrap_or_else(|_| Err(stuck()))
}

/// Whether the world was changed so often; `when` has more to say about the number of changes, if they are others.
async fn has_acted<W, A, I>(
    action: &'static str,
    world: &World<'_, W, A, I>,
    expected: u64,
    when: impl FnOnce(u64) -> String,
) -> Verdict {
    let acted = world.acted().await;
    if acted == expected {
        return Ok(());
    }
    let what = format!("acted {} instead of {} {}", times(acted), times(expected), when(acted));
    Err(Broken::new(action, what))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// What `acted` of [`certify!`](crate::certify!) counted, whatever its type. What is no count is beyond all.
#[doc(hidden)]
pub fn count(acted: impl TryInto<u64>) -> u64 {
    acted.try_into().unwrap_or(u64::MAX)
}

/// Certifies actions: one module per action, in it one `#[tokio::test]` per drill.
///
/// | line | what it says |
/// |---|---|
/// | `world` | makes a new, untouched world; may `.await` |
/// | `action` | the action of a new process in that world |
/// | `input` | what it is given |
/// | `acted` | how often the world was changed; may `.await` |
/// | `store` | transactional actions: the store in that world |
/// | `later` | optional: lets time pass in that world; may `.await` |
///
/// The class is named too, so an action that changes its class breaks its certificate.
///
/// ```
/// use std::collections::BTreeSet;
/// use std::sync::{Arc, Mutex};
/// use surefoot_language::{ActionResult, Idempotent, IdempotentCx, PlanResult, Planned, StepCx};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { item: String }
///
/// #[derive(Clone, Default)]
/// struct Outbox(Arc<Mutex<BTreeSet<String>>>);
///
/// struct Mail { outbox: Outbox }
/// impl Idempotent for Mail {
///     const NAME: &'static str = "mail";
///     type Input = Order;
///     type Output = ();
///     async fn run(&self, cx: &IdempotentCx, _: Order) -> ActionResult<()> {
///         self.outbox.0.lock().unwrap().insert(cx.effect_key().to_string());
///         Ok(())
///     }
///     async fn plan(&self, _: &StepCx, order: &Order) -> PlanResult<()> {
///         Ok(Planned::new(format!("Order {}", order.item)))
///     }
/// }
///
/// surefoot_testkit::certify! {
///     mail: idempotent {
///         world: Outbox::default(),
///         action: |outbox| Mail { outbox: outbox.clone() },
///         input: Order { item: "bolt".into() },
///         acted: |outbox| outbox.0.lock().unwrap().len(),
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! certify {
    ($($name:ident: $class:ident { $($lines:tt)* })+) => {$(
        mod $name {
            use super::*;
            $crate::certify! { @class $class { $($lines)* } }
        }
    )+};
    (@class pure $lines:tt) => {
        $crate::certify! { @drills pure [repeats leaves_no_trace] $lines }
    };
    (@class transactional $lines:tt) => {
        $crate::certify! { @drills transactional [commits rolls_back crashes] $lines }
    };
    (@class idempotent $lines:tt) => {
        $crate::certify! {
            @drills idempotent [repeats other_keys crashes duplicates lost_lease] $lines
        }
    };
    (@class ambiguous $lines:tt) => {
        $crate::certify! {
            @drills ambiguous [answers other_keys crashes asks unknown_keys guards] $lines
        }
    };
    (@drills $class:ident [$($drill:ident)+] $lines:tt) => {$(
        #[tokio::test]
        async fn $drill() {
            let certificate = $crate::certify!(@certificate $lines);
            if let Err(broken) = $crate::certify::$class::$drill(&certificate).await {
                panic!("{broken}");
            }
        }
    )+};
    (@certificate {
        world: $world:expr,
        action: |$in_action:pat_param| $action:expr,
        input: $input:expr,
        acted: |$in_acted:pat_param| $acted:expr
        $(, store: |$in_store:pat_param| $store:expr)?
        $(, later: |$in_later:pat_param, $span:pat_param| $later:expr)?
        $(,)?
    }) => {
        $crate::certify::Certificate::new(
            || ::std::boxed::Box::pin(async { $world }),
            |$in_action| $action,
            || $input,
            |$in_acted| {
                ::std::boxed::Box::pin(async move { $crate::certify::count($acted) })
            },
        )
        $(.later(|$in_later, $span| ::std::boxed::Box::pin(async move { $later })))?
        $(.store(|$in_store| $store))?
    };
}

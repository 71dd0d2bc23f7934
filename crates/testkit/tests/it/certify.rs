//! Certificates: honest actions of each class get theirs, and a wrong one of each class does not.

#![expect(clippy::wildcard_enum_match_arm, reason = "each hook knows its own few flaws")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use surefoot_kernel_core::Micros;
use surefoot_language::{
    Access, ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Cost, Idempotent,
    IdempotentCx, On, PlanResult, Planned, Pure, PureCx, ReconcileResult, Reconciled, StepCx,
    Transactional, TransactionalCx,
};
use surefoot_testkit::certify::{Certificate, OnStore, Verdict};
use surefoot_testkit::{MemoryStore, MemoryTx, certify};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    boxes: i64,
}

fn order() -> Order {
    Order { boxes: 3 }
}

/// The pause of a call over a network.
async fn network() {
    tokio::task::yield_now().await;
}

/// How an action errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Pure: its output is the time.
    ReadsAClock,
    /// Pure: its output is the time in the world's days.
    ReadsTheDay,
    /// Pure, in transactions: it writes to the world by itself.
    WritesElsewhere,
    /// Looks for its key, and only then writes it down: two at once both find nothing.
    LooksThenWrites,
    /// It forgets its key.
    ForgetsItsKey,
    /// It knows each order, not each key.
    KnowsOrders,
    /// It does the work, and then writes down the key.
    WritesTheKeyLast,
    /// It does not heed its fence.
    IgnoresItsFence,
    /// `reconcile` says that it happened, whatever happened.
    SaysYes,
    /// `reconcile` says that it was refused, whatever happened.
    SaysNo,
    /// `reconcile` acts.
    ActsWhenAsked,
    /// `run` says that nothing happened, when something did.
    Denies,
    /// The provider learns of the key long after the effect, later than the action promises.
    KeyComesLate,
}

/// The world outside: a provider, the day, a store.
#[derive(Clone, Default)]
struct World {
    keys: Arc<Mutex<Vec<String>>>,
    /// Effects without a key.
    nameless: Arc<AtomicU64>,
    passed: Arc<Mutex<Micros>>,
    store: MemoryStore,
}

impl World {
    fn knows(&self, key: &str) -> bool {
        self.keys.lock().unwrap().iter().any(|known| known == key)
    }

    fn act(&self, key: &str) {
        self.keys.lock().unwrap().push(key.to_owned());
    }

    fn act_nameless(&self) {
        self.nameless.fetch_add(1, Ordering::SeqCst);
    }

    fn acted(&self) -> u64 {
        let table = ["row", "other"].map(|key| u64::from(self.store.table_row(key).is_some()));
        let keys = self.keys.lock().unwrap().len() as u64;
        keys + self.nameless.load(Ordering::SeqCst) + table.iter().sum::<u64>()
    }

    fn pass(&self, span: Micros) {
        *self.passed.lock().unwrap() = span;
    }
}

struct Act {
    world: World,
    flaw: Flaw,
    made: Instant,
}

impl Act {
    fn new(world: &World, flaw: Flaw) -> Self {
        Self { world: world.clone(), flaw, made: Instant::now() }
    }
}

impl Pure for Act {
    const NAME: &'static str = "price";
    type Input = Order;
    type Output = i64;

    fn run(&self, _: &PureCx, order: Order) -> ActionResult<i64> {
        Ok(match self.flaw {
            Flaw::ReadsAClock => self.made.elapsed().as_nanos() as i64,
            Flaw::ReadsTheDay => self.world.passed.lock().unwrap().get() / 86_400_000_000,
            Flaw::WritesElsewhere => {
                self.world.act_nameless();
                order.boxes
            }
            _ => order.boxes * 250,
        })
    }
}

impl Transactional<MemoryTx> for Act {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, MemoryTx>, order: Order) -> ActionResult<i64> {
        network().await;
        if self.flaw == Flaw::WritesElsewhere {
            self.world.act_nameless();
        } else {
            cx.tx().table().insert("row".to_owned(), order.boxes.to_string());
        }
        network().await;
        Ok(order.boxes)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Book"))
    }
}

impl Idempotent for Act {
    const NAME: &'static str = "mail";
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &IdempotentCx, order: Order) -> ActionResult<i64> {
        let key = match self.flaw {
            Flaw::KnowsOrders => order.boxes.to_string(),
            _ => cx.effect_key().to_string(),
        };
        network().await;
        match self.flaw {
            Flaw::ForgetsItsKey => self.world.act_nameless(),
            Flaw::LooksThenWrites => {
                let knows = self.world.knows(&key);
                network().await;
                if !knows {
                    self.world.act(&key);
                }
            }
            Flaw::WritesTheKeyLast if !self.world.knows(&key) => {
                self.world.act_nameless();
                network().await;
                // What is counted twice here would be there twice: the nameless effect and its late name are one.
                self.world.nameless.fetch_sub(1, Ordering::SeqCst);
                self.world.act(&key);
            }
            _ if !self.world.knows(&key) => self.world.act(&key),
            _ => {}
        }
        network().await;
        Ok(order.boxes)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Write"))
    }
}

/// The same behind a fence.
struct Fenced(Act);

impl Idempotent<On<MemoryTx>> for Fenced {
    const NAME: &'static str = "note";
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &IdempotentCx<On<MemoryTx>>, order: Order) -> ActionResult<i64> {
        use surefoot_kernel_core::TxStore;

        let store = &self.0.world.store;
        let mut tx = store.begin().await?;
        if self.0.flaw != Flaw::IgnoresItsFence {
            cx.heartbeat_in(&mut tx).await?;
        }
        let key = cx.effect_key().to_string();
        let row =
            if tx.table().get("row").is_none_or(|known| *known == key) { "row" } else { "other" };
        tx.table().insert(row.to_owned(), key);
        network().await;
        TxStore::commit(store, tx).await?;
        Ok(order.boxes)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Note"))
    }
}

impl Ambiguous for Act {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(600);
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &AmbiguousCx, order: Order) -> AmbiguousResult<i64> {
        network().await;
        match self.flaw {
            Flaw::ForgetsItsKey => self.world.act_nameless(),
            Flaw::WritesTheKeyLast => {
                self.world.act_nameless();
                network().await;
                self.world.nameless.fetch_sub(1, Ordering::SeqCst);
                self.world.act(cx.effect_key().as_str());
            }
            _ => self.world.act(cx.effect_key().as_str()),
        }
        network().await;
        if self.flaw == Flaw::Denies {
            return Err(AmbiguousStop::nothing_happened_retry("BUSY", "429"));
        }
        Ok(order.boxes)
    }

    async fn reconcile(&self, cx: &AmbiguousCx, order: Order) -> ReconcileResult<i64> {
        network().await;
        if self.flaw == Flaw::ActsWhenAsked {
            self.world.act_nameless();
        }
        let is_visible = match self.flaw {
            // It becomes known after an hour; ten minutes were promised.
            Flaw::KeyComesLate => *self.world.passed.lock().unwrap() >= Micros::from_secs(3_600),
            _ => true,
        };
        let knows = is_visible && self.world.knows(cx.effect_key().as_str());
        Ok(match self.flaw {
            Flaw::SaysYes => Reconciled::Succeeded(order.boxes),
            Flaw::SaysNo => Reconciled::failed("CARD_DECLINED", "51"),
            _ if knows => Reconciled::Succeeded(order.boxes),
            _ => Reconciled::NotFound,
        })
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Pay"))
    }
}

fn certificate<A: 'static>(
    flaw: Flaw,
    action: impl Fn(Act) -> A + 'static,
) -> Certificate<World, A, Order> {
    let make = move |world: &World| action(Act::new(world, flaw));
    let world = || Box::pin(async { World::default() }) as certify::Local<_>;
    let certificate =
        Certificate::new(world, make, order, |world| Box::pin(async move { world.acted() }));
    certificate.later(|world, span| Box::pin(async move { world.pass(span) }))
}

fn act(flaw: Flaw) -> Certificate<World, Act, Order> {
    certificate(flaw, |act| act)
}

fn on_store(flaw: Flaw) -> OnStore<World, Act, Order, MemoryStore> {
    act(flaw).store(|world: &World| world.store.clone())
}

/// The drill that finds the flaw, and what it says of it.
#[track_caller]
fn finds(verdict: Verdict, says: &str) {
    let broken = verdict.unwrap_err().to_string();
    assert!(broken.contains(says), "{broken}");
}

#[tokio::test]
async fn a_pure_action_that_reads_a_clock_gets_no_certificate() {
    use surefoot_testkit::certify::pure::{leaves_no_trace, repeats};

    finds(repeats(&act(Flaw::ReadsAClock)).await, "another output for the same input at repeat");
    finds(repeats(&act(Flaw::ReadsTheDay)).await, "another output for the same input a year later");
    finds(leaves_no_trace(&act(Flaw::WritesElsewhere)).await, "changed the world once");
}

#[tokio::test]
async fn a_transactional_action_that_writes_elsewhere_gets_no_certificate() {
    use surefoot_testkit::certify::transactional::{commits, crashes, rolls_back};

    let wrong = on_store(Flaw::WritesElsewhere);
    finds(rolls_back(&wrong).await, "changed the world once instead of 0 times after a rollback");
    finds(crashes(&wrong).await, "after a crash at pause 1");
    assert_eq!(commits(&wrong).await, Ok(()), "what is committed does not tell");
}

#[tokio::test]
async fn an_idempotent_action_that_acts_twice_gets_no_certificate() {
    use surefoot_testkit::certify::idempotent::{
        crashes, duplicates, lost_lease, other_keys, repeats,
    };

    let forgets = act(Flaw::ForgetsItsKey);
    finds(repeats(&forgets).await, "acted 2 times instead of once when run 2 times under one key");
    finds(crashes(&forgets).await, "acted 2 times");
    finds(duplicates(&forgets).await, "acted 3 times");
    let looks = act(Flaw::LooksThenWrites);
    assert_eq!(repeats(&looks).await, Ok(()), "one after the other it is right");
    finds(duplicates(&looks).await, "acted 2 times instead of once with a duplicate behind by");
    finds(crashes(&act(Flaw::WritesTheKeyLast)).await, "after a crash at pause 1");
    finds(
        other_keys(&act(Flaw::KnowsOrders)).await,
        "acted once instead of 2 times under two keys",
    );
    let blind = certificate(Flaw::IgnoresItsFence, Fenced);
    finds(lost_lease(&blind).await, "acted once instead of 0 times after its lease was lost");
}

#[tokio::test]
async fn an_ambiguous_action_whose_reconcile_lies_gets_no_certificate() {
    use surefoot_testkit::certify::ambiguous::{answers, asks, crashes, other_keys, unknown_keys};

    finds(crashes(&act(Flaw::SaysYes)).await, "says in `reconcile` that it happened after a crash");
    finds(unknown_keys(&act(Flaw::SaysYes)).await, "says of a key that was never used");
    finds(answers(&act(Flaw::SaysNo)).await, "says in `reconcile` that it was refused");
    finds(answers(&act(Flaw::ForgetsItsKey)).await, "is not found in `reconcile`");
    finds(answers(&act(Flaw::Denies)).await, "denies an effect that is there");
    finds(asks(&act(Flaw::ActsWhenAsked)).await, "`reconcile` must not act");
    assert_eq!(other_keys(&act(Flaw::SaysYes)).await, Ok(()), "that is not where it lies");
}

#[tokio::test]
async fn an_ambiguous_action_whose_provider_sees_the_key_late_gets_no_certificate() {
    use surefoot_testkit::certify::ambiguous::{answers, crashes};

    let two_calls = act(Flaw::WritesTheKeyLast);
    assert_eq!(answers(&two_calls).await, Ok(()), "after both calls all is well");
    finds(crashes(&two_calls).await, "is not found in `reconcile` (the provider has to learn");
    finds(answers(&act(Flaw::KeyComesLate)).await, "within `SETTLE_AFTER`");
}

/// Charges, or asks who it is, and says that it does neither.
struct Unguarded {
    denies: bool,
    charges: bool,
}

impl Ambiguous for Unguarded {
    const NAME: &'static str = "unguarded";
    const GUARDED: bool = false;
    type Input = Order;
    type Output = i64;

    async fn run(&self, _: &AmbiguousCx, order: Order) -> AmbiguousResult<i64> {
        Ok(order.boxes)
    }

    async fn reconcile(&self, _: &AmbiguousCx, _: Order) -> ReconcileResult<i64> {
        Ok(Reconciled::NotFound)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Pay"))
    }

    async fn authorize(&self, _: &StepCx, _: &Order) -> ActionResult<Access> {
        Ok(Access::allowed_if(!self.denies, "not on a Sunday"))
    }

    fn cost(&self, _: &Order) -> Cost {
        if self.charges { Cost::of("boxes", 3) } else { Cost::none() }
    }
}

#[tokio::test]
async fn an_action_that_is_not_guarded_and_guards_gets_no_certificate() {
    use surefoot_testkit::certify::ambiguous::guards;

    let unguarded =
        |denies, charges| certificate(Flaw::None, move |_| Unguarded { denies, charges });
    assert_eq!(guards(&unguarded(false, false)).await, Ok(()));
    finds(guards(&unguarded(true, false)).await, "to say in `authorize`, and is not `GUARDED`");
    finds(guards(&unguarded(false, true)).await, "to say in `cost`, and is not `GUARDED`");
}

certify! {
    price: pure {
        world: World::default(),
        action: |world| Act::new(world, Flaw::None),
        input: order(),
        acted: |world| world.acted(),
        later: |world, span| world.pass(span),
    }
    book: transactional {
        world: World::default(),
        action: |world| Act::new(world, Flaw::None),
        input: order(),
        acted: |world| world.acted(),
        store: |world| world.store.clone(),
    }
    mail: idempotent {
        world: World::default(),
        action: |world| Act::new(world, Flaw::None),
        input: order(),
        acted: |world| world.acted(),
    }
    note: idempotent {
        world: World::default(),
        action: |world| Fenced(Act::new(world, Flaw::None)),
        input: order(),
        acted: |world| world.acted(),
    }
    pay: ambiguous {
        world: World::default(),
        action: |world| Act::new(world, Flaw::None),
        input: order(),
        acted: |world| world.acted(),
    }
}

//! Effect budgets: caps of a version, charges of its runs, and what a refused charge leaves.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    Amount, Amounts, Answer, BoxFuture, Budget, Call, Command, Commit, Exceeded, Fact,
    OperatorStore as _, PlanStore as _, Publish, RunId, RunStore as _, StepCharge, StoreError,
    TxStore,
};

use super::world::{World, failed, step, succeeded};
use super::{StoreFactory, Tamper};
use crate::plans::{ambiguous, idempotent, plan, transactional};
use crate::{Drive, DriveError};

pub(super) fn cost(amounts: &[(&str, f64)]) -> Amounts {
    Amounts::of(amounts.iter().copied()).unwrap()
}

fn payments(number: f64) -> Amounts {
    cost(&[("payments", number)])
}

/// A held run of a version with these caps, each of whose calls costs one payment.
async fn capped<F: StoreFactory>(
    world: &World<F>,
    plan: surefoot_kernel_core::plan::Plan,
    caps: Amounts,
) -> Drive {
    let publish = Publish { budget: caps, ..world.publication("flow", plan) };
    world.store.version_publish(publish).await.unwrap();
    let run = world.start("flow").await;
    let mut drive = world.claim_run(run).await;
    drive.set_cost(payments(1.0));
    drive
}

async fn budget<F: StoreFactory>(world: &World<F>, run: RunId) -> Budget {
    world.other.run_detail(run).await.unwrap().unwrap().budget
}

async fn used<F: StoreFactory>(world: &World<F>, run: RunId, dimension: &str) -> Amount {
    budget(world, run).await.counter(dimension).used
}

fn exceeded<T: std::fmt::Debug>(answer: Result<T, DriveError>) -> Exceeded {
    match answer {
        Err(DriveError::Store(StoreError::BudgetExceeded(exceeded))) => exceeded,
        other => unreachable!("{other:?}"),
    }
}

/// A version keeps its caps to the millionth, and each run begins with them.
pub async fn the_caps_of_a_version_are_the_limits_of_its_runs<F: StoreFactory>(world: &World<F>) {
    let caps = cost(&[("payments", 3.0), ("eur", 0.3), ("mails", 0.0)]);
    let drive = capped(world, plan(vec![idempotent("a")]), caps.clone()).await;
    let version = drive.run().origin.version;
    assert_eq!(world.other.version_load(version).await.unwrap().unwrap().budget, caps);
    assert_eq!(budget(world, drive.run().id).await, Budget::of_caps(&caps));
    let free = world.run(plan(vec![idempotent("b")])).await;
    assert_eq!(budget(world, free).await, Budget::default());
}

/// Covers behaviours 151, 153.
pub async fn charges_go_up_to_the_cap_and_a_refused_one_writes_nothing<F: StoreFactory>(
    world: &World<F>,
) {
    let steps = ["a", "b", "c", "d"].map(idempotent).to_vec();
    let mut drive = capped(world, plan(steps), payments(3.0)).await;
    let run = drive.run().id;
    drive.set_cost(cost(&[("payments", 1.0), ("tokens", 2.5)]));
    for _ in 0..3 {
        let command = drive.to_call(&world.store).await.unwrap();
        let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
        drive.answer(&world.store, &call.step, succeeded(json!(1))).await.unwrap();
    }
    let before = world.all_of(run).await;
    let refused = exceeded(drive.to_call(&world.store).await);
    let amount = |number| Amount::new(number).unwrap();
    let expected = Exceeded {
        dimension: "payments".to_owned(),
        limit: amount(3.0),
        used: amount(3.0),
        requested: amount(1.0),
    };
    assert_eq!(refused, expected);
    assert_eq!(world.all_of(run).await, before);
    assert_eq!(
        used(world, run, "tokens").await,
        amount(7.5),
        "all dimensions are charged, or none"
    );
}

/// Covers behaviour 156.
pub async fn a_cap_of_nothing_lets_no_call_be_marked<F: StoreFactory>(world: &World<F>) {
    let mut drive = capped(world, plan(vec![ambiguous("pay")]), payments(0.0)).await;
    exceeded(drive.to_call(&world.store).await);
    assert!(!world.row(drive.run().id).await.has_unsettled_effect());
}

/// Covers behaviour 155.
pub async fn a_step_pays_once_whoever_goes_on_with_it<F: StoreFactory>(world: &World<F>) {
    for step in [idempotent("a"), ambiguous("pay")] {
        let mut drive = capped(world, plan(vec![step]), payments(3.0)).await;
        let run = drive.run().id;
        for _ in 0..3 {
            let command = drive.to_call(&world.store).await.unwrap();
            let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
            drive.answer(&world.store, &call.step, failed(true)).await.unwrap();
            world.pass_secs(400).await;
            drive = world.claim_run(run).await;
            drive.set_cost(payments(1.0));
        }
        assert_eq!(used(world, run, "payments").await, Amount::new(1.0).unwrap());
        assert!(world.row(run).await.has_paid(&super::world::step("steps.0")));
    }
}

/// Covers behaviour 89.
pub async fn a_stale_writer_charges_nothing<F: StoreFactory>(world: &World<F>) {
    let drive = capped(world, plan(vec![idempotent("a")]), payments(3.0)).await;
    let charge = StepCharge { step: step("steps.0"), amounts: payments(1.0) };
    let mut commit = Commit::new(drive.run(), &[Fact::Charged(charge)]);
    commit.before.generation = 0;
    let refused = world.store.run_commit(commit.clone()).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost)), "{refused:?}");
    commit.before.generation = drive.run().generation;
    commit.before.revision = 0;
    let refused = world.store.run_commit(commit).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert_eq!(used(world, drive.run().id, "payments").await, Amount::ZERO);
}

async fn to_transaction<F: StoreFactory>(world: &World<F>, cap: f64) -> (Drive, Call) {
    let mut drive = capped(world, plan(vec![transactional("book")]), payments(cap)).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Transact(call)) = command else { unreachable!("{command:?}") };
    (drive, call)
}

/// Writes a row, then answers.
fn booking<F: StoreFactory>(
    answer: Option<Answer>,
) -> impl FnMut(&mut <F::Store as TxStore>::Tx) -> BoxFuture<'_, Option<Answer>> + Send {
    move |tx| {
        let answer = answer.clone();
        Box::pin(async move {
            F::write_row(tx, "bolt", "booked").await.unwrap();
            answer
        })
    }
}

async fn book<F: StoreFactory>(
    world: &World<F>,
    drive: &mut Drive,
    call: &Call,
    answer: Option<Answer>,
) -> Result<bool, DriveError> {
    drive
        .transact(&world.store, call, booking::<F>(answer))
        .await
        .map(|committed| committed.is_some())
}

/// Covers behaviours 127, 158.
pub async fn a_rolled_back_transaction_pays_nothing_and_its_retry_once<F: StoreFactory>(
    world: &World<F>,
) {
    let (mut drive, call) = to_transaction(world, 3.0).await;
    let run = drive.run().id;
    assert!(!book(world, &mut drive, &call, None).await.unwrap());
    assert_eq!(used(world, run, "payments").await, Amount::ZERO);
    assert!(book(world, &mut drive, &call, Some(succeeded(json!(1)))).await.unwrap());
    assert_eq!(used(world, run, "payments").await, Amount::new(1.0).unwrap());
}

/// The charge that binds is the last thing in the transaction, and takes the work with it.
pub async fn a_transaction_over_its_cap_leaves_nothing<F: StoreFactory>(world: &World<F>) {
    let (mut drive, call) = to_transaction(world, 0.5).await;
    let before = world.all_of(drive.run().id).await;
    exceeded(book(world, &mut drive, &call, Some(succeeded(json!(1)))).await);
    assert_eq!(F::read_row(&world.other, "bolt").await, None);
    assert_eq!(world.all_of(drive.run().id).await, before);
    assert_eq!(used(world, drive.run().id, "payments").await, Amount::ZERO);
}

/// Covers behaviour 154.
pub async fn a_tree_of_runs_charges_the_counters_of_its_root<F: StoreFactory>(world: &World<F>) {
    let root = capped(world, plan(vec![idempotent("a")]), payments(10.0)).await.run().id;
    let mut children = Vec::new();
    for _ in 0..20 {
        let run = world.start("flow").await;
        if !world.tamper(Tamper::MakeChild { run, parent: root }).await {
            return;
        }
        children.push(run);
    }
    world.claim().await;
    let mut charges = tokio::task::JoinSet::new();
    for (index, run) in children.iter().enumerate() {
        let mut drive = world.drive(*run).await;
        drive.set_cost(payments(1.0));
        let store = if index % 2 == 0 { world.store.clone() } else { world.other.clone() };
        charges.spawn(async move { drive.to_call(&store).await });
    }
    let (mut taken, mut refused) = (0, 0);
    for answer in charges.join_all().await {
        match answer {
            Ok(Some(Command::Call(_))) => taken += 1,
            Err(DriveError::Store(StoreError::BudgetExceeded(_))) => refused += 1,
            other => unreachable!("{other:?}"),
        }
    }
    assert_eq!((taken, refused), (10, 10));
    assert_eq!(used(world, root, "payments").await, Amount::new(10.0).unwrap());
    assert_eq!(budget(world, children[0]).await, budget(world, root).await);
}

//! The crash matrix: on both stores, what is generated from it, and that it bites.

use std::time::Duration;

use expect_test::{expect, expect_file};
use surefoot_kernel_core::{Amounts, Code, Dependency, Failure, Verdict};
use surefoot_language::{
    Ambiguous, AmbiguousCx, AmbiguousResult, Module, PlanResult, Planned, ReconcileResult,
    Reconciled, StepCx,
};
use surefoot_testkit::MemoryFactory;
use surefoot_testkit::matrix::{
    Attended, Canceled, Did, EveryClass, Process, Reply, Report, Scenario, Verb, WithChildren,
    crash_matrix, crash_matrix_in_steps,
};
use surefoot_testkit::suite::StoreFactory;

use crate::sqlite::TempFile;
use crate::wrong::{FLAWS, Flaw, WrongFactory};

const HEAD: &str = include_str!("crash-points.head.md");
const TREE_HEAD: &str = include_str!("crash-points-children.head.md");
const ATTENDED_HEAD: &str = include_str!("crash-points-attention.head.md");
const CANCELED_HEAD: &str = include_str!("crash-points-cancel.head.md");

/// The same scenario asks both stores for the same calls, so that both have the same points.
fn check(report: &Report) {
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    assert_eq!((report.points.len(), report.cases), (34, 352));
    let text = format!("{HEAD}{}", report.table);
    expect_file!["../../../../docs/crash-points.md"].assert_eq(&text);
}

/// Covers field fault 1.
/// Covers field fault 4.
/// Covers field fault 5.
/// Covers field fault 11.
/// Covers field fault 24.
/// Covers field fault 26.
/// Covers field fault 38.
#[tokio::test(start_paused = true)]
async fn every_crash_point_keeps_the_contract_in_memory() {
    check(&crash_matrix::<MemoryFactory, _>(EveryClass::new(), 1).await);
}

/// Covers field fault 1.
/// Covers field fault 5.
/// Covers field fault 26.
#[tokio::test]
async fn every_crash_point_keeps_the_contract_on_sqlite() {
    check(&crash_matrix::<TempFile, _>(EveryClass::new(), 8).await);
}

/// The calls of the tree, in words, and what became of its steps.
fn check_tree(report: &Report) {
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    assert_eq!((report.points.len(), report.cases), (49, 452));
    let calls = report.points.iter().map(|point| point.as_str()).collect::<Vec<_>>();
    for (method, times) in [("children_create", 2), ("children_read", 2)] {
        assert_eq!(calls.iter().filter(|call| **call == method).count(), times, "{calls:?}");
    }
    let text = format!("{TREE_HEAD}{}", report.table);
    expect_file!["../../../../docs/crash-points-children.md"].assert_eq(&text);
}

/// Covers behaviour 159.
/// Covers field fault 140.
#[tokio::test(start_paused = true)]
async fn every_crash_point_of_a_tree_keeps_the_contract_in_memory() {
    check_tree(&crash_matrix::<MemoryFactory, _>(WithChildren::new(), 1).await);
}

/// Covers field fault 140.
#[tokio::test]
async fn every_crash_point_of_a_tree_keeps_the_contract_on_sqlite() {
    check_tree(&crash_matrix::<TempFile, _>(WithChildren::new(), 8).await);
}

fn check_part(report: &Report, points_and_cases: (usize, usize)) {
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    assert_eq!((report.points.len(), report.cases), points_and_cases);
}

/// What became of steps about which people have a word.
fn check_attended(report: &Report) {
    check_part(report, (139, 1_323));
    let text = format!("{ATTENDED_HEAD}{}", report.table);
    expect_file!["../../../../docs/crash-points-attention.md"].assert_eq(&text);
}

/// Covers behaviours 139, 140.
#[tokio::test(start_paused = true)]
async fn every_crash_point_with_people_keeps_the_contract_in_memory() {
    check_attended(&crash_matrix::<MemoryFactory, _>(Attended::new(), 1).await);
}

/// One case of seven: the others are `soak`.
#[tokio::test]
async fn every_crash_point_with_people_keeps_the_contract_on_sqlite() {
    let report = crash_matrix_in_steps::<TempFile, _>(Attended::new(), 8, 7).await;
    check_part(&report, (139, 189));
}

#[tokio::test]
#[ignore = "soak"]
async fn all_cases_with_people_keep_the_contract_on_sqlite() {
    check_attended(&crash_matrix::<TempFile, _>(Attended::new(), 8).await);
}

fn check_canceled(report: &Report) {
    check_part(report, (46, 442));
    let text = format!("{CANCELED_HEAD}{}", report.table);
    expect_file!["../../../../docs/crash-points-cancel.md"].assert_eq(&text);
}

/// Covers behaviour 108.
#[tokio::test(start_paused = true)]
async fn every_crash_point_of_a_cancel_keeps_the_contract_in_memory() {
    check_canceled(&crash_matrix::<MemoryFactory, _>(Canceled::new(), 1).await);
}

/// One case of four: the others are `soak`.
#[tokio::test]
async fn every_crash_point_of_a_cancel_keeps_the_contract_on_sqlite() {
    let report = crash_matrix_in_steps::<TempFile, _>(Canceled::new(), 8, 4).await;
    check_part(&report, (46, 111));
}

#[tokio::test]
#[ignore = "soak"]
async fn all_cases_of_a_cancel_keep_the_contract_on_sqlite() {
    check_canceled(&crash_matrix::<TempFile, _>(Canceled::new(), 8).await);
}

async fn failures<const FLAW: u8>(flaw: Flaw) -> String {
    failures_of::<FLAW, _>(flaw, EveryClass::new()).await
}

async fn failures_of<const FLAW: u8, S>(flaw: Flaw, scenario: S) -> String
where
    S: Scenario<WrongFactory<FLAW>>,
{
    assert_eq!(FLAWS[usize::from(FLAW)], flaw);
    let report = crash_matrix::<WrongFactory<FLAW>, _>(scenario, 1).await;
    assert!(!report.failures.is_empty(), "the matrix misses a store that {flaw:?}");
    report.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_store_without_flaw_passes() {
    let report = crash_matrix::<WrongFactory<0>, _>(EveryClass::new(), 1).await;
    assert!(report.failures.is_empty(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_store_that_commits_for_stale_workers() {
    let failures = failures::<1>(Flaw::CommitsBlindly).await;
    assert!(failures.contains("the lease is stolen"), "{failures}");
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_store_that_lets_doubtful_commits_come_late() {
    failures::<7>(Flaw::TakesOverInWordsOnly).await;
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_store_whose_fence_lets_everybody_through() {
    let failures = failures::<11>(Flaw::FencesNobody).await;
    assert!(failures.contains("the fence let a stale worker through"), "{failures}");
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_store_whose_marks_are_not_durable_at_once() {
    let failures = failures::<17>(Flaw::DelaysMarks).await;
    assert!(failures.contains("is ambiguous and was called 2 times"), "{failures}");
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_store_that_creates_children_twice() {
    let failures = failures_of::<21, _>(Flaw::CreatesAgain, WithChildren::new()).await;
    assert!(
        failures.contains("(`children_create`): its answer is lost: the runs are"),
        "{failures}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_matrix_looks_at_the_marks_of_children_too() {
    let failures = failures_of::<17, _>(Flaw::DelaysMarks, WithChildren::new()).await;
    assert!(
        failures.contains("steps.2[0]/steps.0 is ambiguous and was called 2 times"),
        "{failures}"
    );
}

/// One payment, and an action that does not honour what it declares.
struct OnePayment(Mistake);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// `reconcile` answers as if there were nothing to be known.
    KnowsNothing,
    /// `reconcile` pays again.
    PaysAgain,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Pay<F: StoreFactory, const GUARDED: bool>(Process<F>, Mistake);

impl<F: StoreFactory, const GUARDED: bool> Ambiguous for Pay<F, GUARDED> {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(60);
    const GUARDED: bool = GUARDED;
    type Input = Nothing;
    type Output = String;

    async fn run(&self, cx: &AmbiguousCx, _: Nothing) -> AmbiguousResult<String> {
        self.0.called_ambiguous(cx, cx.effect_key());
        Ok("paid".to_owned())
    }

    async fn reconcile(&self, cx: &AmbiguousCx, _: Nothing) -> ReconcileResult<String> {
        let knows = self.0.asked(cx, cx.effect_key());
        if self.1 == Mistake::PaysAgain {
            self.0.called_ambiguous(cx, cx.effect_key());
        }
        Ok(match knows && self.1 != Mistake::KnowsNothing {
            true => Reconciled::Succeeded("paid".to_owned()),
            false => Reconciled::NotFound,
        })
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Pay"))
    }
}

impl<F: StoreFactory> Scenario<F> for OnePayment {
    type Binding = surefoot_language::AnyStore;

    fn module(&self, process: &Process<F>) -> Module<Self::Binding> {
        Module::builder("matrix", 1)
            .ambiguous(Pay::<_, true>(process.clone(), self.0))
            .build()
            .unwrap()
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[("scenario", "steps:\n  - pay: {}\n")]
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, _: &Dependency) -> Option<Reply> {
        None
    }

    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        (error.code == Code::EFFECT_OUTCOME_UNKNOWN).then_some(Verb::Resolve(Verdict::NotPerformed))
    }
}

/// Three payments, a branch before the last one, and nobody who is asked before any of them.
struct Wires;

const WIRES: &str = "
steps:
  - pay: {}
  - pay: {}
  - if: '${{ 1 < 2 }}'
    then:
      - pay: {}
";

impl<F: StoreFactory> Scenario<F> for Wires {
    type Binding = surefoot_language::AnyStore;

    fn module(&self, process: &Process<F>) -> Module<Self::Binding> {
        Module::builder("matrix", 1)
            .ambiguous(Pay::<_, false>(process.clone(), Mistake::None))
            .build()
            .unwrap()
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[("scenario", WIRES)]
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, _: &Dependency) -> Option<Reply> {
        None
    }

    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        (error.code == Code::EFFECT_OUTCOME_UNKNOWN).then_some(Verb::Resolve(Verdict::NotPerformed))
    }
}

/// The first mark, the first outcome with the second mark, the second outcome, the branch with the third mark, the third
/// outcome, and the end.
fn check_wires(report: &Report) {
    println!("{report}{}", report.table);
    assert!(report.failures.is_empty(), "{report}");
    let commits = report.points.iter().filter(|point| point.as_str() == "run_commit").count();
    assert_eq!(commits, 6, "{:?}", report.points);
    expect![[r#"

        ## The process dies, another one goes on after its lease

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | called | 14 |
        | ambiguous | its call is marked, and not made | a person decides | 3 |
        | ambiguous | it was called, its outcome is not recorded | asked; not called again | 3 |
        | ambiguous | its outcome is recorded | restored: not called again | 9 |

        ## The answer of a write is lost, the process lives

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | called | 13 |
        | ambiguous | its call is marked, and not made | the worker knows that it did not call: called | 3 |
        | ambiguous | it was called, its outcome is not recorded | the answer in hand is recorded; not called again | 6 |
        | ambiguous | its outcome is recorded | restored: not called again | 13 |

        ## The store refuses a call or is away for a while, the process lives

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | called | 15 |
        | ambiguous | it was called, its outcome is not recorded | the answer in hand is recorded; not called again | 6 |
        | ambiguous | its outcome is recorded | restored: not called again | 8 |

        ## The process stands still past its lease; another one takes over, then it goes on

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | called | 14 |
        | ambiguous | its call is marked, and not made | the worker knows that it did not call: called | 3 |
        | ambiguous | it was called, its outcome is not recorded | asked; not called again | 3 |
        | ambiguous | its outcome is recorded | restored: not called again | 9 |

        ## A person asks to cancel the run, the process lives

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | not called | 13 |
        | ambiguous | its call is marked, and not made | the worker knows that it did not call: called | 3 |
        | ambiguous | it was called, its outcome is not recorded | the answer in hand is recorded; not called again | 3 |
        | ambiguous | its outcome is recorded | restored: not called again | 8 |

        ## The process dies, and a person asks to cancel the run

        | class | at that moment | then | cases |
        |---|---|---|---|
        | ambiguous | before it is called, and before its call is marked | not called | 13 |
        | ambiguous | its call is marked, and not made | a person decides: it did not happen | 3 |
        | ambiguous | it was called, its outcome is not recorded | asked; not called again | 3 |
        | ambiguous | its outcome is recorded | restored: not called again | 8 |
    "#]].assert_eq(&report.table.to_string());
}

/// Covers field fault 1.
/// Covers field fault 24.
#[tokio::test(start_paused = true)]
async fn every_crash_point_of_outcomes_with_marks_keeps_the_contract_in_memory() {
    check_wires(&crash_matrix::<MemoryFactory, _>(Wires, 1).await);
}

/// Covers field fault 1.
#[tokio::test]
async fn every_crash_point_of_outcomes_with_marks_keeps_the_contract_on_sqlite() {
    check_wires(&crash_matrix::<TempFile, _>(Wires, 8).await);
}

#[tokio::test(start_paused = true)]
async fn the_matrix_misses_no_action_that_breaks_its_promise() {
    for (mistake, says) in [
        (Mistake::None, ""),
        (Mistake::KnowsNothing, "a person was asked about steps.0"),
        (Mistake::PaysAgain, "steps.0 is ambiguous and was called 2 times"),
    ] {
        let report = crash_matrix::<MemoryFactory, _>(OnePayment(mistake), 1).await;
        assert_eq!(report.failures.is_empty(), mistake == Mistake::None, "{report}");
        assert!(report.to_string().contains(says), "{report}");
    }
}

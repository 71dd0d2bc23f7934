use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::time::Duration;

use surefoot_kernel_core::{Dependency, FenceError, Micros, StoreError};

use super::classify::describe;
use super::question::waits_for;
use super::*;

#[derive(Debug, thiserror::Error)]
enum StockError {
    #[error("the shelf is locked")]
    Locked,
    #[error("no such item")]
    NoSuchItem,
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error("stock")]
    Stock(#[from] StockError),
    #[error("fence")]
    Fence(#[from] FenceError),
}

/// Hides its source, as catch-all errors often do.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Hiding(#[from] FenceError);

fn classifiers() -> Classifiers {
    Classifiers::default().and(|error: &StockError| match error {
        StockError::Locked => Classified::retry("STOCK_LOCKED").retry_after(Duration::from_secs(3)),
        StockError::NoSuchItem => Classified::fail("NO_SUCH_ITEM"),
    })
}

fn brief(stop: Stop) -> String {
    match stop.into_parts(&classifiers()) {
        StopParts::Failed { code, message, retryable, retry_after, source } => {
            let after = retry_after.map(Micros::get);
            format!("{code} {message:?} {retryable} {after:?} {}", source.is_some())
        }
        StopParts::Waiting(dependency) => waits_for(&dependency),
        StopParts::Halted(halt) => format!("{halt:?}"),
    }
}

fn brief_ambiguous(stop: AmbiguousStop) -> String {
    match stop.into_parts(&classifiers()) {
        AmbiguousStopParts::NothingHappened { code, message, retry_after, source } => {
            let after = retry_after.map(Micros::get);
            format!("nothing {code} {message:?} {after:?} {}", source.is_some())
        }
        AmbiguousStopParts::NothingHappenedWaiting(dependency) => {
            format!("nothing, {}", waits_for(&dependency))
        }
        AmbiguousStopParts::Refused { code, message, source } => {
            format!("refused {code} {message:?} {}", source.is_some())
        }
        AmbiguousStopParts::MayHaveHappened { code, message, evidence, source } => {
            format!("unknown {code:?} {message:?} {evidence:?} {}", source.is_some())
        }
        AmbiguousStopParts::Halted(halt) => format!("{halt:?}"),
    }
}

fn by_question_mark<E: StopsByQuestionMark>(error: E) -> Stop {
    let fails = || -> ActionResult<()> { Err(error)? };
    fails().unwrap_err()
}

fn ambiguous_by_question_mark<E: UnknownByQuestionMark>(error: E) -> AmbiguousStop {
    let fails = || -> AmbiguousResult<()> { Err(error)? };
    fails().unwrap_err()
}

#[test]
fn the_question_mark_maps_every_ordinary_error() {
    let io = || std::io::Error::other("disk");
    assert_eq!(brief(by_question_mark(io())), r#"ACTION_ERROR "disk" false None true"#);
    assert_eq!(brief(by_question_mark("text")), r#"ACTION_ERROR "text" false None true"#);
    let boxed: Box<dyn StdError + Send + Sync> = Box::new(io());
    assert_eq!(brief(by_question_mark(boxed)), r#"ACTION_ERROR "disk" false None true"#);
    let retried = Err::<(), _>(io()).or_retry("DISK").unwrap_err();
    assert_eq!(brief(retried), r#"DISK "disk" true None true"#);
    let failed = Err::<(), _>(io()).or_fail("DISK").unwrap_err();
    assert_eq!(brief(failed), r#"DISK "disk" false None true"#);
}

#[test]
fn the_question_mark_in_an_ambiguous_action_means_that_nobody_knows() {
    let io = || std::io::Error::other("disk");
    assert_eq!(
        brief_ambiguous(ambiguous_by_question_mark(io())),
        r#"unknown None "disk" None true"#
    );
    let nothing = Err::<(), _>(io()).or_nothing_happened("DISK").unwrap_err();
    assert_eq!(brief_ambiguous(nothing), r#"nothing DISK "disk" None true"#);
    let refused = Err::<(), _>(io()).or_refused("DISK").unwrap_err();
    assert_eq!(brief_ambiguous(refused), r#"refused DISK "disk" true"#);
    // A classifier adds a code and never a verdict.
    let classified = ambiguous_by_question_mark(AppError::from(StockError::NoSuchItem));
    assert_eq!(
        brief_ambiguous(classified),
        r#"unknown Some(Code("NO_SUCH_ITEM")) "stock: no such item" None true"#
    );
}

#[test]
fn classifiers_walk_the_chain_and_leave_written_codes_alone() {
    let locked = || AppError::from(StockError::Locked);
    assert_eq!(
        brief(by_question_mark(locked())),
        r#"STOCK_LOCKED "stock: the shelf is locked" true Some(3000000) true"#
    );
    assert_eq!(
        brief(by_question_mark(StockError::NoSuchItem)),
        r#"NO_SUCH_ITEM "no such item" false None true"#
    );
    let written = Err::<(), _>(locked()).or_fail("OURS").unwrap_err();
    assert_eq!(brief(written), r#"OURS "stock: the shelf is locked" false None true"#);
}

#[test]
fn a_classifier_that_panics_knows_nothing() {
    let careless =
        Classifiers::default().and(|_: &StockError| -> Classified { panic!("careless") });
    assert_eq!(careless.classify(&StockError::Locked), None);
}

#[test]
fn a_lost_lease_is_recognised_wherever_it_stands() {
    let lost = [
        by_question_mark(FenceError::LeaseLost),
        by_question_mark(StoreError::LeaseLost),
        by_question_mark(FenceError::Store(StoreError::LeaseLost)),
        by_question_mark(AppError::from(FenceError::LeaseLost)),
        Err::<(), _>(FenceError::LeaseLost).or_retry("X").unwrap_err(),
        // The error hides it, but the step's own heartbeat has seen it.
        by_question_mark(Hiding(FenceError::LeaseLost)).after(Some(Halt::LeaseLost)),
    ];
    for stop in lost {
        assert_eq!(stop.halt(), Some(Halt::LeaseLost), "{stop:?}");
        assert_eq!(brief(stop), "LeaseLost");
    }
    assert_eq!(by_question_mark(FenceError::Canceled).halt(), Some(Halt::Canceled));
    assert_eq!(by_question_mark(FenceError::Store(StoreError::Conflict)).halt(), None);
    let ambiguous = ambiguous_by_question_mark(AppError::from(FenceError::Canceled));
    assert_eq!(brief_ambiguous(ambiguous), "Canceled");
}

#[test]
fn what_an_action_said_itself_is_not_overruled_by_an_earlier_heartbeat() {
    let said = Stop::fail("SOLD_OUT", "none left").after(Some(Halt::Canceled));
    assert_eq!(brief(said), r#"SOLD_OUT "none left" false None false"#);
    let refused = AmbiguousStop::refused("DECLINED", "51").after(Some(Halt::LeaseLost));
    assert_eq!(brief_ambiguous(refused), r#"refused DECLINED "51" false"#);
}

#[test]
fn delays_and_waits_are_kept() {
    let second = Duration::from_secs(1);
    assert_eq!(
        brief(Stop::retry("BUSY", "429").retry_after(second)),
        r#"BUSY "429" true Some(1000000) false"#
    );
    assert_eq!(brief(Stop::fail("NO", "no").retry_after(second)), r#"NO "no" false None false"#);
    let approval = || Dependency::on("approval", "7");
    assert_eq!(brief(Stop::wait_for(approval())), "waits for `approval` of `7`");
    let waits: Result<(), Stop> = Err(Stop::wait_for(approval()));
    assert_eq!(
        brief_ambiguous(waits.or_nothing_happened("X").unwrap_err()),
        "nothing, waits for `approval` of `7`"
    );
    let busy: Result<(), Stop> = Err(Stop::retry("BUSY", "429").retry_after(second));
    assert_eq!(
        brief_ambiguous(busy.or_nothing_happened("X").unwrap_err()),
        r#"nothing X "429" Some(1000000) false"#
    );
    let missing: Result<(), Stop> = Err(Stop::fail("VALUE_UNAVAILABLE", "no such value"));
    assert_eq!(
        brief_ambiguous(missing.or_refused("X").unwrap_err()),
        r#"refused X "no such value" false"#
    );
}

#[test]
fn evidence_stands_beside_the_unknown_only() {
    let unknown = AmbiguousStop::may_have_happened("timeout").evidence([1, 2]);
    assert_eq!(
        brief_ambiguous(unknown),
        r#"unknown None "timeout" Some(Array [Number(1), Number(2)]) false"#
    );
    let keyed = BTreeMap::from([((1, 2), 3)]);
    let unwritable = AmbiguousStop::may_have_happened("timeout").evidence(keyed);
    assert!(brief_ambiguous(unwritable).contains("key must be a string"));
    let settled = AmbiguousStop::refused("NO", "no").evidence(1);
    assert_eq!(brief_ambiguous(settled), r#"refused NO "no" false"#);
}

#[test]
fn texts_of_causes_are_joined_and_not_repeated() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer: {0}")]
    struct Outer(#[source] StockError);
    assert_eq!(describe(&Outer(StockError::Locked)), "outer: the shelf is locked");
}

#[test]
fn a_store_that_is_away_for_a_moment_is_worth_another_try() {
    let away = || StoreError::Unavailable("connection refused".into());
    let by_fence = brief(Stop::from(FenceError::from(away())));
    assert!(by_fence.starts_with("ACTION_ERROR") && by_fence.contains(" true "), "{by_fence}");
    let by_commit = brief(Stop::from(StoreError::UnknownOutcome("reset".into())));
    assert!(by_commit.contains(" true "), "{by_commit}");
    let refused = brief(Stop::from(StoreError::Refused("too large".into())));
    assert!(refused.contains(" false "), "{refused}");
}

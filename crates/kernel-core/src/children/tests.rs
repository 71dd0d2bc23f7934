//! Identity, limits, groups and joins.

use serde_json::{Value, json};

use super::*;
use crate::{App, EventId, Mode, RunState, Scope, Wake};

fn parent() -> Run {
    let id = RunId::from_bytes([7; 16]);
    let origin = Origin {
        app: App::from("shop"),
        scope: Scope::from("north"),
        workflow: WorkflowKey::from("all"),
        version: VersionId::from_bytes([1; 16]),
        footprint: "parent".to_owned(),
        mode: Mode::Execute,
        event: Some(EventId::from_bytes([2; 16])),
        trigger: Some("restock".to_owned()),
        occurred_at: Timestamp::from_micros(5),
        root: id,
        parent: None,
        created_at: Timestamp::from_micros(9),
    };
    Run::new(id, origin)
}

fn step() -> StepKey {
    StepKey::from("steps.0")
}

fn child_of(parent: &Run, key: &str) -> Run {
    let child = Child::new("one", json!({})).key(key).check(0).unwrap();
    let version = ChildVersion { version: VersionId::from_bytes([3; 16]), footprint: "f".into() };
    let id = RunId::of_child(parent, &step(), key);
    Run::child(parent, (id, &step(), 4), &child, &version, Timestamp::from_micros(20))
}

/// Covers field fault 139.
#[test]
fn a_child_is_known_by_root_parent_step_and_key_alone() {
    let parent = parent();
    let child = child_of(&parent, "a");
    assert_eq!(child.id, child_of(&parent, "a").id);
    let other_step = RunId::of_child(&parent, &StepKey::from("steps.1"), "a");
    let other_parent = RunId::of_child(&child, &step(), "a");
    let ids = [child.id, child_of(&parent, "b").id, other_step, other_parent, parent.id];
    let distinct: BTreeSet<RunId> = ids.into_iter().collect();
    assert_eq!(distinct.len(), ids.len());
    // A separator keeps step and key apart.
    let shifted = RunId::of_child(&parent, &StepKey::from("steps.0\0a"), "");
    assert_ne!(shifted, child.id);
}

#[test]
fn a_child_has_its_parents_place_mode_root_and_time() {
    let parent = parent();
    let child = child_of(&parent, "a");
    let (of, origin) = (&parent.origin, &child.origin);
    assert_eq!((&origin.app, &origin.scope, origin.mode), (&of.app, &of.scope, of.mode));
    assert_eq!((origin.root, origin.occurred_at), (parent.id, of.occurred_at));
    assert_eq!((origin.event, &origin.trigger), (None, &None));
    let place = origin.parent.as_ref().unwrap();
    assert_eq!((place.run, place.index, place.depth), (parent.id, 4, 1));
}

#[test]
fn children_of_children_end_at_the_sixteenth_level() {
    let mut run = parent();
    for _ in 0..CHILD_DEPTH_MAX {
        run.may_have_children().unwrap();
        run = child_of(&run, "a");
    }
    let error = run.may_have_children().unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::LIMIT_EXCEEDED);
}

#[test]
fn a_call_has_bounded_numbers_and_bytes_and_distinct_keys() {
    let many = |count| Children::check((0..count).map(|_| Child::new("one", Value::Null)));
    assert_eq!(many(CHILDREN_MAX).unwrap().len(), CHILDREN_MAX);
    assert!(matches!(many(CHILDREN_MAX + 1), Err(ChildrenError::TooMany { .. })));
    let large = "x".repeat(8 * 1024 * 1024);
    let large = |count| Children::check((0..count).map(|_| Child::new("one", &large)));
    assert!(large(7).is_ok());
    assert!(matches!(large(8), Err(ChildrenError::TooLarge { .. })));
    let same = [0, 1].map(|_| Child::new("one", Value::Null).key("k"));
    assert!(matches!(Children::check(same), Err(ChildrenError::SameKey { .. })));
    let empty = [Child::new("one", Value::Null).key("")];
    assert!(matches!(Children::check(empty), Err(ChildrenError::KeyLength { .. })));
    let odd = [Child::new("one", json!(u64::MAX)), Child::new("one", [f64::NAN])];
    let refused = Children::check(odd);
    assert!(
        matches!(&refused, Err(ChildrenError::Payload { index: 1, pointer, .. }) if pointer == "/0"),
        "a u64 is whole, a NaN would become null: {refused:?}"
    );
}

#[test]
fn a_group_lets_go_as_many_as_have_ended() {
    let mut group = ChildGroup::new(2);
    let held: Vec<bool> = (0..5).map(|_| group.add()).collect();
    assert_eq!(held, [false, false, true, true, true]);
    assert_eq!(group.release(), 0);
    group.moved(ChildMove::Ended { was_held: false });
    assert_eq!((group.release(), group.live, group.held), (1, 4, 2));
    // A held one that is canceled makes no room.
    group.moved(ChildMove::Ended { was_held: true });
    assert_eq!((group.release(), group.live, group.held), (0, 3, 1));
    // A retried one is held back like any other, until somebody ends.
    assert!(group.is_full());
    group.moved(ChildMove::Revived { is_held: true });
    assert_eq!((group.release(), group.live, group.held), (0, 4, 2));
    group.moved(ChildMove::Ended { was_held: false });
    assert_eq!((group.release(), group.live, group.held), (1, 3, 1));
    group.moved(ChildMove::Ended { was_held: false });
    assert_eq!((group.release(), group.live, group.held), (1, 2, 0));
    group.moved(ChildMove::Ended { was_held: false });
    assert!(!group.is_full());
    group.moved(ChildMove::Revived { is_held: false });
    assert_eq!((group.release(), group.live, group.held), (0, 2, 0));
    for _ in 0..2 {
        assert!(!group.is_over());
        group.moved(ChildMove::Ended { was_held: false });
    }
    assert!(group.is_over());
    assert_eq!(group.release(), 0);
}

fn result(index: u32, state: RunState) -> ChildResult {
    let error = (state == RunState::Failed).then(|| Failure::new("OUT_OF_STOCK", "no bolts"));
    ChildResult {
        index,
        run: RunId::from_bytes([u8::try_from(index).unwrap(); 16]),
        workflow: WorkflowKey::from("one"),
        state,
        result: if state == RunState::Succeeded { json!(index) } else { Value::Null },
        error,
        message: (state == RunState::Canceled).then(|| "not needed".to_owned()),
    }
}

fn join(is_list: bool, states: &[RunState]) -> Joined {
    let mut join = Join::new(is_list, u32::try_from(states.len()).unwrap());
    for (index, state) in (0..).zip(states) {
        join.add(result(index, *state));
    }
    join.end()
}

fn failure_of(joined: Joined) -> Failure {
    match &joined {
        Joined::Failed(failure) => failure.clone(),
        Joined::Live | Joined::Done(_) => panic!("no failure: {joined:?}"),
    }
}

/// Covers field fault 141.
#[test]
fn every_mix_of_ends_has_one_outcome() {
    use RunState::{Canceled, Failed, NeedsAttention, Queued, Running, Succeeded, Waiting};
    assert_eq!(join(true, &[Succeeded, Succeeded]), Joined::Done(json!([0, 1])));
    assert_eq!(join(false, &[Succeeded]), Joined::Done(json!(0)));
    for live in [Queued, Running, Waiting, NeedsAttention] {
        for ended in [Succeeded, Failed, Canceled] {
            assert_eq!(join(true, &[ended, live]), Joined::Live);
        }
    }
    let failed = failure_of(join(true, &[Canceled, Succeeded, Failed, Failed]));
    assert_eq!(failed.code.as_str(), "OUT_OF_STOCK");
    let details = failed.details.unwrap();
    assert_eq!((&details["index"], &details["failed"]), (&json!(2), &json!(2)));
    assert_eq!((&details["canceled"], &details["succeeded"]), (&json!(1), &json!(1)));
    assert!(failed.message.contains("no bolts") && failed.message.contains("2 failed"));
    let canceled = failure_of(join(true, &[Succeeded, Canceled]));
    assert_eq!(canceled.code, Code::CHILD_CANCELED);
    assert!(canceled.message.contains("was canceled: not needed"), "{}", canceled.message);
    let alone = failure_of(join(false, &[Failed]));
    assert!(!alone.message.contains("children"), "{}", alone.message);
}

#[test]
fn results_that_are_missing_or_too_large_fail_the_step() {
    let mut short = Join::new(true, 2);
    short.add(result(0, RunState::Succeeded));
    assert_eq!(failure_of(short.end()).code, Code::VALUE_UNAVAILABLE);
    let mut large = Join::new(true, 17);
    for index in 0..17 {
        let value = json!("x".repeat(1024 * 1024));
        large.add(ChildResult { result: value, ..result(index, RunState::Succeeded) });
    }
    assert!(large.results.is_empty(), "what is of no use is not kept");
    assert_eq!(failure_of(large.end()).code, Code::VALUE_TOO_LARGE);
}

#[test]
fn a_result_that_was_taken_is_not_changed_by_a_retry() {
    let step = step();
    let mut group = ChildGroup::new(u32::MAX);
    let _ = group.add();
    let waiting = |on| {
        let mut run = parent();
        let (on, deadline, spins) = (Some(on), None, 0);
        let wait =
            crate::Wait { step: step.clone(), on, deadline, since: Timestamp::default(), spins };
        run.phase = Phase::Waiting(wait);
        run
    };
    let waits = waiting(crate::Dependency::on_children(&step));
    assert!(group.may_revive(&waits, &step));
    let mut reads = parent();
    reads.resume = Some(crate::Resume { step: step.clone(), wake: Wake::Children, spins: 0 });
    assert!(!group.may_revive(&reads, &step));
    assert!(group.may_revive(&parent(), &step), "nobody has asked for results yet");
    group.taken = true;
    assert!(!group.may_revive(&parent(), &step));
    let mut failed = parent();
    let error = Failure::new("OUT_OF_STOCK", "no bolts").at(&step);
    failed.phase = Phase::Failed { error, abandoned: None };
    assert!(group.may_revive(&failed, &step), "it reads the results again when it is retried");
    let elsewhere = Failure::new("OUT_OF_STOCK", "no bolts").at(&StepKey::from("steps.1"));
    failed.phase = Phase::Failed { error: elsewhere, abandoned: None };
    assert!(!group.may_revive(&failed, &step));
    let mut canceled = waits;
    let (actor, reason, at) = (String::new(), String::new(), Timestamp::default());
    canceled.cancel = Some(crate::CancelRequest { actor, reason, at });
    assert!(!group.may_revive(&canceled, &step));
}

#[test]
fn a_retry_needs_everybody_above() {
    let step = step();
    let mut taken = ChildGroup::new(u32::MAX);
    taken.taken = true;
    let ended = |error: Failure| {
        let mut run = parent();
        run.phase = Phase::Failed { error, abandoned: None };
        run
    };
    let stands_there = ended(Failure::new("OUT_OF_STOCK", "no bolts").at(&step));
    let mut revival = Revival::default();
    assert!(revival.passes(&stands_there, &step, Some(&taken)));
    assert!(!revival.passes(&parent(), &step, Some(&taken)), "nobody reads what it comes to");
    let mut revival = Revival::default();
    assert!(revival.passes(&stands_there, &step, Some(&taken)));
    assert!(revival.passes(&stands_there, &step, Some(&taken)), "all of them may be retried");
    // Above one that lives, only a cancel counts.
    let mut revival = Revival::default();
    assert!(revival.passes(&parent(), &step, Some(&ChildGroup::new(1))));
    assert!(revival.passes(&parent(), &step, Some(&taken)));
    let mut canceled = parent();
    let (actor, reason, at) = (String::new(), String::new(), Timestamp::default());
    canceled.cancel = Some(crate::CancelRequest { actor, reason, at });
    assert!(!revival.passes(&canceled, &step, None));
}

//! What opens a command: the store's word that the facts before it are durable.

use surefoot_kernel_core::{
    Decision, EffectClass, Input, Receipt, Run, RunId, Unopened, apply, decide,
};

use crate::drive::{Drive, action, plan};

/// A run before the first decision about its action, and that decision.
fn decided(class: EffectClass) -> (Drive, Decision) {
    let mut drive = Drive::new(plan(vec![action(class)]));
    drive.claim();
    drive.give(Input::Advance).unwrap();
    assert_eq!((drive.run().seq, &drive.command), (1, &None), "step zero");
    let decision = decide(&drive.held, &drive.plan, Input::Advance, drive.now).unwrap();
    (drive, decision)
}

/// A store that has not got the inputs yet.
fn behind(run: &Run) -> Run {
    Run { seq: run.seq - 1, ..run.clone() }
}

#[test]
fn no_hook_of_an_action_with_effects_is_called_before_the_store_has_the_facts() {
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
        let (drive, decision) = decided(class);
        assert!(!decision.command.is_lazy());
        let run = drive.run();
        let early = decision.command.clone().open(&Receipt::attest(&behind(run)));
        let (needed, durable) = (run.seq, run.seq - 1);
        assert_eq!(early, Err(Unopened::NotDurable { needed, durable }), "{class:?}");
        assert!(decision.command.clone().open(&Receipt::attest(run)).unwrap().is_some());
        let later = Run { seq: run.seq + 1, ..run.clone() };
        assert!(decision.command.open(&Receipt::attest(&later)).unwrap().is_some(), "{class:?}");
    }
}

#[test]
fn a_mark_has_to_be_durable_before_the_call() {
    let (mut drive, _) = decided(EffectClass::Ambiguous);
    drive.give(Input::Advance).unwrap();
    let step = "steps.0".into();
    let ready = Input::Prepared {
        step,
        result: surefoot_kernel_core::Prepared::Ready { cost: Default::default() },
    };
    let decision = decide(&drive.held, &drive.plan, ready, drive.now).unwrap();
    let [mark] = &decision.facts[..] else { panic!("{:?}", decision.facts) };
    let unmarked = Receipt::attest(drive.run());
    assert!(matches!(decision.command.clone().open(&unmarked), Err(Unopened::NotDurable { .. })));
    let marked = apply(drive.run().clone(), mark);
    assert!(decision.command.open(&Receipt::attest(&marked)).unwrap().is_some());
}

#[test]
fn calls_of_pure_actions_and_transactions_wait_for_nothing() {
    for class in [EffectClass::Pure, EffectClass::Transactional] {
        let (drive, decision) = decided(class);
        assert!(decision.command.is_lazy());
        let early = decision.command.open(&Receipt::attest(&behind(drive.run())));
        assert!(early.unwrap().is_some(), "{class:?}");
    }
}

#[test]
fn a_receipt_of_another_run_or_generation_opens_nothing() {
    for class in [EffectClass::Pure, EffectClass::Idempotent] {
        let (drive, decision) = decided(class);
        let run = drive.run();
        let others = [
            Run { id: RunId::from_bytes([9; 16]), ..run.clone() },
            Run { generation: run.generation + 1, ..run.clone() },
            Run { generation: run.generation - 1, ..run.clone() },
        ];
        for other in others {
            let opened = decision.command.clone().open(&Receipt::attest(&other));
            assert_eq!(opened, Err(Unopened::OtherRun), "{class:?}");
        }
    }
}

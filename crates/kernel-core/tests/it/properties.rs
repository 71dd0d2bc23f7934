use proptest::prelude::*;
use proptest::strategy::ValueTree;
use surefoot_kernel_core::model::{Op, Span, Violation, World, any_fact, any_plan, any_script};
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{Fact, RunState, apply};

/// How many scripts each property sees.
fn cases() -> u32 {
    std::env::var("SUREFOOT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: cases(), max_shrink_iters: 50_000, ..ProptestConfig::default() }
}

fn play(plan: Plan, script: Vec<Op>) -> Result<World, TestCaseError> {
    let mut world = World::new(plan);
    for op in script {
        step(&mut world, op)?;
    }
    Ok(world)
}

fn step(world: &mut World, op: Op) -> Result<(), TestCaseError> {
    world.step(op).map_err(|Violation(text)| TestCaseError::fail(text))
}

/// From here on everything goes well: does the run come to rest where somebody sees it?
fn calm(world: &mut World) -> Result<(), TestCaseError> {
    for signal in 0..3 {
        step(world, Op::Signal(signal))?;
    }
    for _ in 0..2 {
        step(world, Op::Crash(0))?;
        step(world, Op::Crash(1))?;
    }
    // At most a few loops of a few steps, each with a claim, a wait and a reconcile.
    for _ in 0..400 {
        if world.run().state().is_terminal() || world.run().state() == RunState::NeedsAttention {
            return Ok(());
        }
        step(world, Op::Pass(Span::Settled))?;
        step(world, Op::Scan)?;
        step(world, Op::Claim(0))?;
        for _ in 0..40 {
            // Prepared, called and answered well; a provider that is asked says what it knows.
            step(world, Op::Work(0, 51))?;
            step(world, Op::ChildEnds(0))?;
        }
    }
    Err(TestCaseError::fail(format!("the run does not come to rest: {:?}", world.run())))
}

/// Scripts that never get anywhere would prove nothing: together they reach every kind of fact and of end.
#[test]
fn scripts_reach_every_corner() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..3_000 {
        let scripts = (any_plan(), any_script());
        let (plan, script) = scripts.new_tree(&mut runner).unwrap().current();
        let world = play(plan, script).unwrap();
        let kinds = world.journaled().map(|fact| match serde_json::to_value(fact).unwrap() {
            serde_json::Value::Object(tagged) => tagged.keys().next().unwrap().clone(),
            other => other.to_string(),
        });
        let caught =
            world.journaled().filter(|fact| matches!(fact, Fact::StepFailed { caught: true, .. }));
        let caught = caught.map(|_| "caught".to_owned());
        let joined = world.commits().filter(|facts| {
            let ends = facts.iter().position(|fact| fact.ended_step().is_some());
            let marks = facts.iter().position(|fact| fact.marked_step().is_some());
            ends.is_some() && ends < marks
        });
        let joined = joined.map(|_| "an outcome with the next mark".to_owned());
        for kind in
            kinds.chain(caught).chain(joined).chain([format!("ends {}", world.run().state())])
        {
            *seen.entry(kind).or_default() += 1;
        }
    }
    let often: Vec<_> =
        seen.iter().filter(|(_, times)| **times >= 10).map(|(kind, _)| kind).collect();
    assert_eq!(often.len(), 18 + RunState::ALL.len(), "{seen:#?}");
}

proptest! {
    #![proptest_config(config())]

    /// Covers field fault 1. Covers field fault 4. Covers field fault 6.
    ///
    /// Fencing, outcomes once, nothing repeated, nothing dropped, order of durability, wake sources, bounded
    /// failures, fold equals row, restart stands where it stood: see `model::World::step`.
    #[test]
    fn every_script_keeps_every_promise((plan, script) in (any_plan(), any_script())) {
        play(plan, script)?;
    }

    #[test]
    fn every_run_comes_to_rest((plan, script) in (any_plan(), any_script())) {
        let mut world = play(plan, script)?;
        calm(&mut world)?;
    }

    #[test]
    fn succeeded_and_canceled_absorb_every_fact(
        (plan, script) in (any_plan(), any_script()),
        facts in prop::collection::vec(any_fact(), 1..20),
    ) {
        let world = play(plan, script)?;
        let run = world.run().clone();
        let after = facts.iter().fold(run.clone(), apply);
        if matches!(run.state(), RunState::Succeeded | RunState::Canceled) {
            prop_assert_eq!(after, run);
        } else {
            prop_assert!(after.generation >= run.generation);
            prop_assert!(after.seq >= run.seq);
        }
    }
}

//! A dry run beside executions: what the bill says is what they do.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Template};
use surefoot_kernel_core::model::any_plan;
use surefoot_kernel_core::plan::{Plan, Step, StepKind};
use surefoot_kernel_core::{
    Amounts, Answer, Bill, Call, Command, DryCommand, DryHeld, DryInput, EffectClass, Invocation,
    Micros, Phase, Previewed, RowInput, RunState, StepKey, Survey, Wake, decide_dry_run,
};

use crate::drive::{Drive, action, saved};

/// A survey has no end of its own that a test could wait for.
const MOVES_MAX: usize = 10_000;

fn config() -> ProptestConfig {
    let cases = std::env::var("SUREFOOT_CASES").ok().and_then(|text| text.parse::<u32>().ok());
    ProptestConfig { cases: cases.unwrap_or(10_000) / 10 + 1, ..ProptestConfig::default() }
}

fn cost() -> Amounts {
    Amounts::of([("effects", 1.0)]).unwrap()
}

/// What an effectful action gives back: those that decide something say what is decided.
fn output(step: &StepKey, decided: &[bool]) -> Value {
    let place = step.as_str().strip_prefix("steps.").and_then(|at| at.parse::<usize>().ok());
    place.and_then(|at| decided.get(at)).map_or(Value::Null, |decided| json!(decided))
}

/// The bill of a plan, whose actions all foretell their outputs.
fn surveyed(plan: &Plan, decided: &[bool]) -> Bill {
    let mut begun = Drive::new(plan.clone());
    begun.claim();
    let (run, now) = (begun.run().clone(), begun.now);
    let survey = Survey::new(&run, plan, Invocation::default());
    let mut held = DryHeld { run, survey };
    let mut input = DryInput::Advance;
    for _ in 0..MOVES_MAX {
        let decision = decide_dry_run(&held, plan, input, now).unwrap();
        held = held.apply(plan, &decision.facts).unwrap();
        if held.run.state() != RunState::Running {
            return held.survey.bill();
        }
        input = match decision.command {
            None => DryInput::Advance,
            Some(DryCommand::Run(Call { step, .. })) => {
                DryInput::Ran { step, answer: Answer::Succeeded { output: Value::Null } }
            }
            Some(DryCommand::Preview(Call { step, .. })) => {
                let output = Some(output(&step, decided));
                let (summary, issues) = (step.to_string(), Vec::new());
                let previewed = Previewed::Planned { summary, cost: cost(), output, issues };
                DryInput::Previewed { step, previewed }
            }
        };
    }
    panic!("the survey does not end: {plan:?}");
}

/// The effects of an execution in which all goes well, in order.
fn executed(plan: &Plan, decided: &[bool]) -> Vec<StepKey> {
    let mut drive = Drive { cost: cost(), ..Drive::new(plan.clone()) };
    let mut effects = Vec::new();
    drive.claim();
    for _ in 0..MOVES_MAX {
        if let Phase::Waiting(wait) = &drive.run().phase {
            let wake = match (wait.deadline, &wait.on) {
                (Some(deadline), _) => {
                    drive.now = drive.now.max(deadline);
                    Wake::Deadline
                }
                (None, Some(_)) => Wake::Signal(Value::Null),
                (None, None) => panic!("it waits for nothing: {:?}", drive.run()),
            };
            drive.row(RowInput::Wake { wake, at_once: false }).unwrap();
        }
        match drive.state() {
            RunState::Queued => drive.claim(),
            RunState::Running => {}
            _ => return effects,
        }
        drive.pass(Micros::from_millis(1));
        drive.advance();
        match drive.command.clone() {
            None => {}
            Some(Command::Prepare(call) | Command::Call(call) | Command::Transact(call)) => {
                if call.class != EffectClass::Pure {
                    effects.push(call.step.clone());
                }
                drive.succeed(output(&call.step, decided));
            }
            Some(other) => panic!("nothing else was planned: {other:?}"),
        }
    }
    panic!("the run does not end: {:?}", drive.run());
}

/// Plans without children: a survey does not look into those.
fn childless() -> impl Strategy<Value = Plan> {
    any_plan().prop_filter("it has children", |plan| {
        !serde_json::to_string(plan).unwrap().contains("\"runWorkflow")
    })
}

/// The outputs that choices hang on.
#[derive(Default)]
struct Choices {
    count: usize,
    /// The body of a loop asks one of them for every item. The answer is the same each time, which a survey can't know.
    is_repeated: bool,
}

impl Choices {
    /// Another output that decides something.
    fn another(&mut self) -> Expr {
        self.count += 1;
        Expr::Name(format!("choice{}", self.count - 1))
    }
}

/// Has each choice of a plan hang on an output of its own, and gives their number.
fn plant(steps: &mut [Step], choices: &mut Choices) {
    for step in steps {
        match &mut step.kind {
            StepKind::If { condition, then, otherwise } => {
                *condition = choices.another();
                plant(then, choices);
                plant(otherwise.as_deref_mut().unwrap_or_default(), choices);
            }
            StepKind::Switch { on, cases, default } => {
                *on = Template::Expr(choices.another());
                for case in cases {
                    case.when = Template::Literal(json!(true));
                    plant(&mut case.steps, choices);
                }
                plant(default.as_deref_mut().unwrap_or_default(), choices);
            }
            StepKind::ForEach { body, .. } => {
                let before = choices.count;
                plant(body, choices);
                choices.is_repeated |= choices.count > before;
            }
            StepKind::Action { .. }
            | StepKind::SetVariable { .. }
            | StepKind::Succeed { .. }
            | StepKind::Fail { .. }
            | StepKind::Delay(_)
            | StepKind::WaitFor { .. }
            | StepKind::RunWorkflow { .. }
            | StepKind::RunWorkflows { .. } => {}
        }
    }
}

/// A plan whose first steps decide about all choices behind them.
fn undecided(mut plan: Plan) -> (Plan, Choices) {
    let mut choices = Choices::default();
    plant(&mut plan.steps, &mut choices);
    let decide = |at| saved(action(EffectClass::Idempotent), &format!("choice{at}"));
    let mut steps: Vec<Step> = (0..choices.count).map(decide).collect();
    steps.append(&mut plan.steps);
    (Plan { steps, ..plan }, choices)
}

proptest! {
    #![proptest_config(config())]

    /// Where nothing hangs on a planned value the bill is what an execution does, step by step, and what it pays.
    ///
    /// Covers behaviour 157.
    #[test]
    fn a_bill_without_choices_is_the_execution(plan in childless()) {
        let bill = surveyed(&plan, &[]);
        let effects = executed(&plan, &[]);
        let billed: Vec<StepKey> = bill.effects.iter().map(|effect| effect.step.clone()).collect();
        prop_assert_eq!(&billed, &effects);
        prop_assert!(bill.effects.iter().all(|effect| effect.is_sure));
        let mut paid = Amounts::default();
        effects.iter().for_each(|_| paid.add_all(&cost()));
        let sure: Vec<_> = bill.costs.iter().map(|cost| (cost.dimension.as_str(), cost.sure)).collect();
        prop_assert_eq!(sure, paid.iter().collect::<Vec<_>>());
        prop_assert!(bill.costs.iter().all(|cost| cost.all == cost.sure));
    }

    /// Where every choice hangs on a planned value the bill has what any execution does, and nothing else unless a loop
    /// asks the same for each item.
    #[test]
    fn a_bill_with_choices_is_the_union_of_all_executions(plan in childless()) {
        let (plan, choices) = undecided(plan);
        prop_assume!(choices.count <= 6);
        let mut union = BTreeSet::new();
        for turn in 0_u32..1 << choices.count {
            let decided: Vec<bool> = (0..choices.count).map(|choice| turn >> choice & 1 == 1).collect();
            let effects: BTreeSet<StepKey> = executed(&plan, &decided).into_iter().collect();
            let bill = surveyed(&plan, &decided);
            let billed: BTreeSet<StepKey> =
                bill.effects.iter().map(|effect| effect.step.clone()).collect();
            prop_assert!(effects.is_subset(&billed), "{:?} beside {:?}", effects, billed);
            // What it is sure of, every execution does.
            let sure = bill.effects.iter().filter(|effect| effect.is_sure);
            let sure: BTreeSet<StepKey> = sure.map(|effect| effect.step.clone()).collect();
            prop_assert!(sure.is_subset(&effects), "{:?} beside {:?}", sure, effects);
            union.extend(effects);
        }
        let bill = surveyed(&plan, &vec![true; choices.count]);
        let billed: BTreeSet<StepKey> =
            bill.effects.iter().map(|effect| effect.step.clone()).collect();
        prop_assert!(choices.is_repeated || billed == union, "{:?} beside {:?}", billed, union);
    }
}

/// The properties look at plans with something in them.
#[test]
fn plans_have_effects_and_choices() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut effects, mut unsure) = (0, 0);
    for _ in 0..300 {
        let (plan, choices) = undecided(childless().new_tree(&mut runner).unwrap().current());
        let bill = surveyed(&plan, &vec![true; choices.count]);
        effects += bill.effects.len();
        unsure += bill.effects.iter().filter(|effect| !effect.is_sure).count();
    }
    assert!(effects > 300 && unsure > 50, "{effects}, {unsure}");
}

//! Random plans, scripts, inputs and facts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::work::{cost, values};
use super::world::{Op, Span, Verb};
use crate::expr::{Expr, Template};
use crate::plan::{
    ActionPolicy, Case, Delay, Footprint, Hashes, ModuleRef, Plan, PlanLimits, RetryPolicy, Step,
    StepKind,
};
use crate::{
    Amounts, Answer, Code, Dependency, EffectClass, EffectState, End, Fact, Failure, Input, Joined,
    Lease, Micros, Prepared, ReconcileAnswer, RowInput, SaidBy, SessionId, StepCharge, StepKey,
    Taken, Timestamp, Verdict, Wake,
};

const CLASSES: [EffectClass; 4] = [
    EffectClass::Pure,
    EffectClass::Transactional,
    EffectClass::Idempotent,
    EffectClass::Ambiguous,
];

/// Plans of every step kind, at most three deep, over one action of each class.
pub fn any_plan() -> impl Strategy<Value = Plan> {
    (prop::collection::vec(any_step(), 1..5), 2_u32..10).prop_map(|(steps, attempts)| Plan {
        schema: crate::plan::PLAN_SCHEMA,
        language: crate::plan::LANGUAGE_VERSION,
        module: ModuleRef { id: "model".to_owned(), version: 1 },
        hashes: Hashes { source: String::new(), manifest: String::new(), catalog: String::new() },
        footprint: Footprint { module: "model".to_owned(), uses: BTreeMap::new() },
        policies: CLASSES.iter().map(|class| policy(*class, attempts)).collect(),
        inputs: BTreeMap::new(),
        triggers: BTreeMap::new(),
        steps,
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 3 },
    })
}

fn policy(class: EffectClass, attempts: u32) -> (String, ActionPolicy) {
    let retry = RetryPolicy { attempts, ..RetryPolicy::default() };
    let policy = ActionPolicy { class, retry, settle_after: None, output: None };
    (class.as_str().to_owned(), policy)
}

fn step(kind: StepKind) -> Step {
    Step { kind, save_as: None, label: None, line: 1 }
}

fn literal(value: Value) -> Template {
    Template::Literal(value)
}

/// An action, now and then with a retry policy of its own that is stricter than the action's.
fn any_action() -> impl Strategy<Value = Step> {
    let class = prop_oneof![
        2 => prop::sample::select(&CLASSES[..]),
        1 => Just(EffectClass::Ambiguous),
    ];
    let attempts = prop_oneof![9 => Just(None), 1 => Just(Some(1))];
    (class, attempts).prop_map(|(class, attempts)| {
        let config = literal(json!({ "for": class.as_str() }));
        let action = class.as_str().to_owned();
        let retry = attempts.map(|attempts| RetryPolicy { attempts, ..RetryPolicy::default() });
        step(StepKind::Action { action, config, timeout: None, retry, catch: None })
    })
}

/// An action with steps that handle its failure.
fn caught(mut action: Step, steps: Vec<Step>) -> Step {
    if let StepKind::Action { catch, .. } = &mut action.kind {
        *catch = Some(steps);
    }
    action
}

fn any_leaf() -> impl Strategy<Value = Step> {
    let action = any_action();
    let wait = (0_u8..3, prop::option::of(1_i64..100)).prop_map(|(key, timeout)| {
        step(StepKind::WaitFor {
            signal: literal(json!("signal")),
            key: literal(json!(key.to_string())),
            timeout: timeout.map(Micros::from_secs),
        })
    });
    let delay = (0_i64..100)
        .prop_map(|seconds| step(StepKind::Delay(Delay::For(Micros::from_secs(seconds)))));
    let name =
        "[a-c]".prop_map(|name| step(StepKind::SetVariable { name, value: literal(json!("set")) }));
    let missing = Just(step(StepKind::SetVariable {
        name: "x".to_owned(),
        value: Template::Expr(Expr::Name("nobody".to_owned())),
    }));
    let child = Just(step(StepKind::RunWorkflow {
        workflow: literal(json!("child")),
        inputs: literal(json!({})),
    }));
    let children = (0_usize..4).prop_map(|count| {
        step(StepKind::RunWorkflows {
            workflow: literal(json!("child")),
            each: literal(Value::Array(vec![Value::Null; count])),
            item: "item".to_owned(),
            inputs: literal(json!({})),
            parallel: None,
        })
    });
    let succeed = Just(step(StepKind::Succeed { message: literal(json!("enough")) }));
    let fail = Just(step(StepKind::Fail { message: literal(json!("no")), code: None }));
    prop_oneof![
        40 => action,
        3 => wait,
        2 => delay,
        1 => child,
        3 => children,
        2 => name,
        1 => missing,
        1 => succeed,
        1 => fail,
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    any_leaf().prop_recursive(2, 12, 3, |inner| {
        let steps = || prop::collection::vec(inner.clone(), 1..3);
        let condition = prop_oneof![
            4 => any::<bool>().prop_map(|holds| Expr::Literal(json!(holds))),
            1 => Just(Expr::Literal(json!("no bool"))),
        ];
        let branch = (condition, steps(), prop::option::of(steps())).prop_map(
            |(condition, then, otherwise)| step(StepKind::If { condition, then, otherwise }),
        );
        let switch =
            (0_i64..3, steps(), prop::option::of(steps())).prop_map(|(on, steps, default)| {
                let cases = vec![Case { when: literal(json!(1)), steps }];
                step(StepKind::Switch { on: literal(json!(on)), cases, default })
            });
        // Four items are one over the limit of the plan.
        let items = prop_oneof![8 => 0_usize..4, 1 => Just(4)];
        let each = (items, steps()).prop_map(|(items, body)| {
            let over = literal(Value::Array((0..items).map(|item| json!(item)).collect()));
            step(StepKind::ForEach { over, item: "item".to_owned(), body })
        });
        let catching = (any_action(), steps()).prop_map(|(action, steps)| caught(action, steps));
        prop_oneof![1 => branch, 1 => switch, 1 => each, 2 => catching]
    })
}

/// Scripts: what workers, time, signals and people do.
pub fn any_script() -> impl Strategy<Value = Vec<Op>> {
    // One worker does most of the work; the other one comes after it, or believes that it still holds the run.
    let slot = || prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    // What goes well moves the run on; what goes wrong makes it interesting.
    let choice = || prop_oneof![1 => Just(51_u8), 1 => any::<u8>()];
    let span = prop::sample::select(&Span::ALL[..]);
    // Cancel and abandon end everything: most scripts go without.
    let verb = prop_oneof![
        4 => prop::sample::select(&[Verb::Resolve, Verb::Reconcile, Verb::Retry][..]),
        1 => prop::sample::select(&Verb::ALL[..]),
    ];
    let op = prop_oneof![
        14 => slot().prop_map(Op::Claim),
        50 => (slot(), choice()).prop_map(|(slot, choice)| Op::Work(slot, choice)),
        2 => slot().prop_map(Op::Crash),
        3 => (slot(), any::<bool>()).prop_map(|(slot, landed)| Op::Doubt { slot, landed }),
        10 => span.prop_map(Op::Pass),
        5 => Just(Op::Scan),
        2 => (0_u8..3).prop_map(Op::Signal),
        10 => any::<u8>().prop_map(Op::ChildEnds),
        1 => slot().prop_map(Op::HandOver),
        3 => (verb, any::<u8>()).prop_map(|(verb, choice)| Op::Operator(verb, choice)),
        2 => any_input().prop_map(|input| Op::Stray(Box::new(input))),
    ];
    prop::collection::vec(op, 1..250)
}

fn any_key() -> impl Strategy<Value = StepKey> {
    prop_oneof![
        4 => (0_usize..3).prop_map(|index| StepKey::from(format!("steps.{index}"))),
        1 => Just(StepKey::from("steps.0.do.0#0")),
        1 => Just(StepKey::from("nonsense")),
    ]
}

fn failure() -> Failure {
    Failure::new(Code::ACTION_ERROR, "stray")
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Succeeded { output: json!(1) }),
        Just(Answer::OutputRefused { error: failure(), evidence: "x".to_owned() }),
        (any::<bool>(), prop::option::of(0_i64..1_000_000)).prop_map(|(retryable, after)| {
            let retry_after = after.map(Micros::from_secs);
            Answer::Failed { failure: failure(), retryable, retry_after }
        }),
        Just(Answer::Waiting { on: Dependency::on("signal", "0") }),
        any_key().prop_map(|step| Answer::Waiting { on: Dependency::on_children(&step) }),
        Just(Answer::Unknown { message: "lost".to_owned(), evidence: None }),
        Just(Answer::NotCalled),
    ]
}

fn lease() -> Lease {
    let owner = SessionId::from_bytes([9; 16]);
    Lease { owner, until: Timestamp::MAX, length: Micros::from_secs(120) }
}

/// Any input, fitting or not.
pub fn any_input() -> impl Strategy<Value = Input> {
    let row = prop_oneof![
        Just(RowInput::Claim { lease: lease() }),
        (0_u64..3).prop_map(|generation| RowInput::TakeOver { generation, lease: lease() }),
        Just(RowInput::HandOver),
        Just(RowInput::Unreadable { what: "stray".to_owned() }),
        Just(RowInput::Cancel { actor: "ann".to_owned(), reason: "stray".to_owned() }),
        Just(RowInput::LeaseGone),
        Just(RowInput::LetGo),
        any::<bool>().prop_map(|at_once| RowInput::Wake { wake: Wake::Signal(json!(1)), at_once }),
        Just(RowInput::Wake { wake: Wake::Deadline, at_once: false }),
        any::<bool>().prop_map(|at_once| RowInput::Wake { wake: Wake::Children, at_once }),
        (any_key(), any_verdict()).prop_map(|(step, verdict)| RowInput::Resolve { step, verdict }),
        any_key().prop_map(|step| RowInput::AskReconcile { step }),
        Just(RowInput::Retry),
        (any::<bool>(), any::<bool>()).prop_map(|(accept_unknown, unclaimable)| {
            RowInput::Abandon { accept_unknown, unclaimable }
        }),
    ];
    let reconciled = prop_oneof![
        Just(ReconcileAnswer::Succeeded { output: json!(1) }),
        Just(ReconcileAnswer::OutputRefused { error: failure(), evidence: "x".to_owned() }),
        Just(ReconcileAnswer::Failed { failure: failure() }),
        Just(ReconcileAnswer::NotFound),
        Just(ReconcileAnswer::Unknown { why: "gone".to_owned() }),
        Just(ReconcileAnswer::Error { message: "down".to_owned(), retry_after: None }),
    ];
    let prepared = prop_oneof![
        Just(Prepared::Ready { cost: Amounts::default() }),
        Just(Prepared::Ready { cost: cost() }),
        any_answer().prop_map(Prepared::Stopped),
    ];
    prop_oneof![
        Just(Input::Advance),
        (any_key(), prepared).prop_map(|(step, result)| Input::Prepared { step, result }),
        any_key().prop_map(|step| Input::Resolved { step, values: values(7) }),
        any_key().prop_map(|step| Input::Worked { step, cost: cost(), output: json!(1) }),
        (any_key(), any_answer()).prop_map(|(step, answer)| Input::Answer { step, answer }),
        (any_key(), reconciled).prop_map(|(step, answer)| Input::Reconciled { step, answer }),
        any_key().prop_map(|step| Input::Spawned { step, result: Ok(()) }),
        any_key().prop_map(|step| Input::Spawned { step, result: Err(failure()) }),
        any_key().prop_map(|step| Input::Joined { step, joined: Joined::Live }),
        any_key().prop_map(|step| Input::Joined { step, joined: Joined::Done(json!(1)) }),
        any_key().prop_map(|step| Input::Joined { step, joined: Joined::Failed(failure()) }),
        row.prop_map(Input::Row),
    ]
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Succeeded { output: json!(1) }),
        Just(Verdict::Failed { code: None, message: "no".to_owned() }),
        Just(Verdict::NotPerformed),
    ]
}

/// Any fact, fitting or not.
pub fn any_fact() -> impl Strategy<Value = Fact> {
    let by = SaidBy::Action;
    let at = Timestamp::from_micros(1);
    prop_oneof![
        Just(Fact::InputsComputed { inputs: json!({}) }),
        any_key().prop_map(|step| Fact::BranchTaken { step, taken: Taken::Then }),
        any_key().prop_map(|step| Fact::ValuesResolved { step, values: values(7) }),
        any_key().prop_map(|step| Fact::Charged(StepCharge { step, amounts: cost() })),
        any_key().prop_map(move |step| Fact::CallMarked {
            step,
            action: "ambiguous".to_owned(),
            at
        }),
        any_key().prop_map(|step| Fact::OutcomeUnknown {
            step,
            message: "lost".to_owned(),
            evidence: None
        }),
        any_key().prop_map(move |step| Fact::NothingHappened { step, by }),
        any_key().prop_map(move |step| Fact::StepCompleted { step, output: json!(1), by }),
        any_key().prop_map(move |step| Fact::StepFailed {
            step,
            error: failure(),
            effect: None,
            by,
            caught: false,
        }),
        any_key().prop_map(move |step| Fact::StepFailed {
            step,
            error: failure(),
            effect: Some(EffectState::Failed),
            by,
            caught: true,
        }),
        any_key().prop_map(move |step| Fact::DeadlineSet { step, at }),
        Just(Fact::AttentionCalled { error: failure() }),
        any_key().prop_map(|step| Fact::ReconcileAsked { step }),
        Just(Fact::Retried),
        Just(Fact::Ended { end: End::Canceled, at }),
        Just(Fact::Ended { end: End::Failed(failure()), at }),
        Just(Fact::Claimed { lease: lease(), at }),
        Just(Fact::TakenOver { lease: lease() }),
        Just(Fact::FenceRaised),
        Just(Fact::Requeued { ready_at: at }),
        any_key().prop_map(move |step| Fact::Parked {
            step,
            on: None,
            deadline: Some(at),
            spins: 0,
            at
        }),
        Just(Fact::Woken { wake: Wake::Deadline, ready_at: at, at_once: false }),
    ]
}

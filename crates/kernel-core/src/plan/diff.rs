//! What differs between two plans, for a person who decides whether one may replace the other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{ActionPolicy, Plan, Step, StepKind};
use crate::explain::branches_of;
use crate::interpreter::KeyPath;
use crate::{EffectClass, Micros};

/// Steps that are compared each with each. Where two plans differ in more, equal steps are found by their places.
const COMPARED_MAX: usize = 4_000_000;

/// What differs between two plans. Labels and the places of lines are not compared: they decide nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct PlanDiff {
    /// In the order of the later plan; removed steps come last.
    pub steps: Vec<StepDiff>,
    /// Actions whose class, policy or schema differ, or that only one of them uses.
    pub actions: Vec<ActionDiff>,
    /// Inputs, triggers, bindings, limits and the module, as `input item`.
    pub other: Vec<OtherDiff>,
}

/// What happened to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Only the later plan has it.
    Added,
    /// Only the earlier plan has it.
    Removed,
    /// Both have it, not the same.
    Changed,
    /// Both have the same, in another order or inside another step.
    Moved,
}

/// A step that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepDiff {
    /// How.
    pub change: Change,
    /// Its action, or what kind of control step it is.
    pub does: String,
    /// Its place in the earlier plan.
    pub before: Option<String>,
    /// Its place in the later plan.
    pub after: Option<String>,
    /// What of it differs.
    pub fields: Vec<String>,
}

/// An action that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionDiff {
    /// Its name.
    pub action: String,
    /// In the earlier plan.
    pub before: Option<ActionUse>,
    /// In the later plan.
    pub after: Option<ActionUse>,
}

/// How a plan uses an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionUse {
    /// What it promises.
    pub class: EffectClass,
    /// How many steps call it; a step in a loop counts once.
    pub steps: usize,
    /// Executions in a row that may end badly.
    pub attempts: u32,
    /// How long `NotFound` of a reconcile proves nothing.
    pub settle_after: Option<Micros>,
    /// Semantic hash: differs where the schemas of its config or output do.
    pub hash: Option<String>,
}

/// Something else that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherDiff {
    /// What.
    pub what: String,
    /// How.
    pub change: Change,
}

impl PlanDiff {
    /// Compares an earlier plan with a later one.
    #[must_use]
    pub fn of(before: &Plan, after: &Plan) -> Self {
        let (old, new) = (flatten(before), flatten(after));
        Self {
            steps: steps(&old, &new),
            actions: actions((before, &old), (after, &new)),
            other: other(before, after),
        }
    }

    /// Whether the two do the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.actions.is_empty() && self.other.is_empty()
    }
}

/// A step without the steps inside it.
struct Flat {
    place: String,
    does: String,
    /// The step that it is inside of, by its number, and the list there.
    inside: Option<(usize, String)>,
    own: Value,
}

fn flatten(plan: &Plan) -> Vec<Flat> {
    let mut flat = Vec::new();
    add_list(&plan.steps, &KeyPath::root(), None, &mut flat);
    flat
}

fn add_list(steps: &[Step], path: &KeyPath, inside: Option<usize>, flat: &mut Vec<Flat>) {
    for (index, step) in steps.iter().enumerate() {
        let at = path.clone().step(index);
        let number = flat.len();
        let inside = inside.map(|outer| (outer, list_name(flat, outer, path)));
        let own = own_of(step);
        flat.push(Flat { place: at.place().to_owned(), does: step.does().to_owned(), inside, own });
        for (branch, list) in branches_of(step) {
            add_list(list, &at.clone().branch(branch), Some(number), flat);
        }
        if let StepKind::ForEach { body, .. } = &step.kind {
            add_list(body, &at.clone().body(), Some(number), flat);
        }
    }
}

/// Which list of a step: the part of its place behind the step's own.
fn list_name(flat: &[Flat], outer: usize, list: &KeyPath) -> String {
    let outer = flat.get(outer).map_or("", |step| step.place.as_str());
    list.place().strip_prefix(outer).unwrap_or_default().to_owned()
}

/// What a step is by itself: without place, label, and the steps inside it.
fn own_of(step: &Step) -> Value {
    let mut value = serde_json::to_value(step).unwrap_or(Value::Null);
    let Value::Object(members) = &mut value else { return value };
    members.remove("line");
    members.remove("label");
    for kind in members.values_mut() {
        let Value::Object(kind) = kind else { continue };
        for inner in ["then", "otherwise", "default", "body", "catch"] {
            kind.remove(inner);
        }
        let cases = kind.get_mut("cases").and_then(Value::as_array_mut);
        for case in cases.into_iter().flatten().filter_map(Value::as_object_mut) {
            case.remove("do");
        }
    }
    value
}

fn steps(old: &[Flat], new: &[Flat]) -> Vec<StepDiff> {
    let mut pairs = in_order(old, new);
    let in_place: BTreeSet<usize> = pairs.keys().copied().collect();
    pair_rest(&mut pairs, old, new, |a, b| a.own == b.own);
    let equal: BTreeSet<usize> = pairs.keys().copied().collect();
    pair_rest(&mut pairs, old, new, |a, b| a.does == b.does && a.place == b.place);
    pair_rest(&mut pairs, old, new, |a, b| a.does == b.does);
    let mut diffs = Vec::new();
    for (number, step) in new.iter().enumerate() {
        let Some((before_number, before)) =
            pairs.get(&number).and_then(|at| Some((*at, old.get(*at)?)))
        else {
            diffs.push(diff(Change::Added, None, Some(step)));
            continue;
        };
        if !equal.contains(&number) {
            diffs.push(diff(Change::Changed, Some(before), Some(step)));
        } else if !in_place.contains(&number) || !is_same_list(&pairs, before, step) {
            diffs.push(diff(Change::Moved, old.get(before_number), Some(step)));
        }
    }
    let kept: BTreeSet<usize> = pairs.values().copied().collect();
    let removed = old.iter().enumerate().filter(|(number, _)| !kept.contains(number));
    diffs.extend(removed.map(|(_, step)| diff(Change::Removed, Some(step), None)));
    diffs
}

fn is_same_list(pairs: &BTreeMap<usize, usize>, before: &Flat, after: &Flat) -> bool {
    match (&before.inside, &after.inside) {
        (None, None) => true,
        (Some((old, old_list)), Some((new, new_list))) => {
            old_list == new_list && pairs.get(new) == Some(old)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Pairs of equal steps that keep their order: the longest such list. Later number to earlier number.
fn in_order(old: &[Flat], new: &[Flat]) -> BTreeMap<usize, usize> {
    let equal = |(a, b): &(&Flat, &Flat)| a.own == b.own;
    let start = old.iter().zip(new).take_while(equal).count();
    let (old_rest, new_rest) = (old.get(start..).unwrap_or(&[]), new.get(start..).unwrap_or(&[]));
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(equal).count();
    let mut pairs: BTreeMap<usize, usize> = (0..start).map(|at| (at, at)).collect();
    pairs.extend((1..=end).map(|back| (new.len() - back, old.len() - back)));
    let old_rest = old_rest.get(..old_rest.len() - end).unwrap_or(&[]);
    let new_rest = new_rest.get(..new_rest.len() - end).unwrap_or(&[]);
    if old_rest.len().saturating_mul(new_rest.len()) <= COMPARED_MAX {
        let common = longest(old_rest, new_rest);
        pairs.extend(common.into_iter().map(|(a, b)| (b + start, a + start)));
    }
    pairs
}

/// The longest common subsequence, as pairs of numbers.
fn longest(old: &[Flat], new: &[Flat]) -> Vec<(usize, usize)> {
    // `table[a][b]`: how many of `old[a..]` and `new[b..]` can be paired.
    let mut table = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    let at = |table: &[Vec<u32>], a: usize, b: usize| {
        table.get(a).and_then(|row| row.get(b)).copied().unwrap_or_default()
    };
    for (a, before) in old.iter().enumerate().rev() {
        for (b, after) in new.iter().enumerate().rev() {
            let best = if before.own == after.own {
                at(&table, a + 1, b + 1) + 1
            } else {
                at(&table, a + 1, b).max(at(&table, a, b + 1))
            };
            if let Some(cell) = table.get_mut(a).and_then(|row| row.get_mut(b)) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while let (Some(before), Some(after)) = (old.get(a), new.get(b)) {
        if before.own == after.own {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if at(&table, a + 1, b) >= at(&table, a, b + 1) {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

/// Pairs what is left and fits, in order.
fn pair_rest(
    pairs: &mut BTreeMap<usize, usize>,
    old: &[Flat],
    new: &[Flat],
    fits: impl Fn(&Flat, &Flat) -> bool,
) {
    let taken: BTreeSet<usize> = pairs.values().copied().collect();
    let mut left: Vec<(usize, &Flat)> =
        old.iter().enumerate().filter(|(number, _)| !taken.contains(number)).collect();
    for (number, after) in new.iter().enumerate() {
        if pairs.contains_key(&number) {
            continue;
        }
        if let Some(at) = left.iter().position(|(_, before)| fits(before, after)) {
            pairs.insert(number, left.remove(at).0);
        }
    }
}

fn diff(change: Change, before: Option<&Flat>, after: Option<&Flat>) -> StepDiff {
    let fields = match (before, after) {
        (Some(before), Some(after)) => differing(&before.own, &after.own),
        (None, _) | (_, None) => Vec::new(),
    };
    StepDiff {
        change,
        does: after.or(before).map(|step| step.does.clone()).unwrap_or_default(),
        before: before.map(|step| step.place.clone()),
        after: after.map(|step| step.place.clone()),
        fields,
    }
}

/// The members in which two steps of one kind differ.
fn differing(before: &Value, after: &Value) -> Vec<String> {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return Vec::new();
    };
    let mut fields = BTreeSet::new();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        match (before.get(name), after.get(name)) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                let inner: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                let inner = inner.into_iter().filter(|key| a.get(*key) != b.get(*key));
                fields.extend(inner.cloned());
            }
            (a, b) if a != b => {
                fields.insert(name.clone());
            }
            (_, _) => {}
        }
    }
    fields.into_iter().collect()
}

fn actions(before: (&Plan, &[Flat]), after: (&Plan, &[Flat])) -> Vec<ActionDiff> {
    let (old, new) = (uses(before), uses(after));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let diffs = names.into_iter().map(|name| ActionDiff {
        action: name.clone(),
        before: old.get(name).cloned(),
        after: new.get(name).cloned(),
    });
    diffs.filter(|diff| diff.before != diff.after).collect()
}

fn uses((plan, steps): (&Plan, &[Flat])) -> BTreeMap<String, ActionUse> {
    let used = |(name, policy): (&String, &ActionPolicy)| {
        let calls = steps.iter().filter(|step| step.does == *name);
        let hash = plan.footprint.uses.get(&format!("action/{name}")).cloned();
        let of = ActionUse {
            class: policy.class,
            steps: calls.count(),
            attempts: policy.retry.attempts,
            settle_after: policy.settle_after,
            hash,
        };
        (name.clone(), of)
    };
    plan.policies.iter().map(used).collect()
}

fn other(before: &Plan, after: &Plan) -> Vec<OtherDiff> {
    let (old, new) = (named_parts(before), named_parts(after));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let diffs = names.into_iter().filter_map(|what| {
        let change = match (old.get(what), new.get(what)) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            (Some(old), Some(new)) if old == new => return None,
            (Some(_), Some(_)) => Change::Changed,
        };
        Some(OtherDiff { what: what.clone(), change })
    });
    diffs.collect()
}

/// Everything beside steps and actions, by name.
fn named_parts(plan: &Plan) -> BTreeMap<String, Value> {
    fn value(part: &impl Serialize) -> Value {
        serde_json::to_value(part).unwrap_or(Value::Null)
    }
    let mut parts = BTreeMap::new();
    parts.insert("module".to_owned(), value(&plan.module));
    parts.insert("limits".to_owned(), value(&plan.limits));
    for (name, input) in &plan.inputs {
        parts.insert(format!("input {name}"), value(input));
    }
    for (kind, trigger) in &plan.triggers {
        parts.insert(format!("trigger {kind}"), value(trigger));
    }
    for (kind, names) in &plan.bindings {
        for (name, id) in names {
            parts.insert(format!("binding {kind} {name}"), Value::String(id.clone()));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Expr, Template};
    use crate::plan::{Footprint, Hashes, ModuleRef, PlanLimits, RetryPolicy};

    fn act(action: &str, config: &str) -> Step {
        let config = Template::Literal(Value::String(config.to_owned()));
        let action = action.to_owned();
        step(StepKind::Action { action, config, timeout: None, retry: None, catch: None })
    }

    fn step(kind: StepKind) -> Step {
        Step { kind, save_as: None, label: Some("for people".to_owned()), line: 7 }
    }

    fn when(then: Vec<Step>) -> Step {
        let condition = Expr::Name("ready".to_owned());
        step(StepKind::If { condition, then, otherwise: None })
    }

    fn plan(steps: Vec<Step>, class: EffectClass) -> Plan {
        let policy =
            ActionPolicy { class, retry: RetryPolicy::default(), settle_after: None, output: None };
        let (id, version) = ("shop".to_owned(), 1);
        let hash = String::new;
        Plan {
            schema: 1,
            language: 1,
            module: ModuleRef { id: id.clone(), version },
            hashes: Hashes { source: hash(), manifest: hash(), catalog: hash() },
            footprint: Footprint { module: id, uses: BTreeMap::new() },
            policies: BTreeMap::from([("pay".to_owned(), policy)]),
            inputs: BTreeMap::new(),
            triggers: BTreeMap::new(),
            steps,
            bindings: BTreeMap::new(),
            limits: PlanLimits { loop_items: 100 },
        }
    }

    fn shapes(before: Vec<Step>, after: Vec<Step>) -> Vec<String> {
        let class = EffectClass::Ambiguous;
        let diff = PlanDiff::of(&plan(before, class), &plan(after, class));
        let place = |place: &Option<String>| place.clone().unwrap_or_else(|| "-".to_owned());
        let words = diff.steps.iter().map(|step| {
            let (before, after) = (place(&step.before), place(&step.after));
            format!("{:?} {} {before} {after} {}", step.change, step.does, step.fields.join(","))
        });
        words.map(|words| words.trim_end().to_owned()).collect()
    }

    #[test]
    fn equal_plans_differ_in_nothing() {
        let steps = || vec![act("mail", "a"), when(vec![act("pay", "b")])];
        let mut relabeled = steps();
        relabeled[0].label = None;
        relabeled[0].line = 99;
        let class = EffectClass::Ambiguous;
        assert!(PlanDiff::of(&plan(steps(), class), &plan(relabeled, class)).is_empty());
    }

    #[test]
    fn an_inserted_step_moves_none_of_the_others() {
        let (before, after) = (
            vec![act("mail", "a"), act("pay", "b")],
            vec![act("mail", "a"), act("book", "c"), act("pay", "b")],
        );
        assert_eq!(shapes(before.clone(), after.clone()), ["Added book - steps.1"]);
        assert_eq!(shapes(after, before), ["Removed book steps.1 -"]);
    }

    #[test]
    fn a_step_whose_config_differs_is_changed() {
        let before = vec![act("mail", "a"), act("pay", "b")];
        let after = vec![act("mail", "a"), act("pay", "c")];
        assert_eq!(shapes(before, after), ["Changed pay steps.1 steps.1 config"]);
    }

    #[test]
    fn a_change_inside_a_catch_is_no_change_of_its_action() {
        let caught = |config: &str| {
            let mut pay = act("pay", "a");
            if let StepKind::Action { catch, .. } = &mut pay.kind {
                *catch = Some(vec![act("mail", config)]);
            }
            vec![pay]
        };
        let changed = ["Changed mail steps.0.catch.0 steps.0.catch.0 config"];
        assert_eq!(shapes(caught("a"), caught("b")), changed);
        assert_eq!(shapes(vec![act("pay", "a")], caught("b")), ["Added mail - steps.0.catch.0"]);
    }

    #[test]
    fn a_step_in_another_order_or_inside_another_is_moved() {
        let before = vec![act("mail", "a"), act("pay", "b"), act("book", "c")];
        let after = vec![act("pay", "b"), act("book", "c"), act("mail", "a")];
        assert_eq!(shapes(before, after), ["Moved mail steps.0 steps.2"]);
        let before = vec![act("mail", "a"), act("pay", "b")];
        let after = vec![act("mail", "a"), when(vec![act("pay", "b")])];
        let expected = ["Added if - steps.1", "Moved pay steps.1 steps.1.then.0"];
        assert_eq!(shapes(before, after), expected);
    }

    #[test]
    fn a_change_of_class_is_a_change_of_the_action() {
        let steps = || vec![act("pay", "b"), act("pay", "b")];
        let before = plan(steps(), EffectClass::Idempotent);
        let mut after = plan(steps(), EffectClass::Ambiguous);
        after.limits.loop_items = 5;
        let diff = PlanDiff::of(&before, &after);
        assert!(diff.steps.is_empty() && diff.actions.len() == 1);
        let (old, new) = (diff.actions[0].before.as_ref(), diff.actions[0].after.as_ref());
        assert_eq!(old.map(|it| (it.class, it.steps)), Some((EffectClass::Idempotent, 2)));
        assert_eq!(new.map(|it| it.class), Some(EffectClass::Ambiguous));
        let limits = OtherDiff { what: "limits".to_owned(), change: Change::Changed };
        assert_eq!(diff.other, [limits]);
    }

    #[test]
    fn large_plans_are_compared_in_bounded_time() {
        let many = |text: &str| (0..3_000).map(|n| act("mail", &format!("{text}{n}"))).collect();
        let changed = shapes(many("a"), many("b"));
        assert_eq!(changed.len(), 3_000);
        assert!(changed.iter().all(|line| line.starts_with("Changed mail")));
    }
}

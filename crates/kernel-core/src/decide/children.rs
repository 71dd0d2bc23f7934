//! `runWorkflow` and `runWorkflows`: children are created, waited for, and read.

use serde_json::Value;

use super::advance::{completed, fail, lazily};
use super::answer::{failed_for_good, then_cancel};
use super::{Collect, Command, Decision, Durability, Held, Rejection, Spawn, park, wrong_state};
use crate::expr::Template;
use crate::interpreter::json_len;
use crate::plan::{Plan, Step, StepKind};
use crate::{
    CHILDREN_MAX, CHILDREN_MAX_BYTES, Child, Children, ChildrenError, Code, Dependency, Failure,
    Joined, Next, Phase, SaidBy, StepKey, Timestamp, Wake,
};

/// Creates the children, or reads them once they have ended.
pub(super) fn step(held: &Held, step: &StepKey, node: &Step, now: Timestamp) -> Decision {
    let kind = &node.kind;
    let resumed = park::resume_of(held, step).map(|resume| &resume.wake);
    if matches!(resumed, Some(Wake::Children)) {
        let is_list = matches!(kind, StepKind::RunWorkflows { .. });
        let collect = Command::Collect(Collect { step: step.clone(), is_list });
        return Decision::command(held, Vec::new(), collect, Durability::Before);
    }
    let wanted = match kind {
        StepKind::RunWorkflow { workflow, inputs } => {
            one(held, workflow, inputs).map(|child| (vec![child], None))
        }
        StepKind::RunWorkflows { workflow, each, item, inputs, parallel } => {
            list(held, (workflow, each, item), inputs).map(|children| (children, *parallel))
        }
        StepKind::Action { .. }
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::ForEach { .. }
        | StepKind::SetVariable { .. }
        | StepKind::Succeed { .. }
        | StepKind::Fail { .. }
        | StepKind::Delay(_)
        | StepKind::WaitFor { .. } => {
            Err(Failure::new(Code::RESTORE_INVALID, "this step has no children"))
        }
    };
    let checked = wanted.and_then(|(children, parallel)| {
        let children = Children::check(children).map_err(|error| failure_of(&error))?;
        Ok((children, parallel))
    });
    match checked {
        Err(failure) => fail(held, (step, node), failure, now),
        Ok((children, _)) if children.is_empty() => {
            lazily(held, completed(step, Value::Array(Vec::new()), SaidBy::Kernel))
        }
        Ok((children, parallel)) => {
            let spawn = Command::Spawn(Spawn { step: step.clone(), children, parallel });
            Decision::command(held, Vec::new(), spawn, Durability::Before)
        }
    }
}

fn one(held: &Held, workflow: &Template, inputs: &Template) -> Result<Child, Failure> {
    let workflow = key_of(held.cursor.render(workflow)?)?;
    Ok(Child::new(workflow, held.cursor.render(inputs)?))
}

/// Bounded while it is made: what is over a limit is not rendered to its end.
fn list(
    held: &Held,
    (workflow, each, name): (&Template, &Template, &str),
    inputs: &Template,
) -> Result<Vec<Child>, Failure> {
    let Value::Array(items) = held.cursor.render(each)? else {
        let text = "`runWorkflows` needs a list for `each`, its value is something else";
        return Err(Failure::new(Code::EXPRESSION_ERROR, text));
    };
    if items.len() > CHILDREN_MAX {
        return Err(failure_of(&ChildrenError::TooMany { limit: CHILDREN_MAX }));
    }
    let mut children = Vec::with_capacity(items.len());
    let mut bytes = 0_usize;
    for item in &items {
        let with = |template| held.cursor.render_with(template, (name, item));
        let (workflow, inputs) = (key_of(with(workflow)?)?, with(inputs)?);
        bytes = bytes.saturating_add(json_len(&inputs));
        if bytes > CHILDREN_MAX_BYTES {
            return Err(failure_of(&ChildrenError::TooLarge { limit: CHILDREN_MAX_BYTES }));
        }
        children.push(Child::new(workflow, inputs));
    }
    Ok(children)
}

fn key_of(value: Value) -> Result<String, Failure> {
    match value {
        Value::String(key) if !key.is_empty() => Ok(key),
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let text = "`workflow` needs the key of a workflow: a text that is not empty";
            Err(Failure::new(Code::EXPRESSION_ERROR, text))
        }
    }
}

fn failure_of(error: &ChildrenError) -> Failure {
    error.failure().unwrap_or_else(|| Failure::new(Code::LIMIT_EXCEEDED, error.to_string()))
}

/// The children exist: the run waits for them.
pub(super) fn spawned(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    result: Result<(), Failure>,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let node = open_node(held, plan, step)?;
    Ok(match result {
        Ok(()) => wait(held, step, now),
        Err(failure) => failed_for_good(held, (step, node), failure, None, SaidBy::Kernel, now),
    })
}

/// The children have been read.
pub(super) fn joined(
    held: &Held,
    plan: &Plan,
    step: &StepKey,
    joined: Joined,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let node = open_node(held, plan, step)?;
    Ok(match joined {
        Joined::Live => wait(held, step, now),
        Joined::Done(output) => {
            let fact = completed(step, output, SaidBy::Kernel);
            then_cancel(held, vec![fact], Durability::Now, now)
        }
        Joined::Failed(failure) => {
            failed_for_good(held, (step, node), failure, None, SaidBy::Kernel, now)
        }
    })
}

fn wait(held: &Held, step: &StepKey, now: Timestamp) -> Decision {
    park::on_dependency(held, step, Dependency::on_children(step), Vec::new(), now)
}

/// A worker holds the run at this step, and the step is one with children.
fn open_node<'p>(held: &'p Held, plan: &'p Plan, step: &StepKey) -> Result<&'p Step, Rejection> {
    if !matches!(held.run.phase, Phase::Running { .. }) {
        return Err(wrong_state(&held.run, "only a running run takes answers"));
    }
    let open = match held.cursor.next(plan) {
        Ok(Next::Step { key, node }) => {
            let has_children =
                matches!(node.kind, StepKind::RunWorkflow { .. } | StepKind::RunWorkflows { .. });
            if has_children && key == *step {
                return Ok(node);
            }
            format!("`{key}`")
        }
        Ok(Next::Inputs) => "its inputs".to_owned(),
        Ok(Next::Done { .. } | Next::Broken(_)) => "its end".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Rejection::WrongStep { run: held.run.id, got: step.clone(), open })
}

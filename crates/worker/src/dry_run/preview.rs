//! Asks actions what they would do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{Amounts, Answer, Call, Code, Dependency, DryHeld, Failure, Previewed};
use surefoot_language::{Access, DynEffect, HookError, PreviewAction, PreviewHooks, StepCx};

use super::context::context;
use super::drive::Driver;
use super::worker::Inner;
use crate::builder::Gate;
use crate::engine::driver::{Said, config_invalid, cost_of, failed, judged_by, of_error, panicked};
use crate::engine::panics::{caught, caught_call};

/// How long one hook may take.
const HOOK_LIMIT: Duration = Duration::from_secs(30);

/// Runs a pure action.
pub(super) async fn run(driver: &Driver<'_>, held: &DryHeld, plan: &Plan, call: &Call) -> Answer {
    let inner = driver.inner;
    let Some(action) = inner.previews.action(&call.action) else { return gone(call) };
    let PreviewHooks::Pure(pure) = action.hooks() else { return gone(call) };
    if let Err(findings) = action.validate_input(&call.config) {
        return config_invalid(&findings);
    }
    let hook = driver.hold.begin_hook(true);
    let cx = context(driver, (held, plan), call, hook.token());
    let ran = if pure.is_heavy() {
        let (pure, config) = (pure.clone(), call.config.clone());
        let computing = tokio::task::spawn_blocking(move || pure.run(&cx, &config));
        match computing.await {
            Ok(ran) => ran,
            Err(joined) => return panicked(&joined.to_string()),
        }
    } else {
        match caught_call(|| pure.run(&cx, &call.config)) {
            Ok(ran) => ran,
            Err(text) => return panicked(&text.0),
        }
    };
    match ran {
        Ok(output) => match judged_by(|output| action.validate_output(output), &output) {
            Ok(()) => Answer::Succeeded { output },
            Err(unkept) => Answer::OutputRefused { error: unkept.error, evidence: unkept.evidence },
        },
        Err(error) => stopped(inner, error),
    }
}

fn gone(call: &Call) -> Answer {
    failed(Code::ACTION_ERROR, format!("the module has no such action `{}`", call.action))
}

fn stopped(inner: &Inner, error: HookError) -> Answer {
    match of_error(error, inner.previews.classifiers()) {
        Said::Answer(answer) => answer,
        // The fence's word: it is looked at again.
        Said::Halted(_) => Answer::NotCalled,
    }
}

/// Everything that an execution asks before an effect, and then the preview instead of the effect.
pub(super) async fn preview(
    driver: &Driver<'_>,
    held: &DryHeld,
    plan: &Plan,
    call: &Call,
) -> Previewed {
    let inner = driver.inner;
    let Some(action) = inner.previews.action(&call.action) else { return refused(gone(call)) };
    let PreviewHooks::Effect(effect) = action.hooks() else { return refused(gone(call)) };
    let hook = driver.hold.begin_hook(true);
    let cx = context(driver, (held, plan), call, hook.token());
    if let Err(findings) = action.validate_input(&call.config) {
        return refused(config_invalid(&findings));
    }
    if let Some(authorize) = &inner.authorize {
        let gate = Gate {
            step: cx.clone(),
            action: call.action.clone(),
            class: call.class,
            input: Arc::new(call.config.clone()),
        };
        let asked = async { authorize(gate).await.map_err(HookError::Stopped) };
        if let Some(previewed) = access(inner, asked).await {
            return previewed;
        }
    }
    if let Some(previewed) = access(inner, effect.authorize(&cx, &call.config)).await {
        return previewed;
    }
    let cost = match cost_of(&**effect, call) {
        Ok(cost) => cost,
        Err(answer) => return refused(*answer),
    };
    planned(inner, action, (&**effect, cost), &cx, call).await
}

async fn planned(
    inner: &Inner,
    action: &PreviewAction,
    (effect, cost): (&dyn DynEffect, Amounts),
    cx: &StepCx,
    call: &Call,
) -> Previewed {
    let planned = match within(effect.plan(cx, &call.config)).await {
        Ok(Ok(planned)) => planned,
        Ok(Err(error)) => return unpreviewed(stopped(inner, error)),
        Err(answer) => return unpreviewed(answer),
    };
    let mut issues: Vec<String> = planned.issues().to_vec();
    let judge = |output: &_| judged_by(|output| action.validate_output(output), output);
    let output = planned.planned_output().filter(|output| match judge(output) {
        Ok(()) => true,
        Err(unkept) => {
            issues.push(format!("the planned output cannot be used: {}", unkept.error.message));
            false
        }
    });
    let (summary, output) = (planned.summary().to_owned(), output.cloned());
    Previewed::Planned { summary, cost, output, issues }
}

/// `None` goes on.
async fn access(
    inner: &Inner,
    asked: impl Future<Output = Result<Access, HookError>> + Send,
) -> Option<Previewed> {
    match within(asked).await {
        Ok(Ok(Access::Allowed)) => None,
        Ok(Ok(Access::Denied { why })) => Some(refused(failed(Code::FORBIDDEN, why))),
        Ok(Err(error)) => Some(refused(stopped(inner, error))),
        Err(answer) => Some(refused(answer)),
    }
}

/// A hook within its time; a panic or the end of its time is an answer.
async fn within<T>(hook: impl Future<Output = T> + Send) -> Result<T, Answer> {
    match tokio::time::timeout(HOOK_LIMIT, caught(hook)).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(text)) => Err(panicked(&text.0)),
        Err(_) => {
            let text = format!("it did not come back within {} s", HOOK_LIMIT.as_secs());
            let failure = Failure::new(Code::TIMEOUT, text);
            Err(Answer::Failed { failure, retryable: true, retry_after: None })
        }
    }
}

/// What an answer before the preview means: an execution gets it too.
fn refused(answer: Answer) -> Previewed {
    said(answer, Previewed::Refused)
}

/// What an answer of the preview means: there is none, and an execution does not ask for it.
fn unpreviewed(answer: Answer) -> Previewed {
    said(answer, |failure| Previewed::Unsupported { why: failure.message })
}

fn said(answer: Answer, for_good: impl FnOnce(Failure) -> Previewed) -> Previewed {
    match answer {
        Answer::Failed { failure, retryable: true, retry_after } => {
            Previewed::FailedForNow { failure, retry_after }
        }
        Answer::Failed { failure, .. } | Answer::OutputRefused { error: failure, .. } => {
            for_good(failure)
        }
        Answer::Waiting { on } => Previewed::Waits { why: waits(&on) },
        Answer::Unknown { message, .. } => for_good(Failure::new(Code::ACTION_ERROR, message)),
        Answer::Succeeded { .. } | Answer::NotCalled => Previewed::FailedForNow {
            failure: Failure::new(Code::ACTION_ERROR, "the preview was stopped"),
            retry_after: None,
        },
    }
}

fn waits(on: &Dependency) -> String {
    format!("it waits for `{}` of `{}`", on.kind(), on.key())
}

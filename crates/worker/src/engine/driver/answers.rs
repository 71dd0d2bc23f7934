//! What hooks say, in the core's words.

use serde_json::json;
use surefoot_kernel_core::{Answer, Call, Code, Failure};
use surefoot_language::{
    AmbiguousStop, AmbiguousStopParts, Classifiers, Halt, HookError, InputError, OutputError,
    SchemaFinding, StopParts,
};

use super::output::{Unkept, listed};

/// What a hook's end means.
pub(crate) enum Said {
    Answer(Answer),
    /// The fence's word: no failure is recorded.
    Halted(Halt),
}

pub(crate) fn failed(code: Code, message: impl AsRef<str>) -> Answer {
    let failure = Failure::new(code, message);
    Answer::Failed { failure, retryable: false, retry_after: None }
}

pub(super) fn failed_for_now(code: Code, message: impl AsRef<str>) -> Answer {
    let failure = Failure::new(code, message);
    Answer::Failed { failure, retryable: true, retry_after: None }
}

pub(crate) fn panicked(text: &str) -> Answer {
    failed(Code::ACTION_ERROR, format!("the action panicked: {text}"))
}

pub(super) fn timed_out(call: &Call) -> Answer {
    failed_for_now(Code::TIMEOUT, over_time(call))
}

pub(super) fn over_time(call: &Call) -> String {
    let seconds = call.timeout.map_or(0.0, |limit| limit.get() as f64 / 1e6);
    format!("`{}` did not come back within its {seconds} s", call.action)
}

/// The config does not fit, place by place.
pub(crate) fn config_invalid(findings: &[SchemaFinding]) -> Answer {
    let text = format!("the config does not fit the action's schema: {}", listed(findings));
    let pointers: Vec<&str> = findings.iter().map(|finding| finding.pointer.as_str()).collect();
    let failure = Failure::new(Code::CONFIG_INVALID, text).details(json!({ "pointers": pointers }));
    Answer::Failed { failure, retryable: false, retry_after: None }
}

fn no_input(error: &InputError) -> Answer {
    failed(error.code(), error.to_string())
}

pub(super) fn no_output(error: &OutputError) -> Answer {
    let error = Failure::new(error.code(), error.to_string());
    Answer::OutputRefused { error, evidence: String::new() }
}

pub(super) fn unkept(unkept: Unkept) -> Answer {
    Answer::OutputRefused { error: unkept.error, evidence: unkept.evidence }
}

/// How a pure, transactional or idempotent hook stopped.
pub(crate) fn of_error(error: HookError, classifiers: &Classifiers) -> Said {
    match error {
        HookError::Input(error) => Said::Answer(no_input(&error)),
        HookError::Output(error) => Said::Answer(no_output(&error)),
        HookError::Stopped(stop) => of_parts(stop.into_parts(classifiers)),
    }
}

fn of_parts(parts: StopParts) -> Said {
    Said::Answer(match parts {
        StopParts::Halted(halt) => return Said::Halted(halt),
        StopParts::Waiting(on) => Answer::Waiting { on },
        StopParts::Failed { code, message, retryable, retry_after, source: _ } => {
            Answer::Failed { failure: Failure::new(code, message), retryable, retry_after }
        }
    })
}

/// How an ambiguous `run` stopped, after its mark.
pub(super) fn of_ambiguous(error: HookError<AmbiguousStop>, classifiers: &Classifiers) -> Said {
    let stop = match error {
        // The hook was not called: nothing can have happened.
        HookError::Input(error) => return Said::Answer(no_input(&error)),
        HookError::Output(error) => return Said::Answer(no_output(&error)),
        HookError::Stopped(stop) => stop,
    };
    Said::Answer(match stop.into_parts(classifiers) {
        AmbiguousStopParts::Halted(halt) => return Said::Halted(halt),
        AmbiguousStopParts::NothingHappened { code, message, retry_after, source: _ } => {
            let failure = Failure::new(code, message);
            Answer::Failed { failure, retryable: true, retry_after }
        }
        AmbiguousStopParts::NothingHappenedWaiting(on) => Answer::Waiting { on },
        AmbiguousStopParts::Refused { code, message, source: _ } => failed(code, message),
        AmbiguousStopParts::MayHaveHappened { code, message, evidence, source: _ } => {
            let message = match code {
                Some(code) => format!("{code}: {message}"),
                None => message,
            };
            let evidence = evidence.as_ref().map(super::output::evidence);
            Answer::Unknown { message, evidence }
        }
    })
}

/// Why a hook's token fired before it came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It did not fire, or for a cancel request.
    Nothing,
    /// Its time was up.
    TimeIsUp,
    /// The worker stops, or its lease ends.
    ToLeave,
}

/// Once its token has fired, what a hook says of a failure is most likely about that: past its time it is the
/// timeout, and for the worker's sake it is no failure at all. Outputs and waits stand. Not for ambiguous actions.
pub(super) fn after_token(said: Said, told: Told, call: &Call) -> Said {
    match (said, told) {
        (
            Said::Answer(Answer::Failed { .. } | Answer::Unknown { .. } | Answer::NotCalled),
            Told::TimeIsUp,
        ) => Said::Answer(timed_out(call)),
        (Said::Answer(Answer::Failed { .. } | Answer::Unknown { .. }), Told::ToLeave) => {
            Said::Answer(Answer::NotCalled)
        }
        (said @ (Said::Answer(_) | Said::Halted(_)), _) => said,
    }
}

/// The application's own error below a stop, where a database's verdict may be found.
pub(super) fn source_of(error: &HookError) -> Option<&(dyn std::error::Error + 'static)> {
    match error {
        HookError::Stopped(stop) => {
            stop.source().map(|source| -> &(dyn std::error::Error + 'static) { source })
        }
        HookError::Input(_) | HookError::Output(_) => None,
    }
}

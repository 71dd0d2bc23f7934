//! What a person may do now, with the text to type: the state machine is asked, nothing is known here.

use serde::Serialize;
use serde_json::Value;

use super::foresee::Foreseen;
use super::{Coverage, Known, effects, foresee, text};
use crate::{Fact, OpenEffect, Phase, Rejection, RowInput, StepKey, Verdict, decide_row};

/// One thing that a person may do now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LegalAction {
    /// The operator's verb.
    pub verb: &'static str,
    /// What exactly, for a program that offers it; absent where only the command does it.
    #[serde(skip)]
    pub what: Option<Deed>,
    /// What to type. Words in capitals are to be filled in; the revision makes it a conflict, not an accident, if
    /// the run has moved meanwhile.
    pub command: String,
    /// When it is the right thing.
    pub why: String,
}

/// What a person may do, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Send the signal that it waits for.
    Signal {
        /// What sort.
        kind: String,
        /// Which one.
        key: String,
        /// Whether it belongs to the app as a whole, not to the run's scope.
        is_app_wide: bool,
    },
    /// Say that the effect of a step happened, and give its output.
    ResolveSucceeded(StepKey),
    /// Say that the effect of a step was refused.
    ResolveFailed(StepKey),
    /// Say that the effect of a step did not happen.
    ResolveNotPerformed(StepKey),
    /// Have the provider asked about a step.
    Reconcile(StepKey),
    /// Try it again.
    Retry,
    /// Cancel it.
    Cancel,
    /// Give it up.
    Abandon {
        /// Though an effect stays unexplained.
        accept_unknown: bool,
    },
}

/// What a verdict does to a run.
#[derive(Debug, Clone, Copy)]
enum End {
    GoesOn,
    Ends,
}

struct Legal<'k, 'a> {
    known: &'k Known<'a>,
    actions: Vec<LegalAction>,
}

pub(super) fn legal_actions(known: &Known<'_>) -> Vec<LegalAction> {
    let mut legal = Legal { known, actions: Vec::new() };
    if let Phase::Waiting(wait) = &known.input.run.phase
        && let Some(on) = wait.on.as_ref().filter(|on| on.is_signal())
    {
        legal.signal(on);
    }
    if let Some(effect) = known.input.run.effect() {
        legal.effect(effect);
    }
    legal.retry();
    legal.cancel();
    legal.abandon();
    legal.actions
}

impl Legal<'_, '_> {
    fn may(&self, input: RowInput) -> bool {
        // A verb that would record nothing helps nobody.
        self.facts(input).is_ok_and(|is_something| is_something)
    }

    fn facts(&self, input: RowInput) -> Result<bool, Rejection> {
        let facts = decide_row(self.known.input.run, input, self.known.input.now)?;
        Ok(!facts.is_empty())
    }

    fn add(&mut self, what: Deed, verb: &'static str, arguments: &str, why: &str) {
        let run = self.known.input.run;
        let command = format!(
            "surefoot {verb} {}{arguments} --revision {} --reason '<why>'",
            run.id, run.revision
        );
        self.actions.push(LegalAction { verb, what: Some(what), command, why: why.to_owned() });
    }

    /// What a word on an effect leads to is what the state machine does with it: a run whose cancel was requested ends
    /// with the word, and does not go on.
    fn effect(&mut self, effect: &OpenEffect) {
        let step = text::shell_word(effect.step.as_str());
        let key = || effect.step.clone();
        let is_unsettled = effect.state.is_unsettled();
        let happened = Verdict::Succeeded { output: Value::Null };
        if let Some(ends) = self.resolved(effect, happened) {
            let why = match (ends, is_unsettled) {
                (End::GoesOn, true) => {
                    "it happened: the run goes on with the output that you give; the step is not called again"
                }
                (End::GoesOn, false) => {
                    "it happened, and only its output is missing: the run goes on with the one that you give"
                }
                (End::Ends, _) => {
                    "it happened: that is recorded, and the run ends canceled, since its cancel was requested; no \
                     later step is begun"
                }
            };
            self.add(
                Deed::ResolveSucceeded(key()),
                "resolve",
                &format!(" {step} --succeeded '<output as JSON>'"),
                why,
            );
        }
        let failed = Verdict::Failed { code: None, message: String::new() };
        if self.resolved(effect, failed).is_some() {
            let why = if self.is_to_cancel() {
                "the provider refused it: that is recorded, and the run ends canceled, since its cancel was requested"
            } else {
                "the provider refused it: the run fails"
            };
            let arguments = format!(" {step} --failed '<message>'");
            self.add(Deed::ResolveFailed(key()), "resolve", &arguments, why);
        }
        if let Some(ends) = self.resolved(effect, Verdict::NotPerformed) {
            let why = match ends {
                End::GoesOn => "it is certain that it did not happen: the step is called again",
                End::Ends => {
                    "it is certain that it did not happen: the step is not called again, and the run ends canceled, \
                     since its cancel was requested"
                }
            };
            let arguments = format!(" {step} --not-performed");
            self.add(Deed::ResolveNotPerformed(key()), "resolve", &arguments, why);
        }
        if self.may(RowInput::AskReconcile { step: effect.step.clone() }) {
            let why = if self.is_to_cancel() {
                "the provider may know by now: a worker asks it again, nothing is repeated; once it knows, the run \
                 ends canceled, since its cancel was requested"
            } else {
                "the provider may know by now: a worker asks it again, nothing is repeated"
            };
            self.add(Deed::Reconcile(key()), "reconcile", &format!(" {step}"), why);
        }
    }

    /// Whether a verdict would end the run; absent where it is not taken.
    fn resolved(&self, effect: &OpenEffect, verdict: Verdict) -> Option<End> {
        let input = RowInput::Resolve { step: effect.step.clone(), verdict };
        let facts = decide_row(self.known.input.run, input, self.known.input.now).ok()?;
        let ends = facts.iter().any(|fact| matches!(fact, Fact::Ended { .. }));
        Some(if ends { End::Ends } else { End::GoesOn })
    }

    const fn is_to_cancel(&self) -> bool {
        self.known.input.run.cancel.is_some()
    }

    fn retry(&mut self) {
        // The store knows the parent, and refuses to change a result that was taken.
        let is_taken = self.known.input.group.is_some_and(|(_, is_taken)| *is_taken);
        // It is legal also where it helps nobody: then it is not named here, and the reasons say why.
        let is_in_vain = foresee::retry_in_vain(self.known).is_some();
        if !is_taken && !is_in_vain && self.may(RowInput::Retry) {
            let mut why = "the cause is mended: recorded outcomes and effect keys stay, the count of failures begins anew"
                .to_owned();
            if let Some(Foreseen::Command { command, .. }) = foresee::retried(self.known) {
                why = format!("{why}; {}", effects::of_retry(&command));
            }
            self.add(Deed::Retry, "retry", "", &why);
        }
    }

    fn cancel(&mut self) {
        let (actor, reason) = (String::new(), String::new());
        if self.may(RowInput::Cancel { actor, reason }) {
            let run = self.known.input.run;
            let why = if run.has_unsettled_effect() {
                "nobody wants it any more: it ends once its effect is explained"
            } else if matches!(run.phase, Phase::Running { .. }) {
                "nobody wants it any more: it ends as soon as its worker sees that"
            } else {
                "nobody wants it any more: it ends at once"
            };
            self.add(Deed::Cancel, "cancel", "", why);
        }
    }

    fn abandon(&mut self) {
        let unclaimable = self.known.is_unclaimable();
        let abandon = |accept_unknown| RowInput::Abandon { accept_unknown, unclaimable };
        match self.facts(abandon(false)) {
            Ok(true) => self.add(
                Deed::Abandon { accept_unknown: false },
                "abandon",
                "",
                "give it up: it ends as failed",
            ),
            Err(Rejection::EffectUnsettled { .. }) if self.may(abandon(true)) => {
                let why = "nobody will ever know: it ends as failed, and the effect stays listed as unknown";
                self.add(
                    Deed::Abandon { accept_unknown: true },
                    "abandon",
                    " --accept-unknown",
                    why,
                );
            }
            Ok(false) | Err(_) => {}
        }
    }

    fn signal(&mut self, on: &crate::Dependency) {
        let origin = &self.known.input.run.origin;
        let app = text::shell_word(origin.app.as_str());
        let place = if on.is_app_wide() {
            "--app-wide".to_owned()
        } else {
            format!("--scope {}", text::shell_word(origin.scope.as_str()))
        };
        let (kind, key) = (text::shell_word(on.kind()), text::shell_word(on.key()));
        self.actions.push(LegalAction {
            verb: "signal",
            what: Some(Deed::Signal {
                kind: on.kind().to_owned(),
                key: on.key().to_owned(),
                is_app_wide: on.is_app_wide(),
            }),
            command: format!(
                "surefoot signal {kind} {key} --app {app} {place} --data '<data as JSON>'"
            ),
            why: "what it waits for has occurred: it goes on, as does every run that waits for it"
                .to_owned(),
        });
    }
}

impl Known<'_> {
    /// Whether no worker is known that can take it.
    pub(super) fn is_unclaimable(&self) -> bool {
        let (sessions, now) = (self.input.sessions, self.input.now);
        let run = &self.input.run.origin;
        match self.input.plan {
            Some(plan) => {
                Coverage::of_run(&plan.footprint, run, sessions, now) != Coverage::Covered
            }
            // Nobody knows what it needs: only the absence of every worker proves it.
            None => !sessions.iter().any(|it| it.takes(run) && super::is_live(it, now)),
        }
    }
}

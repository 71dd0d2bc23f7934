//! What a run's explanation says, and the forms for what may be done now. The words are the core's own.

use surefoot_kernel_core::{Deed, EffectNote, Explanation, LegalAction, Repeat};

use super::address::Asked;
use super::text::Text;
use super::visitor::Visitor;
use super::words::{When, class_hint};

/// Why a run stands where it stands, and what happened.
pub(crate) struct Explained {
    pub(crate) headline: Text,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) effects: Vec<Effects>,
    pub(crate) repeats: Vec<Repeated>,
}

pub(crate) struct Reason {
    pub(crate) text: Text,
    pub(crate) since: Option<When>,
    pub(crate) until: Option<When>,
}

/// Effects that are known equally well.
pub(crate) struct Effects {
    pub(crate) heading: &'static str,
    pub(crate) tone: &'static str,
    pub(crate) notes: Vec<Note>,
}

pub(crate) struct Note {
    pub(crate) step: Text,
    pub(crate) action: Text,
    pub(crate) class: &'static str,
    pub(crate) class_hint: &'static str,
    pub(crate) key: Option<Text>,
    pub(crate) count: u64,
    pub(crate) why: Text,
}

pub(crate) struct Repeated {
    pub(crate) step: Text,
    pub(crate) action: Text,
    pub(crate) what: Text,
}

impl Explained {
    pub(crate) fn of(it: &Explanation) -> Self {
        let now = it.read_at;
        let at = |at: Option<_>| at.map(|at| When::at(at, now));
        let reasons = it.why_not_moving.iter().map(|reason| Reason {
            text: Text::sentence(&reason.text),
            since: at(reason.since),
            until: at(reason.until),
        });
        let lists = [
            ("Happened", "good", &it.effects.happened),
            ("May have happened", "warn", &it.effects.may_have_happened),
            ("Did not start", "mute", &it.effects.not_started),
        ];
        let effects = lists.into_iter().filter(|(_, _, notes)| !notes.is_empty());
        let effects = effects.map(|(heading, tone, notes)| Effects {
            heading,
            tone,
            notes: notes.iter().map(note).collect(),
        });
        let repeated = |it: &Repeat| Repeated {
            step: Text::name(it.step.as_str()),
            action: Text::name(&it.action),
            what: Text::sentence(&it.what),
        };
        Self {
            headline: Text::sentence(&it.headline),
            reasons: reasons.collect(),
            effects: effects.collect(),
            repeats: it.would_repeat.iter().map(repeated).collect(),
        }
    }
}

fn note(note: &EffectNote) -> Note {
    Note {
        step: Text::name(note.step.as_str()),
        action: Text::name(&note.action),
        class: note.class.as_str(),
        class_hint: class_hint(note.class),
        key: note.effect_key.as_ref().map(|key| Text::name(key.as_str())),
        count: note.count,
        why: Text::sentence(&note.why),
    }
}

/// What may be done now: forms for an operator, commands for everybody.
pub(crate) struct Deeds {
    pub(crate) action: String,
    pub(crate) revision: u64,
    /// Where the page goes on from.
    pub(crate) back: &'static str,
    pub(crate) may_act: bool,
    pub(crate) forms: Vec<DeedForm>,
}

pub(crate) struct DeedForm {
    /// The word in the form.
    pub(crate) deed: &'static str,
    pub(crate) title: &'static str,
    pub(crate) is_grave: bool,
    pub(crate) why: Text,
    pub(crate) command: Text,
    pub(crate) step: Option<String>,
    /// Of a signal: its kind, its key, and whether it belongs to the app as a whole.
    pub(crate) signal: Option<(String, String, bool)>,
    pub(crate) asks: Asks,
    /// What was typed before, if that was refused.
    pub(crate) typed: Typed,
    pub(crate) is_open: bool,
}

/// What a form asks for beside a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Nothing,
    Output,
    Failure,
    Data,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Typed {
    pub(crate) reason: String,
    pub(crate) json: String,
    pub(crate) message: String,
    pub(crate) code: String,
}

impl Deeds {
    /// `refused` is the form that was sent before, if this page says why it was refused.
    pub(crate) fn of(
        visitor: &Visitor,
        it: &Explanation,
        back: &'static str,
        refused: Option<&Asked>,
    ) -> Self {
        let action = visitor.to("/runs").segment(&it.run.to_string()).done();
        let forms = it.legal_actions.iter().filter_map(|action| form(action, refused));
        Self {
            action: format!("{action}/act"),
            revision: it.revision,
            back,
            may_act: visitor.may_act(),
            forms: forms.collect(),
        }
    }

    /// Only those about an effect.
    pub(crate) fn about_effects(mut self) -> Self {
        self.forms.retain(|form| form.step.is_some());
        self
    }
}

/// None for what only the command line can do.
fn form(action: &LegalAction, refused: Option<&Asked>) -> Option<DeedForm> {
    let what = action.what.as_ref()?;
    let (deed, title, is_grave, asks) = match what {
        Deed::Signal { .. } => ("signal", "Send the signal", false, Asks::Data),
        Deed::ResolveSucceeded(_) => ("succeeded", "It happened", false, Asks::Output),
        Deed::ResolveFailed(_) => ("failed", "It was refused", false, Asks::Failure),
        Deed::ResolveNotPerformed(_) => ("not_performed", "It did not happen", true, Asks::Nothing),
        Deed::Reconcile(_) => ("reconcile", "Ask the provider again", false, Asks::Nothing),
        Deed::Retry => ("retry", "Retry", false, Asks::Nothing),
        Deed::Cancel => ("cancel", "Cancel", true, Asks::Nothing),
        Deed::Abandon { accept_unknown: false } => ("abandon", "Give up", true, Asks::Nothing),
        Deed::Abandon { accept_unknown: true } => {
            ("abandon_unknown", "Give up without knowing", true, Asks::Nothing)
        }
    };
    let (step, signal) = match what {
        Deed::ResolveSucceeded(step)
        | Deed::ResolveFailed(step)
        | Deed::ResolveNotPerformed(step)
        | Deed::Reconcile(step) => (Some(step.as_str().to_owned()), None),
        Deed::Signal { kind, key, is_app_wide } => {
            (None, Some((kind.clone(), key.clone(), *is_app_wide)))
        }
        Deed::Retry | Deed::Cancel | Deed::Abandon { .. } => (None, None),
    };
    let before = refused.filter(|form| form.text("deed") == Some(deed));
    let typed = |name| before.and_then(|form| form.text(name)).unwrap_or_default().to_owned();
    Some(DeedForm {
        deed,
        title,
        is_grave,
        why: Text::sentence(&action.why),
        command: Text::sentence(&action.command),
        step,
        signal,
        asks,
        typed: Typed {
            reason: typed("reason"),
            json: typed("json"),
            message: typed("message"),
            code: typed("code"),
        },
        is_open: before.is_some(),
    })
}

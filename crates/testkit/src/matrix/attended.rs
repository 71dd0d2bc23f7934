//! The scenario of people: effects that nobody can explain, waits that end or do not, and a budget that is used up.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use serde_json::json;
use surefoot_kernel_core::{Amount, Amounts, Code, Dependency, Failure, Signal, StepKey, Verdict};
use surefoot_language::{
    Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Cost, Module, On, PlanResult, Planned,
    ReconcileResult, Reconciled, StepCx,
};

use super::{Did, Process, Reply, Scenario, TxOf, Verb, every_class};
use crate::suite::StoreFactory;

const WORKFLOWS: &[(&str, &str)] = &[
    (
        "order",
        "
steps:
  - ask: { fate: silent }
    saveAs: silent
  - ask: { fate: lost }
  - ask: { fate: declined }
  - ask: { fate: late }
  - waitFor: { kind: approval, key: nobody, timeout: 10m }
    saveAs: nobody
  - ask: { fate: garbled }
  - waitFor: { kind: approval, key: bolt, timeout: 10m }
    saveAs: bolt
  - if: '${{ bolt.signaled && !nobody.signaled }}'
    then:
      - book: { boxes: '${{ bolt.data.boxes }}' }
  - book: { boxes: 1 }
    catch:
      - note: { boxes: 1 }
  - mail: { to: '${{ silent.text }}' }
    catch:
      - if: \"${{ error.code == 'BUDGET_EXCEEDED' }}\"
        then:
          - note: { boxes: 2 }
  - pay: { cents: 1 }
    catch:
      - note: { boxes: 3 }
  - runWorkflow: { workflow: check, inputs: {} }
",
    ),
    (
        "check",
        "
steps:
  - pay: { cents: 2 }
    catch:
      - note: { boxes: 4 }
",
    ),
];

/// The effects that the budget allows: five questions and one booking.
const EFFECTS: Amount = Amount::from_millionths(6_000_000);

/// A person decides about each way in which an effect can need one, and has a run tried again; one wait ends by a signal,
/// one by its deadline; the last effects, one of them a child's, are over the budget.
#[derive(Debug)]
pub struct Attended<F>(PhantomData<fn() -> F>);

impl<F> Attended<F> {
    /// The scenario.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F> Default for Attended<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: StoreFactory> Scenario<F> for Attended<F> {
    type Binding = On<TxOf<F>>;

    fn module(&self, process: &Process<F>) -> Module<On<TxOf<F>>> {
        every_class::module(process)
    }

    fn workflows(&self) -> &[(&str, &str)] {
        WORKFLOWS
    }

    fn budget(&self) -> Amounts {
        let mut caps = Amounts::default();
        caps.add("effects", EFFECTS);
        caps
    }

    fn reply(&self, on: &Dependency) -> Option<Reply> {
        let signal = || Signal::new(on.kind(), on.key()).data(json!({ "boxes": 7 }));
        (on.key() == "bolt").then(|| Reply::Signal(signal()))
    }

    /// The truth.
    fn attend(&self, error: &Failure, done: &[Did]) -> Option<Verb> {
        if error.code == Code::EFFECT_CONFIRMED_FAILED {
            return Some(Verb::Retry);
        }
        let fate = error.step.as_ref().and_then(Fate::of)?;
        let is_carried_out = done.contains(&Did::CarriedOut);
        let was_called = done.contains(&Did::Called);
        if is_carried_out {
            let output = json!({ "text": "asked" });
            return Some(match fate {
                Fate::Late => Verb::Reconcile,
                Fate::Silent | Fate::Lost | Fate::Declined | Fate::Garbled => {
                    Verb::Resolve(Verdict::Succeeded { output })
                }
            });
        }
        let message = "it was declined".to_owned();
        Some(Verb::Resolve(if fate == Fate::Declined && was_called {
            Verdict::Failed { code: None, message }
        } else {
            Verdict::NotPerformed
        }))
    }
}

/// What becomes of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Fate {
    /// It is carried out, and nobody answers, ever.
    Silent,
    /// It is lost the first time, and nobody knows.
    Lost,
    /// It is declined the first time, and nobody says so.
    Declined,
    /// It is carried out, and the answer is there when a person has it asked again.
    Late,
    /// It is carried out, and the answer cannot be kept.
    Garbled,
}

impl Fate {
    /// Of a step of the scenario.
    fn of(step: &StepKey) -> Option<Self> {
        Some(match step.as_str() {
            "steps.0" => Self::Silent,
            "steps.1" => Self::Lost,
            "steps.2" => Self::Declined,
            "steps.3" => Self::Late,
            "steps.5" => Self::Garbled,
            _ => return None,
        })
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Question {
    fate: Fate,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct Word {
    #[schemars(length(min = 1))]
    text: String,
}

impl Word {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

/// An action that leaves it to people to find out what happened.
pub(super) struct Ask<F: StoreFactory>(pub(super) Process<F>);

impl<F: StoreFactory> Ask<F> {
    /// Whether a person has said something that lets it be carried out, or answered, now.
    fn is_mended(&self, cx: &AmbiguousCx) -> bool {
        let done = self.0.provider().done(cx.effect_key());
        done.iter().any(|did| matches!(did, Did::Attended(_)))
    }
}

impl<F: StoreFactory> Ambiguous for Ask<F> {
    const NAME: &'static str = "ask";
    type Input = Question;
    type Output = Word;

    async fn run(&self, cx: &AmbiguousCx, input: Question) -> AmbiguousResult<Word> {
        let unknown = || AmbiguousStop::may_have_happened("nobody answered");
        match input.fate {
            Fate::Lost | Fate::Declined if !self.is_mended(cx) => {
                self.0.called_in_vain(cx, cx.effect_key());
                Err(unknown())
            }
            Fate::Silent | Fate::Late => {
                self.0.called_ambiguous(cx, cx.effect_key());
                Err(unknown())
            }
            Fate::Lost | Fate::Declined => {
                self.0.called_ambiguous(cx, cx.effect_key());
                Ok(Word::new("asked"))
            }
            Fate::Garbled => {
                self.0.called_ambiguous(cx, cx.effect_key());
                Ok(Word::new(""))
            }
        }
    }

    async fn reconcile(&self, cx: &AmbiguousCx, input: Question) -> ReconcileResult<Word> {
        let is_carried_out = self.0.asked(cx, cx.effect_key());
        Ok(match input.fate {
            Fate::Late if is_carried_out && self.is_mended(cx) => {
                Reconciled::Succeeded(Word::new("asked"))
            }
            Fate::Silent | Fate::Lost | Fate::Declined | Fate::Late | Fate::Garbled => {
                Reconciled::unknown("nobody answers")
            }
        })
    }

    async fn plan(&self, _: &StepCx, _: &Question) -> PlanResult<Word> {
        Ok(Planned::new("Ask"))
    }

    fn cost(&self, _: &Question) -> Cost {
        Cost::of("effects", 1)
    }
}

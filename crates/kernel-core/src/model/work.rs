//! What the model's workers and operators do, and what really happens then.

use serde_json::json;

use super::invariants::Violation;
use super::world::{Checked, LEASE, Refused, Verb, Worker, World};
use crate::{
    Amounts, Answer, Call, Code, Command, Commit, Decision, Dependency, Durability, EffectClass,
    EffectKey, Exceeded, Fact, Failure, Fenced, Held, Input, Micros, Next, Phase, Prepared,
    RUN_MAX_CONSECUTIVE_FAILURES, Receipt, ReconcileAnswer, Rejection, RowInput, StepKey,
    StepValues, Todo, Verdict, decide,
};

impl World {
    /// The worker of a slot does its next thing.
    pub(super) fn work(&mut self, slot: usize, choice: u8) -> Checked {
        let Some(mut worker) = self.workers.get_mut(slot).and_then(Option::take) else {
            return Ok(());
        };
        let input = match worker.command.take() {
            None => Input::Advance,
            Some(command) => {
                called_in_order(&worker, &command)?;
                self.not_called_for_ever(&worker, &command)?;
                match self.carry_out(&worker, &command, choice)? {
                    Some(input) => input,
                    // The worker died in the middle of it.
                    None => return Ok(()),
                }
            }
        };
        self.decided(slot, worker, input, Ahead::by(choice))
    }

    /// Executions in a row that end badly are bounded. (A worker may die before it can say so, at each claim: then
    /// the count goes on, and still nothing is called.)
    fn not_called_for_ever(&self, worker: &Worker, command: &Command) -> Checked {
        let open = match command {
            Command::Prepare(call)
            | Command::Call(call)
            | Command::Transact(call)
            | Command::Reconcile(call) => Some(call),
            Command::Spawn(_) | Command::Collect(_) => None,
        };
        let attempts = match (open, worker.held.cursor.next(&self.plan)) {
            (Some(_), Ok(Next::Step { node, .. })) => {
                self.plan.retry_of(node).map(|retry| retry.attempts)
            }
            (Some(call), Ok(Next::Inputs | Next::Done { .. } | Next::Broken(_)) | Err(_)) => {
                return Err(Violation(format!("`{}` is called, and no step is open", call.step)));
            }
            (None, _) => Some(RUN_MAX_CONSECUTIVE_FAILURES),
        };
        // A question is no call of the action: it has the kernel's own limit where the action's is lower.
        let least = match command {
            Command::Reconcile(_) => RUN_MAX_CONSECUTIVE_FAILURES,
            Command::Prepare(_)
            | Command::Call(_)
            | Command::Transact(_)
            | Command::Spawn(_)
            | Command::Collect(_) => 0,
        };
        let attempts = attempts.map(|attempts| attempts.max(least));
        let failures = worker.held.run.failures;
        if attempts.is_some_and(|attempts| failures > attempts) {
            return Err(Violation(format!("{failures} bad executions in a row, and another call")));
        }
        Ok(())
    }

    /// Decides and settles; on a conflict reloads and decides again, without calling anything again.
    fn decided(&mut self, slot: usize, worker: Worker, input: Input, ahead: Ahead) -> Checked {
        let decision = match decide(&worker.held, &self.plan, input.clone(), self.now) {
            Ok(decision) => decision,
            Err(rejection) => return Err(unexpected(&rejection)),
        };
        let transacted = if let Input::Worked { step, .. } = &input { Some(step) } else { None };
        let before = worker.clone();
        match self.settle(slot, worker, decision, ahead)? {
            Settled::Done => {
                if let Some(step) = transacted {
                    *self.rows.entry(step.clone()).or_default() += 1;
                }
                Ok(())
            }
            Settled::NotWritten => Ok(()),
            Settled::OverBudget(exceeded) => match input.over_budget(&exceeded) {
                Some(refused) => self.decided(slot, before, refused, ahead),
                None => Err(Violation(format!("nobody asked for this charge: {exceeded}"))),
            },
            Settled::Conflict => {
                self.begin(slot)?;
                let again = self.workers.get_mut(slot).and_then(Option::take);
                match again {
                    Some(worker) if matches!(worker.held.run.phase, Phase::Running { .. }) => {
                        // A pure answer belongs to facts that were dropped with it; the rest is asked again.
                        let known = decide(&worker.held, &self.plan, input.clone(), self.now);
                        if known.is_ok() {
                            self.decided(slot, worker, input, ahead)
                        } else {
                            self.set_worker(slot, Some(worker));
                            Ok(())
                        }
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn settle(
        &mut self,
        slot: usize,
        mut worker: Worker,
        mut decision: Decision,
        ahead: Ahead,
    ) -> Result<Settled, Violation> {
        self.moved(&mut worker, &mut decision)?;
        if decision.durability != Durability::Lazy {
            let needs_nothing = |_: &Call| ahead == Ahead::TheMark;
            let mark = decision.next_mark(&worker.held, &self.plan, self.now, needs_nothing);
            if let Some(mut mark) = mark {
                self.moved(&mut worker, &mut mark)?;
                decision = mark;
            }
        }
        if decision.durability == Durability::Lazy {
            let opened = decision.command.open(&worker.receipt);
            worker.command = opened.map_err(|error| Violation(error.to_string()))?;
            self.set_worker(slot, Some(worker));
            return Ok(Settled::Done);
        }
        let before = worker.base;
        let facts = std::mem::take(&mut worker.pending);
        if !facts.is_empty() {
            let commit = Commit::of(before, worker.held.run.clone(), &facts);
            if let Some(landed) = worker.doubt.take() {
                return self.in_doubt(
                    slot,
                    commit,
                    landed,
                    facts.iter().find_map(Fact::marked_step).cloned(),
                );
            }
            match self.commit(commit) {
                Ok(()) => {}
                Err(Refused::Fenced(Fenced::LeaseLost)) => return Ok(Settled::NotWritten),
                Err(Refused::Fenced(Fenced::Conflict)) => return Ok(Settled::Conflict),
                Err(Refused::Exceeded(exceeded)) => return Ok(Settled::OverBudget(exceeded)),
            }
            worker.held.run = self.stored.clone();
            worker.base = self.stored.stamp();
            worker.receipt = Receipt::attest(&self.stored);
        }
        self.same_after_restart(&worker)?;
        let opened = decision.command.open(&worker.receipt);
        worker.command = opened.map_err(|error| Violation(error.to_string()))?;
        if matches!(worker.held.run.phase, Phase::Running { .. }) {
            self.set_worker(slot, Some(worker));
        }
        Ok(Settled::Done)
    }

    /// The worker's run, as the facts of a decision leave it.
    fn moved(&self, worker: &mut Worker, decision: &mut Decision) -> Checked {
        let facts = std::mem::take(&mut decision.facts);
        let applied = worker.held.clone().apply(&self.plan, &facts);
        worker.held = applied.map_err(|error| Violation(error.to_string()))?;
        worker.pending.extend(facts);
        Ok(())
    }

    /// A worker that loads the run now stands exactly where this one does.
    fn same_after_restart(&self, worker: &Worker) -> Checked {
        if worker.base != self.stored.stamp() {
            return Ok(());
        }
        let Held { cursor, .. } = self.load()?;
        if cursor == worker.held.cursor {
            Ok(())
        } else {
            Err(Violation("a restored run stands elsewhere".to_owned()))
        }
    }

    /// Nobody knows whether the commit happened: the worker takes the run over from itself.
    fn in_doubt(
        &mut self,
        slot: usize,
        commit: Commit,
        landed: bool,
        marked: Option<StepKey>,
    ) -> Result<Settled, Violation> {
        let (generation, lease) = (commit.before.generation, self.lease(slot));
        let written = landed && self.commit(commit).is_ok();
        let mine = self.stored.generation == generation;
        self.row(RowInput::TakeOver { generation, lease })?;
        if mine && matches!(self.stored.phase, Phase::Running { .. }) {
            self.begin(slot)?;
            // A mark that landed is that of a call which only this worker could have made.
            if let Some(step) = marked
                && self.stored.effect().is_some_and(|effect| effect.step == step)
                && let Some(worker) = self.workers.get_mut(slot).and_then(Option::take)
            {
                let input = Input::Answer { step, answer: Answer::NotCalled };
                self.decided(slot, worker, input, Ahead::Nothing)?;
            }
        }
        Ok(if written { Settled::Done } else { Settled::NotWritten })
    }

    /// Makes a command happen in the world. `None`: the worker died in the middle of it.
    fn carry_out(
        &mut self,
        worker: &Worker,
        command: &Command,
        choice: u8,
    ) -> Result<Option<Input>, Violation> {
        Ok(match command {
            Command::Prepare(call) => {
                let result = match choice % 16 {
                    3 if worker.held.cursor.values().is_empty() => {
                        let step = call.step.clone();
                        return Ok(Some(Input::Resolved { step, values: values(choice) }));
                    }
                    0 => Prepared::Stopped(failed(Code::FORBIDDEN, false)),
                    1 => Prepared::Stopped(failed("BUSY".into(), true)),
                    2 => Prepared::Stopped(Answer::Waiting { on: waits(choice) }),
                    _ => Prepared::Ready { cost: cost() },
                };
                Some(Input::Prepared { step: call.step.clone(), result })
            }
            Command::Call(call) if call.class == EffectClass::Ambiguous => {
                let answer = self.ambiguous(worker, call, choice)?;
                answer.map(|answer| Input::Answer { step: call.step.clone(), answer })
            }
            Command::Transact(call) => plain(call, choice).map(|answer| {
                let step = call.step.clone();
                match answer {
                    Answer::Succeeded { output } => Input::Worked { step, cost: cost(), output },
                    answer @ (Answer::OutputRefused { .. }
                    | Answer::Failed { .. }
                    | Answer::Waiting { .. }
                    | Answer::Unknown { .. }
                    | Answer::NotCalled) => Input::Answer { step, answer },
                }
            }),
            Command::Call(call) => {
                let answer = plain(call, choice);
                answer.map(|answer| Input::Answer { step: call.step.clone(), answer })
            }
            Command::Reconcile(call) => {
                let answer = self.provider_says(&call.effect_key, choice);
                Some(Input::Reconciled { step: call.step.clone(), answer })
            }
            Command::Spawn(spawn) => self.spawn(worker, spawn, choice),
            Command::Collect(collect) => {
                let joined = self.family.join(&collect.step, collect.is_list);
                (choice % 12 != 11).then(|| Input::Joined { step: collect.step.clone(), joined })
            }
        })
    }

    /// The call that must never be repeated while its last one is unexplained.
    fn ambiguous(
        &mut self,
        worker: &Worker,
        call: &Call,
        choice: u8,
    ) -> Result<Option<Answer>, Violation> {
        let until = worker.held.run.lease().map_or(self.now, |lease| lease.until);
        let last_fifth = Micros::new(LEASE.get() / 5);
        if self.now.plus(last_fifth) >= until {
            return Ok(Some(Answer::NotCalled));
        }
        if !self.provider.unexplained.insert(call.step.clone()) {
            let text = format!("`{}` is called again, its last call is unexplained", call.step);
            return Err(Violation(text));
        }
        if worker.held.run.effect().is_none_or(|effect| effect.step != call.step) {
            return Err(Violation(format!("`{}` is called, and not marked", call.step)));
        }
        let key = &call.effect_key;
        if *key != worker.held.run.effect_key(&call.step) {
            return Err(Violation("the effect key changed".to_owned()));
        }
        if self.provider.refuses.contains(key) {
            return Ok(Some(failed("REFUSED".into(), false)));
        }
        let unknown = || Answer::Unknown { message: "no answer".to_owned(), evidence: None };
        Ok(match choice % 12 {
            0..=3 => {
                self.happened(key);
                Some(Answer::Succeeded { output: json!("receipt") })
            }
            4 => {
                self.happened(key);
                Some(unknown())
            }
            5 => Some(unknown()),
            6 => Some(failed("CARD_DECLINED".into(), false)),
            7 => Some(failed("BUSY".into(), true)),
            8 => Some(Answer::Waiting { on: waits(choice) }),
            9 => {
                self.happened(key);
                let error = Failure::new(Code::OUTPUT_INVALID, "no receipt");
                Some(Answer::OutputRefused { error, evidence: "odd".to_owned() })
            }
            10 => {
                self.happened(key);
                None
            }
            _ => {
                // Seen late, but within the time that the action declares.
                let at = self.now.plus(Micros::from_secs(i64::from(choice)));
                self.provider.on_the_way.push((key.clone(), at));
                (choice.is_multiple_of(2)).then(unknown)
            }
        })
    }

    fn happened(&mut self, key: &EffectKey) {
        *self.provider.carried_out.entry(key.clone()).or_default() += 1;
    }

    /// A truthful provider.
    fn provider_says(&mut self, key: &EffectKey, choice: u8) -> ReconcileAnswer {
        match choice % 8 {
            0 => ReconcileAnswer::Error { message: "down".to_owned(), retry_after: None },
            1 => ReconcileAnswer::Unknown { why: "forgotten".to_owned() },
            _ if self.provider.carried_out.contains_key(key) => {
                ReconcileAnswer::Succeeded { output: json!("receipt") }
            }
            2 => {
                self.provider.refuses.insert(key.clone());
                let failure = Failure::new("REFUSED", "never seen, and refused from now on");
                ReconcileAnswer::Failed { failure }
            }
            _ => ReconcileAnswer::NotFound,
        }
    }

    /// The worker of a slot stops, if it stands between two steps.
    pub(super) fn hand_over(&mut self, slot: usize) -> Checked {
        let Some(worker) = self.workers.get_mut(slot).and_then(Option::take) else {
            return Ok(());
        };
        let between = worker.command.is_none()
            && matches!(worker.held.run.phase, Phase::Running { todo: Todo::Steps, .. });
        if between {
            self.decided(slot, worker, Input::Row(RowInput::HandOver), Ahead::Nothing)
        } else {
            self.set_worker(slot, Some(worker));
            Ok(())
        }
    }

    /// An operator acts, and says the truth.
    pub(super) fn operator(&mut self, verb: Verb, choice: u8) -> Checked {
        let step = self.stored.effect().map(|effect| effect.step.clone());
        let input = match (verb, step) {
            (Verb::Cancel, _) => {
                RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() }
            }
            (Verb::Retry, _) => RowInput::Retry,
            (Verb::Abandon, _) => RowInput::Abandon {
                accept_unknown: choice.is_multiple_of(2),
                unclaimable: choice.is_multiple_of(3),
            },
            (Verb::Reconcile, Some(step)) => RowInput::AskReconcile { step },
            (Verb::Resolve, Some(step)) => {
                let key = self.stored.effect_key(&step);
                let on_the_way = self.provider.on_the_way.iter().any(|(late, _)| *late == key);
                let verdict = match self.provider.carried_out.get(&key) {
                    Some(_) => Verdict::Succeeded { output: json!("receipt") },
                    None if on_the_way => return Ok(()),
                    None if choice.is_multiple_of(2) => Verdict::NotPerformed,
                    None => Verdict::Failed { code: None, message: "declined".to_owned() },
                };
                RowInput::Resolve { step, verdict }
            }
            (Verb::Reconcile | Verb::Resolve, None) => return Ok(()),
        };
        self.row(input).map(|_| ())
    }
}

/// What each step with an effect costs.
pub(super) fn cost() -> Amounts {
    amounts([("effects", 1.0), ("eur", 0.1)])
}

/// What a resolver says of one reference; another value each time.
pub(super) fn values(choice: u8) -> StepValues {
    let mut values = StepValues::default();
    values.keep("price", serde_json::Value::from(choice));
    values
}

/// Seldom too little, and nothing said of `eur`.
pub(super) fn caps() -> Amounts {
    amounts([("effects", 5.0)])
}

fn amounts<const N: usize>(numbers: [(&str, f64); N]) -> Amounts {
    Amounts::of(numbers).unwrap_or_default()
}

/// What a worker decides ahead of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// The mark of the next call, if that is all that stands before it.
    TheMark,
}

impl Ahead {
    const fn by(choice: u8) -> Self {
        if choice.is_multiple_of(2) { Self::Nothing } else { Self::TheMark }
    }
}

enum Settled {
    Done,
    NotWritten,
    Conflict,
    OverBudget(Exceeded),
}

/// No hook of a non-pure action is called while a fact before it is not durable. A transaction writes them itself.
fn called_in_order(worker: &Worker, command: &Command) -> Checked {
    let pure = matches!(command, Command::Call(call) if call.class == EffectClass::Pure);
    if pure
        || matches!(command, Command::Transact(_))
        || !worker.pending.iter().any(Fact::is_journaled)
    {
        return Ok(());
    }
    Err(Violation(format!("{command:?} before {:?} is durable", worker.pending)))
}

fn unexpected(rejection: &Rejection) -> Violation {
    Violation(format!("a worker's own input was rejected: {rejection}"))
}

fn failed(code: Code, retryable: bool) -> Answer {
    Answer::Failed { failure: Failure::new(code, "no"), retryable, retry_after: None }
}

fn waits(choice: u8) -> Dependency {
    let on = Dependency::on("signal", (choice % 3).to_string());
    if choice.is_multiple_of(2) { on } else { on.deadline_in(std::time::Duration::from_secs(30)) }
}

/// Pure, transactional and idempotent actions. `None`: the worker died in the middle of it.
fn plain(call: &Call, choice: u8) -> Option<Answer> {
    match choice % 12 {
        11 => None,
        10 => Some(failed("BUSY".into(), true)),
        9 => Some(failed("NO".into(), false)),
        8 if call.class != EffectClass::Pure => Some(Answer::Waiting { on: waits(choice) }),
        7 => Some(Answer::OutputRefused {
            error: Failure::new(Code::OUTPUT_INVALID, "odd"),
            evidence: "odd".to_owned(),
        }),
        _ => Some(Answer::Succeeded { output: json!("done") }),
    }
}

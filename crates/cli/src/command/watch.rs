//! `watch`

use std::time::{Duration, Instant};

use serde::Serialize;
use surefoot_kernel_core::{Micros, RunId, RunState};
use surefoot_operator::{Operator, RunView, WatchedStep};

use super::{Context, OneRun, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::page::{clean, plain_json, to_stderr, to_stdout};
use crate::render::at;

/// How often it is asked what a waiting run waits for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    of: OneRun,
    /// How often the store is asked.
    #[arg(long, value_name = "SPAN", default_value = "500ms")]
    every: Micros,
}

/// Follows a run until it has ended, or needs a person. With `--json`, a line for each step, and the run as the last
/// one.
pub(crate) async fn run(cx: &Context<'_>, args: &WatchArgs) -> Result<Printed, CliError> {
    let operator = cx.operator_for(args.of.run).await?;
    let view = follow(cx, &operator, args.of.run, args.every.into()).await?;
    end(cx, &view, &view)
}

/// Tells of its steps until nothing more happens by itself. The run as it is then.
pub(super) async fn follow(
    cx: &Context<'_>,
    operator: &Operator,
    run: RunId,
    every: Duration,
) -> Result<RunView, CliError> {
    let (mut after, mut told) = (0, Told::default());
    loop {
        let view = operator.watch(run, after).await?;
        for step in &view.steps {
            to_stdout(&line(cx, step)?).map_err(CliError::Output)?;
        }
        after = view.next;
        if is_over(view.run.state) {
            return Ok(view.run);
        }
        if !cx.is_json() {
            told.tell(operator, run, view.run.state).await?;
        }
        tokio::time::sleep(every).await;
    }
}

/// What was said last of where the run stands: a run that stands still is no reason to show nothing.
#[derive(Default)]
struct Told {
    state: Option<RunState>,
    headline: String,
    at: Option<Instant>,
}

impl Told {
    async fn tell(
        &mut self,
        operator: &Operator,
        run: RunId,
        state: RunState,
    ) -> Result<(), CliError> {
        let is_old = self.at.is_none_or(|at| at.elapsed() >= LOOK_AGAIN);
        // What a waiting run waits for changes though it does not: a child may need a person meanwhile.
        let is_due = self.state != Some(state) || (state == RunState::Waiting && is_old);
        if !is_due {
            return Ok(());
        }
        (self.state, self.at) = (Some(state), Some(Instant::now()));
        let headline = operator.explain(run).await?.headline;
        if headline != self.headline {
            to_stderr(&(clean(&format!("{state}: {headline}")) + "\n"));
            self.headline = headline;
        }
        Ok(())
    }
}

/// Whether nothing more happens by itself.
fn is_over(state: RunState) -> bool {
    match state {
        RunState::Succeeded | RunState::Failed | RunState::Canceled | RunState::NeedsAttention => {
            true
        }
        RunState::Queued | RunState::Running | RunState::Waiting => false,
    }
}

fn line(cx: &Context<'_>, step: &WatchedStep) -> Result<String, CliError> {
    if cx.is_json() {
        return json(step);
    }
    let said = step.message.as_ref().map_or_else(String::new, |said| format!(": {said}"));
    Ok(clean(&format!("{}  {}  {}{said}", at(step.at), step.step, step.what)) + "\n")
}

/// How it ended; for a program, as the view that is its last line.
pub(super) fn end(
    cx: &Context<'_>,
    run: &RunView,
    view: &impl Serialize,
) -> Result<Printed, CliError> {
    let exit = if run.state == RunState::Succeeded { Exit::Done } else { Exit::Finding };
    let text = if cx.is_json() {
        json(view)?
    } else {
        let why = run.error.as_ref();
        let why = why.map_or_else(String::new, |it| format!(", {}: {}", it.code, it.message));
        clean(&format!("run {}: {}{why}", run.id, run.state)) + "\n"
    };
    Ok(Printed { text, exit })
}

fn json(view: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(view).map_err(|error| CliError::Output(error.into()))?;
    Ok(plain_json(&text) + "\n")
}

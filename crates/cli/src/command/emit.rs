//! `emit`

use std::str::FromStr as _;

use serde_json::Value;
use surefoot_kernel_core::{Event, TraceContext, WorkflowKey};
use surefoot_operator::{EmitEvent, OperatorError};
use surefoot_worker::SystemIds;
use tracing::Instrument as _;

use super::{Context, Printed};
use crate::error::CliError;
use crate::input::json_of;
use crate::page::Tone;
use crate::render::counted;

/// Arguments of `emit`.
#[derive(Debug, clap::Args)]
pub(crate) struct EmitArgs {
    /// The event's type; `surefoot.start` with `--workflow` starts that workflow.
    #[arg(value_name = "TYPE")]
    kind: String,
    /// Its data: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    data: Option<String>,
    /// What every step may read as `context`: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    context: Option<String>,
    /// Makes repeats harmless.
    #[arg(long)]
    key: Option<String>,
    /// A word by which its runs are found again; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only for this workflow.
    #[arg(long, value_parser = WorkflowKey::from_str)]
    workflow: Option<WorkflowKey>,
    /// Where it belongs in a trace: the value of a W3C header `traceparent`.
    #[arg(long, value_name = "HEADER")]
    traceparent: Option<String>,
    /// The value of the header `tracestate` beside it.
    #[arg(long, value_name = "HEADER", requires = "traceparent")]
    tracestate: Option<String>,
    /// Record only; a worker creates the runs.
    #[arg(long)]
    deferred: bool,
}

pub(crate) async fn run(cx: &Context<'_>, args: EmitArgs) -> Result<Printed, CliError> {
    let event = event_of(args)?;
    // Nothing is opened, let alone created, for an event that cannot be recorded.
    event.clone().check().map_err(OperatorError::from)?;
    let (operator, app) = cx.operator_creating().await?;
    let scope = cx.scope_in(&operator, &app).await?;
    let (span, event) = surefoot_worker::traced(&app, &scope, event);
    let emitting = operator.emit(&SystemIds, EmitEvent { app, scope, event });
    let mut view = emitting.instrument(span.clone()).await?;
    span.record("event", tracing::field::display(view.event));
    view.command = view.command.map(|command| cx.on_this_store(command));
    cx.print(&view, |page| {
        let known = match (view.new, view.same_payload) {
            (true, _) => "",
            (false, true) => " (its key was recorded before)",
            (false, false) => " (its key was recorded before, with ANOTHER payload)",
        };
        page.line(format!("event {}{known}", view.event));
        if !view.same_tags {
            page.toned(
                Tone::Bad,
                "its tags were NOT recorded: a repeat adds none, the runs are found by the tags of the first",
            );
        }
        for run in &view.runs {
            let gone = if view.gone.contains(run) { " (pruned since)" } else { "" };
            page.line(format!("run   {run}{gone}"));
        }
        if !view.gone.is_empty() {
            page.line(
                "what was done is not done again: to have it done anew, emit it under another key",
            );
        }
        if view.runs.is_empty() && view.matched > 0 {
            let runs = counted(u64::from(view.matched), "run");
            page.line(format!("{runs} to be created by a worker"));
        }
        if let Some(why) = &view.why_nothing {
            page.toned(Tone::Bad, format!("it starts nothing: {why}"));
        }
        if let Some(command) = &view.command {
            page.line(format!("    {command}"));
        }
    })
}

fn event_of(args: EmitArgs) -> Result<Event, CliError> {
    let json =
        |what, given: Option<&String>| given.map_or(Ok(Value::Null), |given| json_of(what, given));
    let data = json("`--data`", args.data.as_ref())?;
    let mut event =
        Event::new(args.kind, data).context(json("`--context`", args.context.as_ref())?);
    if let Some(key) = args.key {
        event = event.dedupe_key(key);
    }
    event = args.tags.into_iter().fold(event, Event::tag);
    if let Some(workflow) = args.workflow {
        event = event.target(workflow.as_str());
    }
    if let Some(traceparent) = args.traceparent {
        let trace = TraceContext::new(traceparent).and_then(|trace| match args.tracestate {
            Some(state) => trace.with_state(state),
            None => Ok(trace),
        });
        event = event.trace_context(trace.map_err(|bad| CliError::Usage(bad.to_string()))?);
    }
    Ok(if args.deferred { event.deferred() } else { event })
}

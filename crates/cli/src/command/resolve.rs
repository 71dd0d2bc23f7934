//! `resolve`

use surefoot_kernel_core::{Code, Verdict};
use surefoot_operator::Resolve;

use super::{Context, OneStep, Printed, Seen};
use crate::args::{Verb, own_words};
use crate::error::CliError;
use crate::input::json_of;

/// Arguments of `resolve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    of: OneStep,
    #[command(flatten)]
    verdict: VerdictArgs,
    /// The code that the run fails with; `EFFECT_CONFIRMED_FAILED` if absent.
    #[arg(long)]
    code: Option<String>,
    #[command(flatten)]
    seen: Seen,
    #[command(flatten)]
    verb: Verb,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct VerdictArgs {
    /// It happened, with this output: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    succeeded: Option<String>,
    /// It was refused; a sentence for people.
    #[arg(long, value_name = "MESSAGE", value_parser = own_words)]
    failed: Option<String>,
    /// It did not happen: the step runs again.
    #[arg(long)]
    not_performed: bool,
}

pub(crate) async fn run(cx: &Context<'_>, args: ResolveArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("resolve")?;
    if args.code.is_some() && args.verdict.failed.is_none() {
        return Err(CliError::Usage("`--code` belongs to `--failed`".to_owned()));
    }
    let verdict = match (args.verdict.succeeded, args.verdict.failed) {
        (Some(output), _) => Verdict::Succeeded { output: json_of("`--succeeded`", &output)? },
        (None, Some(message)) => Verdict::Failed { code: args.code.map(Code::from), message },
        (None, None) => Verdict::NotPerformed,
    };
    let operator = cx.operator_for(args.of.run).await?;
    cx.confirm(&operator, ("resolve", confirmation), args.of.run).await?;
    let resolve = Resolve {
        run: args.of.run,
        step: args.of.step,
        seen: args.seen.revision,
        verdict,
        why: args.verb.reason,
    };
    cx.print_done(&operator.resolve(resolve).await?)
}

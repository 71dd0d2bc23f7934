//! `effects`

use surefoot_kernel_core::{EffectState, Micros};
use surefoot_operator::EffectView;

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, age};

/// Arguments of `effects`.
#[derive(Debug, clap::Args)]
pub(crate) struct EffectsArgs {
    /// Only those that are at least so old, like `5m`.
    #[arg(long, value_name = "SPAN", default_value = "0s")]
    older_than: Micros,
    /// At most so many, the oldest ones.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run(cx: &Context<'_>, args: &EffectsArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let view =
        operator.effects(&app, cx.named_scope().as_ref(), args.older_than, args.limit).await?;
    cx.print(&view, |page| {
        let mut table =
            Table::new(&["RUN", "STEP", "ACTION", "EFFECT", "AGE", "RUN STATE", "WORKFLOW"]);
        for row in &view.effects {
            table.row(&[
                row.run.to_string(),
                row.step.to_string(),
                row.action.clone(),
                row.state.as_str().to_owned(),
                age(row.age_ms),
                row.run_state.to_string(),
                row.workflow.to_string(),
            ]);
        }
        table.print(page);
        let is_given_up = |row: &&EffectView| row.state == EffectState::AbandonedUnknown;
        if view.effects.iter().any(|row| is_given_up(&row)) {
            page.line(
                "those that were given up stay listed: their runs are the only trace of them",
            );
        }
        if !view.effects.is_empty() {
            page.line(format!("`{}` says what is safe to do", cx.typed("explain RUN")));
        }
    })
}

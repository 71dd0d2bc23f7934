//! `signals`

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, age, or_dash};

/// Arguments of `signals`.
#[derive(Debug, clap::Args)]
pub(crate) struct SignalsArgs {
    /// At most so many, the oldest ones.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run(cx: &Context<'_>, args: &SignalsArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let view = operator.signals(&app, cx.named_scope().as_ref(), args.limit).await?;
    cx.print(&view, |page| {
        let mut table = Table::new(&["KIND", "KEY", "SCOPE", "AGE", "DATA"]);
        for row in &view.signals {
            table.row(&[
                row.kind.clone(),
                row.key.clone(),
                or_dash(row.scope.as_ref()),
                age(row.age_ms),
                row.data.to_string().chars().take(60).collect(),
            ]);
        }
        table.print(page);
    })
}

//! `audit`

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, at, or_dash};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// At most so many, the newest ones.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run(cx: &Context<'_>, args: &AuditArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let view = operator.audit(&app, args.limit).await?;
    cx.print(&view, |page| {
        let mut table = Table::new(&["AT", "WHO", "VERB", "SCOPE", "RUN", "WHY"]);
        for row in &view.audit {
            table.row(&[
                at(row.at),
                row.actor.clone(),
                row.verb.clone(),
                row.scope.to_string(),
                or_dash(row.run.as_ref()),
                row.reason.clone(),
            ]);
        }
        table.print(page);
    })
}

//! `signal`

use surefoot_kernel_core::Signal;
use surefoot_operator::SendTo;

use super::{Context, Printed};
use crate::error::CliError;
use crate::input::json_of;

/// Arguments of `signal`.
#[derive(Debug, clap::Args)]
pub(crate) struct SignalArgs {
    /// What sort of signal.
    #[arg(value_name = "KIND")]
    kind: String,
    /// Which one.
    #[arg(value_name = "KEY")]
    key: String,
    /// To the app as a whole, whatever scope is named; `waitFor` does not see it.
    #[arg(long)]
    app_wide: bool,
    /// Its data: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    data: Option<String>,
}

pub(crate) async fn run(cx: &Context<'_>, args: SignalArgs) -> Result<Printed, CliError> {
    let mut signal = Signal::new(args.kind, args.key);
    if let Some(given) = &args.data {
        signal = signal.data(json_of("`--data`", given)?);
    }
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let to = if args.app_wide {
        SendTo::App
    } else {
        SendTo::Scope(cx.scope_in(&operator, &app).await?)
    };
    let view = operator.signal(app, to, signal).await?;
    cx.print(&view, |page| {
        page.line(if view.new {
            "recorded"
        } else {
            "it was recorded before; the first one stays"
        });
        for run in &view.woken {
            page.line(format!("woke {run}"));
        }
    })
}

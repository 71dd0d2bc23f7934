//! `demo`, and the hidden commands that its processes are started with.

use super::{Context, Printed};
use crate::Exit;
use crate::demo::{self, DemoArgs, DemoError, ProviderArgs, Shown, WorkerArgs};
use crate::error::CliError;

pub(crate) async fn run(cx: &Context<'_>, args: DemoArgs) -> Result<Printed, CliError> {
    let Shown { text, is_good } =
        demo::run(args, cx.store_url(), cx.collector(), cx.is_json()).await?;
    let exit = if is_good { Exit::Done } else { Exit::Finding };
    Ok(Printed { text, exit })
}

pub(crate) async fn provider(args: ProviderArgs) -> Result<Printed, CliError> {
    ended(demo::provider(args).await)
}

pub(crate) async fn worker(cx: &Context<'_>, args: WorkerArgs) -> Result<Printed, CliError> {
    ended(demo::worker(args, cx.store_url()).await)
}

/// Whoever started the process listens to nothing but its first line.
fn ended(result: Result<(), DemoError>) -> Result<Printed, CliError> {
    result?;
    Ok(Printed { text: String::new(), exit: Exit::Done })
}

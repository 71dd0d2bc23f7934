//! `serve`

use std::net::SocketAddr;
use std::path::PathBuf;

use surefoot_console::{Access, Console, Identity, Role, Server, Tokens};
use surefoot_operator::OperatorError;
use surefoot_worker::{SystemClock, SystemIds};

use super::{Context, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::input::text_of;
use crate::interrupt::interrupted;
use crate::page::{clean, to_stderr, to_stdout};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; with port 0, on a free one. Beyond this machine only with tokens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Tokens of those who may look: one a line, as `TOKEN` or `NAME TOKEN`. The name stands in the audit.
    #[arg(long, value_name = "FILE")]
    viewer_token_file: Vec<PathBuf>,
    /// Tokens of those who may look and act. Without tokens, everybody on this machine may, in the name of `--actor`.
    #[arg(long, value_name = "FILE")]
    operator_token_file: Vec<PathBuf>,
}

/// Answers until it is interrupted; then requests under way go on to their end.
pub(crate) async fn run(cx: &Context<'_>, args: ServeArgs) -> Result<Printed, CliError> {
    let instead = "each request names its own; `runs?scope=…` and the pages take one";
    cx.refuse_scope(instead)?;
    let access = access_of(cx, &args)?;
    let is_open = !access.is_guarded();
    let operator = cx.operator().await?;
    let console = Console::new(operator, SystemIds, SystemClock::default(), access);
    let server = Server::bind(console, args.listen).await?;
    let url = format!("http://{}/", server.address());
    if is_open {
        let actor = clean(&cx.actor());
        to_stderr(&format!(
            "no tokens: everybody on this machine may look and act, as `{actor}`\n"
        ));
    }
    // Whoever started this waits for the line to know the port.
    let line = if cx.is_json() {
        format!("{}\n", serde_json::json!({ "url": url }))
    } else {
        format!("listening on {url}\n")
    };
    to_stdout(&line).map_err(CliError::Output)?;
    server
        .run(async {
            // Where no signal can be waited for, the process is ended in another way.
            if interrupted().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await;
    Ok(Printed { text: String::new(), exit: Exit::Done })
}

fn access_of(cx: &Context<'_>, args: &ServeArgs) -> Result<Access, CliError> {
    let viewers = args.viewer_token_file.iter().map(|path| (Role::Viewer, path));
    let operators = args.operator_token_file.iter().map(|path| (Role::Operator, path));
    let mut files = viewers.chain(operators).peekable();
    if files.peek().is_none() {
        let identity = Identity::new(cx.actor(), Role::Operator);
        return Ok(Access::Open(identity.map_err(OperatorError::from)?));
    }
    let mut tokens = Tokens::new();
    for (role, path) in files {
        let text = text_of(path)?;
        tokens = tokens.with_lines(role, &text).map_err(|bad| CliError::Input {
            what: format!("`{}`", path.display()),
            why: bad.to_string(),
        })?;
    }
    Ok(Access::Tokens(tokens))
}

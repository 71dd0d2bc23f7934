//! Works for one run and its children until it has ended, or until somebody has seen enough.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use surefoot_actions::ai::AiWorker;
use surefoot_kernel_core::{App, Code, OperatorStore as _, RunId, RunState, SessionId};
use surefoot_operator::{Operator, RunView};
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::Kernel;

use super::started;
use super::unfinished::Open;
use crate::Exit;
use crate::builtin::{self, BuiltInModule, Settings};
use crate::command::watch::{end, follow};
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::interrupt::interrupted;
use crate::page::{clean, to_stderr};

/// How often the store is asked how far the run is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a run is this process's without a sign of life: nobody should have to wait long to go on after a crash.
const LEASE: Duration = Duration::from_secs(30);

/// How often, and how many times at most, it is asked whether the worker is listed: only words depend on it.
const LISTED_EVERY: Duration = Duration::from_millis(5);
const LISTED_LOOKS: usize = 200;

/// What there is to do.
pub(super) struct Task<'a> {
    pub(super) settings: &'a Settings,
    pub(super) app: App,
    pub(super) run: RunId,
}

pub(super) async fn work(
    cx: &Context<'_>,
    store: SqliteStore,
    Task { settings, app, run }: Task<'_>,
) -> Result<Printed, CliError> {
    let operator = Operator::new(store.clone(), cx.actor());
    let BuiltInModule { module, ai } = builtin::for_tree(&store, &app, settings, run)?;
    let thinking = ai.map(AiWorker::start);
    let kernel = Kernel::new(app.clone(), store.clone());
    let working = kernel.worker(module).tree(run).lease(LEASE).start().await?;
    until_listed(&store, &app, working.session()).await;
    let watched = watch(cx, &operator, run).await;
    // What is under way goes on to the end of its step, and no further.
    working.stop(Duration::ZERO).await;
    if let Some(thinking) = thinking {
        thinking.stop().await;
    }
    let watched = watched?;
    let started = started::tell(cx, &store, run).await?;
    watched.print(cx, started)
}

/// Before that, an explanation would say that nobody can take the run.
async fn until_listed(store: &SqliteStore, app: &App, session: SessionId) {
    for _ in 0..LISTED_LOOKS {
        let listed = store.session_list(app).await.unwrap_or_default();
        if listed.iter().any(|row| row.session == session) {
            return;
        }
        tokio::time::sleep(LISTED_EVERY).await;
    }
}

/// What came of looking on.
enum Watched {
    /// Nothing more happens by itself.
    Over(Box<RunView>),
    /// Somebody has seen enough.
    Interrupted { run: RunId, resume: String },
}

/// A run that is over, for a program.
#[derive(Serialize)]
struct Ended<'a> {
    #[serde(flatten)]
    run: &'a RunView,
    started_by_events: Vec<Open>,
}

impl Watched {
    fn print(self, cx: &Context<'_>, started: Vec<Open>) -> Result<Printed, CliError> {
        match self {
            Self::Over(run) => end(cx, &run, &Ended { run: &run, started_by_events: started }),
            Self::Interrupted { run, resume } => {
                let said = json!({
                    "run": run,
                    "interrupted": true,
                    "resume": resume,
                    "started_by_events": started,
                });
                cx.print(&said, |_| {}).map(|it| it.exiting(Exit::Finding))
            }
        }
    }
}

async fn watch(cx: &Context<'_>, operator: &Operator, run: RunId) -> Result<Watched, CliError> {
    let resume = cx.typed(&format!("run --resume {run}"));
    tokio::select! {
        view = follow(cx, operator, run, LOOK_EVERY) => {
            advise(cx, operator, run, &resume).await;
            Ok(Watched::Over(Box::new(view?)))
        }
        asked = interrupted() => {
            asked.map_err(CliError::Runtime)?;
            to_stderr(&format!("interrupted; nothing works on the run until somebody goes on with it:\n    {resume}\n"));
            Ok(Watched::Interrupted { run, resume })
        }
    }
}

/// What an end says, and what may be typed about one that is none that was wanted.
async fn advise(cx: &Context<'_>, operator: &Operator, run: RunId, resume: &str) {
    let Ok(view) = operator.explain(run).await else { return };
    if view.state == RunState::Succeeded && !cx.is_json() {
        // What its author has to say.
        to_stderr(&format!("{}\n", clean(&view.headline)));
    }
    if view.headline.contains(Code::FORBIDDEN.as_str()) {
        to_stderr(
            "a network that is not of the public internet is allowed by `--allow-network`, such as `127.0.0.0/8`\n",
        );
    }
    let explain = cx.typed(&format!("explain {run}"));
    let next = match view.state {
        RunState::Failed => "to try again what failed, `surefoot retry` it, then",
        RunState::NeedsAttention => "once a person has said what is true,",
        RunState::Succeeded
        | RunState::Canceled
        | RunState::Queued
        | RunState::Running
        | RunState::Waiting => return,
    };
    to_stderr(&format!(
        "what happened, and what may be done:\n    {explain}\n{next} go on with it:\n    {resume}\n"
    ));
}

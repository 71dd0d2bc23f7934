//! One file per command: its arguments, and what it does with the operator's use cases.

mod abandon;
mod activate;
mod audit;
mod cancel;
mod check;
mod delete;
#[cfg(feature = "demo")]
mod demo;
mod diff;
mod doctor;
mod dry_run;
mod effects;
mod emit;
mod events;
mod explain;
mod health;
mod prune;
mod publish;
mod reconcile;
mod redrive;
mod resolve;
mod retry;
mod run;
mod runs;
mod serve;
mod serve_dry_runs;
mod show;
mod signal;
mod signals;
mod switch;
mod sync;
mod versions;
mod watch;
mod workflows;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use surefoot_kernel_core::{App, Clock as _, RunId, Scope, StepKey, Timestamp, shell_word};
use surefoot_language::{Bindings, Manifest, Previews};
use surefoot_operator::{Done, Operator, Outcome, Store, check_reason};
use surefoot_store_postgres::PostgresStore;
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::{DryRunWorker, SystemClock};

use crate::Exit;
use crate::args::{Arguments, DEFAULT_STORE, Global, SCOPE_VARIABLE, STORE_VARIABLE, Verb};
use crate::confirm::Confirmation;
use crate::error::CliError;
use crate::page::{Page, clean, plain_json, wants_colour};
use crate::store::{self, Need};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Kill a worker in the middle of a payment, and see that nothing is lost and nothing repeated.
    #[cfg(feature = "demo")]
    Demo(crate::demo::DemoArgs),
    /// The payment provider of a demo.
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoProvider(crate::demo::ProviderArgs),
    /// A worker of a demo.
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoWorker(crate::demo::WorkerArgs),
    /// Check a workflow; diagnostics with line, column and help.
    Check(check::CheckArgs),
    /// Compile a workflow and publish it.
    Publish(publish::PublishArgs),
    /// Make a published version live.
    Activate(activate::ActivateArgs),
    /// Switch a workflow, or one of its activations, on.
    Enable(switch::SwitchArgs),
    /// Switch a workflow, or one of its activations, off; it stays off whatever is published.
    Disable(switch::SwitchArgs),
    /// What differs between two versions: steps, effects, classes.
    Diff(diff::DiffArgs),
    /// List workflows.
    Workflows(workflows::WorkflowsArgs),
    /// List the versions of a workflow.
    Versions(versions::VersionsArgs),
    /// Emit an event; prints the ids of event and runs.
    Emit(emit::EmitArgs),
    /// Have a version previewed: what it would do with an event, and at what cost. Nothing is done.
    DryRun(dry_run::DryRunArgs),
    /// Preview the dry runs that others ask for, until it is interrupted; for applications that have their module built in.
    ServeDryRuns(serve_dry_runs::ServeDryRunsArgs),
    /// Run a workflow of ready-made actions on the embedded store, without an application, and follow it to its end.
    Run(run::RunArgs),
    /// Record a signal; wakes the runs that wait for it.
    Signal(signal::SignalArgs),
    /// List signals that no run has used.
    Signals(signals::SignalsArgs),
    /// List runs, newest first.
    Runs(runs::RunsArgs),
    /// Show one run.
    Show(show::ShowArgs),
    /// Explain one run: why it does not move, what happened, what is safe to do.
    Explain(explain::ExplainArgs),
    /// Follow one run to its end.
    Watch(watch::WatchArgs),
    /// List effects that nobody can explain yet.
    Effects(effects::EffectsArgs),
    /// Say what became of an effect.
    Resolve(resolve::ResolveArgs),
    /// Have the provider asked again what became of an effect.
    Reconcile(reconcile::ReconcileArgs),
    /// Try a failed run again, or all failed runs.
    Retry(retry::RetryArgs),
    /// Give a run up.
    Abandon(abandon::AbandonArgs),
    /// Cancel a run.
    Cancel(cancel::CancelArgs),
    /// List events, newest first.
    Events(events::EventsArgs),
    /// Have the runs of a dead-lettered event created after all.
    Redrive(redrive::RedriveArgs),
    /// Delete old runs, signals or audit rows by a policy, in batches.
    Prune(prune::PruneArgs),
    /// Delete a workflow, or a whole scope: canceled first, then deleted in batches.
    Delete(delete::DeleteArgs),
    /// Who did what, newest first.
    Audit(audit::AuditArgs),
    /// Look after queues, dead letters and schedules on the coordination server.
    Sync(sync::SyncArgs),
    /// Check the store's settings, clocks, what workers offer, and how safe the coordination server keeps its work.
    Doctor(doctor::DoctorArgs),
    /// Health per application; exit code 1 when something is red.
    Health(health::HealthArgs),
    /// Serve the HTTP API and the web console, until it is interrupted.
    Serve(serve::ServeArgs),
}

/// What an application has built in.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuiltIn {
    pub(crate) manifest: Option<Manifest>,
    pub(crate) bindings: Bindings,
    /// On the embedded store.
    pub(crate) embedded: Option<MakePreviews<SqliteStore>>,
    /// On the shared store.
    pub(crate) shared: Option<MakePreviews<PostgresStore>>,
}

type Made = Result<Previews, Box<dyn std::error::Error + Send + Sync>>;

/// Makes what a dry run may use of the application's module, for a store.
pub(crate) struct MakePreviews<S>(Arc<dyn Fn(&S) -> Made + Send + Sync>);

impl<S> MakePreviews<S> {
    pub(crate) fn new(make: impl Fn(&S) -> Made + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }
}

impl<S> Clone for MakePreviews<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for MakePreviews<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakePreviews")
    }
}

/// What a command printed, and what it came to.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) exit: Exit,
}

impl Printed {
    pub(crate) fn exiting(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// What every command has at hand.
pub(crate) struct Context<'a> {
    global: Global,
    pub(crate) built_in: &'a BuiltIn,
}

/// Carries a command out.
pub(crate) async fn run(built_in: &BuiltIn, arguments: Arguments) -> Result<Printed, CliError> {
    let cx = Context { global: arguments.global, built_in };
    match arguments.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(&cx, args).await,
        #[cfg(feature = "demo")]
        Command::DemoProvider(args) => demo::provider(args).await,
        #[cfg(feature = "demo")]
        Command::DemoWorker(args) => demo::worker(&cx, args).await,
        Command::Check(args) => check::run(&cx, &args).await,
        Command::Publish(args) => publish::run(&cx, args).await,
        Command::Activate(args) => activate::run(&cx, args).await,
        Command::Workflows(args) => workflows::run(&cx, &args).await,
        Command::Versions(args) => versions::run(&cx, args).await,
        Command::Emit(args) => emit::run(&cx, args).await,
        Command::DryRun(args) => dry_run::run(&cx, args).await,
        Command::ServeDryRuns(args) => serve_dry_runs::run(&cx, args).await,
        Command::Run(args) => run::run(&cx, args).await,
        Command::Signal(args) => signal::run(&cx, args).await,
        Command::Signals(args) => signals::run(&cx, &args).await,
        Command::Runs(args) => runs::run(&cx, args).await,
        Command::Show(args) => show::run(&cx, &args).await,
        Command::Explain(args) => explain::run(&cx, &args).await,
        Command::Effects(args) => effects::run(&cx, &args).await,
        Command::Resolve(args) => resolve::run(&cx, args).await,
        Command::Reconcile(args) => reconcile::run(&cx, args).await,
        Command::Retry(args) => retry::run(&cx, args).await,
        Command::Abandon(args) => abandon::run(&cx, args).await,
        Command::Cancel(args) => cancel::run(&cx, args).await,
        Command::Events(args) => events::run(&cx, args).await,
        Command::Enable(args) => switch::run(&cx, args, true).await,
        Command::Disable(args) => switch::run(&cx, args, false).await,
        Command::Diff(args) => diff::run(&cx, &args).await,
        Command::Watch(args) => watch::run(&cx, &args).await,
        Command::Redrive(args) => redrive::run(&cx, args).await,
        Command::Prune(args) => prune::run(&cx, args).await,
        Command::Delete(args) => delete::run(&cx, args).await,
        Command::Audit(args) => audit::run(&cx, &args).await,
        Command::Sync(args) => sync::run(&cx, args).await,
        Command::Doctor(args) => doctor::run(&cx, &args).await,
        Command::Health(args) => health::run(&cx, &args).await,
        Command::Serve(args) => serve::run(&cx, args).await,
    }
}

impl Context<'_> {
    /// The store as it must be named again in the next command: not where the environment or the default names it.
    fn named_store(&self) -> Option<String> {
        let store = &self.global.store;
        let is_known =
            *store == DEFAULT_STORE || std::env::var(STORE_VARIABLE).as_ref() == Ok(store);
        (!is_known).then(|| shell_word(store))
    }

    /// The store, as it was named: it may hold a password.
    pub(crate) fn store_url(&self) -> &str {
        &self.global.store
    }

    /// Where traces are sent, if that was named.
    #[cfg(feature = "demo")]
    pub(crate) fn collector(&self) -> Option<&str> {
        #[cfg(feature = "otlp")]
        return self.global.otlp.as_deref();
        #[cfg(not(feature = "otlp"))]
        None
    }

    /// The use cases on a store that must be there.
    pub(crate) async fn operator(&self) -> Result<Operator, CliError> {
        self.operator_on(Need::Existing).await
    }

    /// The same for one run, which must be of the app and the scope that were named, if any were.
    pub(crate) async fn operator_for(&self, run: RunId) -> Result<Operator, CliError> {
        let operator = self.operator().await?;
        let (app, scope) = (self.named_app(), self.named_scope());
        operator.check_place(run, app.as_ref(), scope.as_ref()).await?;
        Ok(operator)
    }

    /// The use cases on a store that is created if it is not there, and the app that is meant.
    pub(crate) async fn operator_creating(&self) -> Result<(Operator, App), CliError> {
        let operator = self.operator_on(self.need_to_create()).await?;
        let app = operator.app(self.named_app()).await?;
        Ok((operator, app))
    }

    /// The same, with a worker of dry runs if the application has its module built in for this kind of store.
    pub(crate) async fn operator_previewing(
        &self,
    ) -> Result<(Operator, App, Option<DryRunWorker>), CliError> {
        let need = self.need_to_create();
        let url = self.store_url();
        match (store::is_embedded(url), &self.built_in.embedded, &self.built_in.shared) {
            (true, Some(make), _) => self.previewing(store::embedded(url, need).await?, make).await,
            (false, _, Some(make)) => self.previewing(store::shared(url, need).await?, make).await,
            (true, None, _) | (false, _, None) => {
                let (operator, app) = self.operator_creating().await?;
                Ok((operator, app, None))
            }
        }
    }

    async fn previewing<S: Store + 'static>(
        &self,
        store: S,
        MakePreviews(make): &MakePreviews<S>,
    ) -> Result<(Operator, App, Option<DryRunWorker>), CliError> {
        let previews = make(&store).map_err(CliError::Module)?;
        let store = Arc::new(store);
        let operator = Operator::shared(store.clone(), self.actor());
        let app = operator.app(self.named_app()).await?;
        let worker = DryRunWorker::new(app.clone(), store.clone(), store, previews);
        Ok((operator, app, Some(worker)))
    }

    /// A new store holds no app and no scope: without a name for both there is nothing to create it for.
    fn need_to_create(&self) -> Need {
        let is_named = self.named_app().is_some() && self.named_scope().is_some();
        if is_named { Need::Created } else { Need::Existing }
    }

    async fn operator_on(&self, need: Need) -> Result<Operator, CliError> {
        let store = store::open(&self.global.store, need).await?;
        Ok(Operator::shared(store, self.actor()))
    }

    /// In whose name: what was given, or who is logged in.
    pub(crate) fn actor(&self) -> String {
        let logged_in = || std::env::var("USER").ok().filter(|name| !name.is_empty());
        let given = self.global.actor.clone().filter(|name| !name.is_empty());
        given.or_else(logged_in).unwrap_or_else(|| "unknown".to_owned())
    }

    pub(crate) fn named_app(&self) -> Option<App> {
        self.global.app.clone()
    }

    /// The app that is meant; it must be there.
    pub(crate) async fn app(&self, operator: &Operator) -> Result<App, CliError> {
        Ok(operator.known_app(self.named_app()).await?)
    }

    pub(crate) fn named_scope(&self) -> Option<Scope> {
        self.global.scope.clone()
    }

    /// Refuses a scope that was typed where it means nothing; one of the environment is meant for other commands.
    pub(crate) fn refuse_scope(&self, instead: &str) -> Result<(), CliError> {
        let of_environment = std::env::var(SCOPE_VARIABLE).ok();
        match &self.global.scope {
            Some(scope) if of_environment.as_deref() != Some(scope.as_str()) => {
                Err(CliError::Usage(format!("`--scope` means nothing here: {instead}")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A command as it is typed to act on the same store.
    pub(crate) fn typed(&self, command: &str) -> String {
        let store = self.named_store();
        let store = store.map_or_else(String::new, |store| format!("--store {store} "));
        format!("surefoot {store}{command}")
    }

    /// A command that begins with the program's name, made to work as it stands: on the store that was named here.
    pub(crate) fn on_this_store(&self, command: String) -> String {
        match command.strip_prefix("surefoot ") {
            Some(rest) => self.typed(rest),
            None => command,
        }
    }

    /// The scope that is meant, in an app that is there: the named one, or the only one that it has workflows in.
    pub(crate) async fn scope_in(&self, operator: &Operator, app: &App) -> Result<Scope, CliError> {
        if let Some(scope) = self.named_scope() {
            return Ok(scope);
        }
        let listed = operator.workflows(app, None).await?.workflows;
        let scopes: BTreeSet<Scope> = listed.into_iter().map(|row| row.scope).collect();
        let mut each = scopes.iter();
        match (each.next(), each.next()) {
            (Some(only), None) => Ok(only.clone()),
            (None, _) => self.scope(),
            (Some(_), Some(_)) => {
                let names: Vec<String> = scopes.iter().map(|it| format!("`{it}`")).collect();
                let names = clean(&names.join(", "));
                Err(CliError::Usage(format!(
                    "`{app}` has several scopes, name one with `--scope`: {names}"
                )))
            }
        }
    }

    /// The scope that is meant, where something may be created in it.
    pub(crate) fn scope(&self) -> Result<Scope, CliError> {
        let missing = || CliError::Usage("this needs a scope: name one with `--scope`".to_owned());
        self.named_scope().ok_or_else(missing)
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.global.json
    }

    /// What this machine's clock shows.
    pub(crate) fn wall(&self) -> Timestamp {
        SystemClock::default().wall()
    }

    /// As JSON, or for people.
    pub(crate) fn print(
        &self,
        view: &impl Serialize,
        for_people: impl FnOnce(&mut Page),
    ) -> Result<Printed, CliError> {
        let text = if self.is_json() {
            let json = serde_json::to_string_pretty(view);
            let mut json = json.map_err(|error| CliError::Output(error.into()))?;
            json.push('\n');
            plain_json(&json)
        } else {
            let mut page = Page::new(wants_colour(&std::io::stdout()));
            for_people(&mut page);
            page.into_text()
        };
        Ok(Printed { text, exit: Exit::Done })
    }

    /// What a verb did: the run as it is now.
    pub(crate) fn print_done(&self, done: &Done) -> Result<Printed, CliError> {
        self.print(done, |page| {
            let run = &done.run;
            page.line(format!("{}: run {}", words(done.outcome), run.id));
            page.line(format!("state {}, revision {}", run.state, run.revision));
            if let Some(error) = &run.error {
                page.line(format!("{}: {}", error.code, error.message));
            }
        })
    }

    /// Asks before a verb, with the run's own words, unless `--yes` was given. Yields the revision that was shown.
    pub(crate) async fn confirm(
        &self,
        operator: &Operator,
        (name, confirmation): (&'static str, Confirmation),
        run: RunId,
    ) -> Result<Option<u64>, CliError> {
        let shown = match confirmation {
            Confirmation::Given => None,
            Confirmation::Ask => Some(operator.explain(run).await?),
        };
        let what = shown.as_ref().map_or_else(String::new, |it| {
            format!("run {run} at revision {}: {}", it.revision, it.headline)
        });
        confirmation.obtain(name, &what)?;
        Ok(shown.map(|it| it.revision))
    }
}

const fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Canceled => "canceled",
        Outcome::AlreadyEnded => "already ended, nothing was changed",
        Outcome::WillCancel => "will be canceled as soon as its worker sees the request",
        Outcome::WillCancelAfterEffect => "will be canceled once its effect is explained",
    }
}

/// A run on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OneRun {
    /// The run's id.
    #[arg(value_name = "RUN")]
    pub(crate) run: RunId,
}

/// A step of a run on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OneStep {
    /// The run's id.
    #[arg(value_name = "RUN")]
    pub(crate) run: RunId,
    /// The step's key, as in `steps.2.do.0#3`.
    #[arg(value_name = "STEP", value_parser = step_key)]
    pub(crate) step: StepKey,
}

/// The revision that was looked at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Seen {
    /// The revision that you looked at; `explain` prints it with each command.
    #[arg(long = "revision", value_name = "N")]
    pub(crate) revision: u64,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that clap asks for")]
fn step_key(text: &str) -> Result<StepKey, String> {
    Ok(StepKey::from(text))
}

impl Verb {
    /// Nothing is opened, let alone asked, for a reason that could not stand in the audit.
    pub(crate) fn confirmation(&self, name: &'static str) -> Result<Confirmation, CliError> {
        check_reason(&self.reason)?;
        Confirmation::of(name, self.yes)
    }
}

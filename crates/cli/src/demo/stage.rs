//! What everybody in a show looks at: the store, the provider, who has which role, how far it is.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use surefoot_inventory::APP;
use surefoot_inventory::bank::Bank;
use surefoot_kernel_core::{Micros, Phase, RunId, RunState, Signal};
use surefoot_worker::{Kernel, Publication, Scoped};

use super::cast::{Approval, Cast};
use super::folder::Folder;
use super::progress::{Progress, Standing};
use super::tally::runs;
use super::venue::Venue;
use super::{DemoError, During, SETTLE_AFTER};
use crate::store::Need;

/// How often the people of the show look whether there is something for them to do.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What orders wait for; the workflow says so.
const APPROVAL: &str = "approval";
/// Where the show plays.
const SCOPE: &str = "demo";
/// A show in which nothing changes for so long does not go on.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A show that is on.
#[derive(Debug)]
pub(super) struct Stage<S: Venue> {
    folder: Folder,
    kernel: Kernel<S>,
    bank: Bank,
    cast: Cast,
    roles: Mutex<HashMap<RunId, u32>>,
    emitted: AtomicU32,
    events: u32,
    over: AtomicBool,
    progress: Mutex<Progress>,
}

impl<S: Venue> Stage<S> {
    /// For a new show.
    pub(super) async fn set(
        folder: Folder,
        provider: SocketAddr,
        events: u32,
    ) -> Result<Self, DemoError> {
        let stage = Self::on(folder, provider, events, Need::Created).await?;
        // Their charges are not in the books of this show's provider.
        if stage.standing().await?.runs.iter().any(|(_, count)| *count > 0) {
            return Err(DemoError::Refused(format!(
                "the store holds runs of the app `{APP}` already, and they would be mixed up with the show: name an empty \
                 database, or go on with a show with `--finish DIR`"
            )));
        }
        Ok(stage)
    }

    /// For a show that was played before.
    pub(super) async fn again(folder: Folder, provider: SocketAddr) -> Result<Self, DemoError> {
        Self::on(folder, provider, 0, Need::Existing).await
    }

    async fn on(
        folder: Folder,
        provider: SocketAddr,
        events: u32,
        need: Need,
    ) -> Result<Self, DemoError> {
        let store = S::open(&folder.store_url(), need).await;
        Ok(Self {
            folder,
            kernel: Kernel::new(APP, store.during("the store cannot be opened")?),
            bank: Bank::at(provider),
            cast: Cast::new(events),
            roles: Mutex::default(),
            emitted: AtomicU32::new(0),
            events,
            over: AtomicBool::new(false),
            progress: Mutex::new(Progress::new()),
        })
    }

    /// Creates the application's tables and publishes its workflows.
    pub(super) async fn prepare(&self) -> Result<(), DemoError> {
        let store = self.store();
        store.fill(&self.cast.items()).await?;
        let mut manifest =
            store.module(self.bank).during("the module is wrong")?.manifest().clone();
        // A real provider is given minutes to say what it did. Nobody would watch that.
        for action in manifest.actions.iter_mut().filter(|action| action.settle_after.is_some()) {
            action.settle_after = Some(Micros::from(SETTLE_AFTER));
        }
        write(&self.folder.manifest(), &manifest.to_json())?;
        for (key, source) in [surefoot_inventory::REORDER, surefoot_inventory::QUOTE] {
            write(&self.folder.source(key), source)?;
            // Seen in every run, and never in the way.
            let publication = Publication::new(key, source).budget("payments", 3);
            let published = self.scope().publish(&manifest, publication).await;
            published.during("a workflow cannot be published")?;
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn store(&self) -> &S {
        self.kernel.store()
    }

    pub(super) fn bank(&self) -> Bank {
        self.bank
    }

    pub(super) fn say(&self, sentence: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).say(sentence);
    }

    /// Whether nothing moves any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether a worker may be killed in the charge of this run.
    pub(super) fn is_cue(&self, reference: &str) -> bool {
        let run: Option<RunId> = reference.parse().ok();
        run.and_then(|run| self.role(run)).is_some_and(|index| self.cast.is_cue(index))
    }

    /// Emits every event.
    pub(super) async fn emit(&self) -> Result<(), DemoError> {
        let scope = self.scope();
        for index in 0..self.events {
            let emission = scope.emit(self.cast.event(index)).await;
            let emission = emission.during("an event cannot be emitted")?;
            let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
            roles.extend(emission.runs.iter().map(|run| (*run, index)));
            self.emitted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Approves, refuses, answers for the supplier and reports, until nothing moves any more.
    pub(super) async fn attend(&self) -> Result<(), DemoError> {
        let mut last = (tokio::time::Instant::now(), Standing::default());
        loop {
            self.approve().await?;
            S::supply(&self.kernel).await?;
            let standing = self.standing().await?;
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).show(&standing);
            if standing.is_settled() {
                self.over.store(true, Ordering::Relaxed);
                self.progress.lock().unwrap_or_else(PoisonError::into_inner).end();
                return Ok(());
            }
            if standing != last.1 {
                last = (tokio::time::Instant::now(), standing);
            } else if last.0.elapsed() > STUCK_AFTER {
                return Err(self.stuck());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Signals a decision for each order that waits for one. To say it again is harmless: the first word stays.
    async fn approve(&self) -> Result<(), DemoError> {
        for row in runs(self.store(), vec![RunState::Waiting]).await? {
            let run = row.run.id;
            let Phase::Waiting(wait) = &row.run.phase else { continue };
            let Some(on) = wait.on.as_ref().filter(|on| on.kind() == APPROVAL) else { continue };
            let decision = self.role(run).map(|index| self.cast.approval(index));
            let signal = Signal::new(APPROVAL, on.key()).data(decision != Some(Approval::Refused));
            self.scope().signal(signal).await.during("an order cannot be approved")?;
        }
        Ok(())
    }

    async fn standing(&self) -> Result<Standing, DemoError> {
        let emitted = self.emitted.load(Ordering::Relaxed);
        let health = self.store().app_health(&APP.into()).await;
        let runs = health.during("the runs cannot be counted")?.runs;
        Ok(Standing { emitted, events: self.events, runs })
    }

    fn role(&self, run: RunId) -> Option<u32> {
        self.roles.lock().unwrap_or_else(PoisonError::into_inner).get(&run).copied()
    }

    fn scope(&self) -> Scoped<S> {
        self.kernel.scope(SCOPE)
    }

    fn stuck(&self) -> DemoError {
        DemoError::Refused(format!(
            "nothing has changed for {} s; the logs of the processes are in {}",
            STUCK_AFTER.as_secs(),
            self.folder.path().display()
        ))
    }
}

/// For people who go on with the show by themselves.
fn write(path: &Path, text: &str) -> Result<(), DemoError> {
    std::fs::write(path, text).during(&format!("{} cannot be written", path.display()))
}

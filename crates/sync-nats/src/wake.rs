//! The wake bus: one subject per app, over plain NATS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use surefoot_kernel_core::WakeBus;
use surefoot_sync_core::Namespace;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::names;

/// At most so often one process announces one app: whoever hears it looks for all there is. It is what a run that is
/// ready right behind another waits for, in the worst case, before anybody is told.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(5);
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Tells workers of other processes that something is ready. Best effort: what it loses, their scan finds.
#[derive(Debug)]
pub struct NatsWake {
    client: Client,
    prefix: String,
    /// Who announces: nobody has to hear itself.
    own: String,
    apps: Arc<StdMutex<BTreeMap<String, Announced>>>,
    ears: StdMutex<BTreeMap<String, Arc<Notify>>>,
    /// Ends with this bus.
    tasks: StdMutex<JoinSet<()>>,
}

/// When an app was announced last, and whether somebody waits to do so again.
#[derive(Debug, Clone, Copy)]
struct Announced {
    at: Instant,
    again: bool,
}

impl NatsWake {
    pub(crate) fn new(client: Client, namespace: &Namespace) -> Self {
        Self {
            client,
            prefix: format!("{namespace}.wake"),
            own: nuid::next().to_string(),
            apps: Arc::default(),
            ears: StdMutex::default(),
            tasks: StdMutex::default(),
        }
    }

    fn subject(&self, app: &str) -> String {
        format!("{}.{}", self.prefix, names::token(app))
    }

    /// How long to wait with an announcement; `None` if one that waits says it too.
    fn wait_for(&self, app: &str) -> Option<Duration> {
        let now = Instant::now();
        let mut apps = self.apps.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(announced) = apps.get_mut(app) else {
            apps.insert(app.to_owned(), Announced { at: now, again: false });
            return Some(Duration::ZERO);
        };
        if announced.again {
            return None;
        }
        let wait = (announced.at + ANNOUNCE_EVERY).saturating_duration_since(now);
        *announced = Announced { at: now + wait, again: !wait.is_zero() };
        Some(wait)
    }

    /// What is told when the app is announced; listens from the first call on.
    fn ear(&self, app: &str) -> Arc<Notify> {
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ear) = ears.get(app) {
            return ear.clone();
        }
        let ear = Arc::new(Notify::new());
        ears.insert(app.to_owned(), ear.clone());
        let listening =
            listen(self.client.clone(), self.subject(app), self.own.clone(), ear.clone());
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(listening);
        ear
    }
}

/// Listens for ever; a subscription outlives a reconnect.
async fn listen(client: Client, subject: String, own: String, ear: Arc<Notify>) {
    loop {
        match client.subscribe(subject.clone()).await {
            Ok(mut heard) => {
                while let Some(message) = heard.next().await {
                    if message.payload.as_ref() != own.as_bytes() {
                        // Kept for whoever listens next, if nobody does now.
                        ear.notify_waiters();
                        ear.notify_one();
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "the wake bus cannot listen"),
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

#[async_trait]
impl WakeBus for NatsWake {
    /// Sent without waiting for anybody; what comes within 5 ms is one announcement.
    async fn announce(&self, app: &str) {
        let Some(wait) = self.wait_for(app) else { return };
        let (client, subject, own) = (self.client.clone(), self.subject(app), self.own.clone());
        let (apps, app) = (self.apps.clone(), app.to_owned());
        let announcing = async move {
            tokio::time::sleep(wait).await;
            if let Some(announced) =
                apps.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&app)
            {
                announced.again = false;
            }
            if let Err(error) = client.publish(subject, own.into()).await {
                tracing::debug!(%error, "the wake bus cannot announce");
            }
        };
        if wait.is_zero() {
            announcing.await;
        } else {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.try_join_next().is_some() {}
            tasks.spawn(announcing);
        }
    }

    /// Also completes for what was announced between two calls.
    async fn heard(&self, app: &str) {
        self.ear(app).notified().await;
    }
}

//! Notice of what is ready, between processes: a hint by NOTIFY, never inside of a transaction that writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::{Notify, mpsc, watch};

use surefoot_kernel_core::WakeBus;

use crate::error::Fault;
use crate::options::PostgresOptions;
use crate::pool::{Connect, Use};
use crate::run::lock::hash;
use crate::sql;

const CHANNEL: &str = "surefoot";
/// Announcements that come within so long are sent together: the server notifies one session after the other.
const TOGETHER: Duration = Duration::from_millis(50);
/// After a loss, the connection is not tried again for so long; the worker's scan covers the time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A line that says nothing for so long is asked whether it is still there: one that was cut is silent too.
const QUIET: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(10);

/// Tells the workers of other processes on the same database that something is ready, and hears them: at most twenty
/// messages a second, on two connections that are opened when they are first needed. Nothing depends on it: what is
/// lost is found by the worker's scan.
#[derive(Debug, Clone)]
pub struct PostgresWake(Arc<Bus>);

#[derive(Debug)]
struct Bus {
    connect: Connect,
    listen: PgConnectOptions,
    says: OnceLock<mpsc::UnboundedSender<String>>,
    hears: OnceLock<Arc<News>>,
    /// How many news of its app each listener has seen.
    seen: Mutex<HashMap<String, u64>>,
    /// Ends the tasks with the last handle.
    alive: watch::Sender<()>,
}

/// What was heard so far.
#[derive(Debug, Default)]
struct News {
    heard: Mutex<Heard>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    of_app: HashMap<String, u64>,
    /// Connections lost, and made: each may have missed anything.
    of_all: u64,
}

impl News {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, name: &str) -> u64 {
        let heard = self.heard();
        heard.of_app.get(name).copied().unwrap_or(0).saturating_add(heard.of_all)
    }

    fn note(&self, name: &str) {
        *self.heard().of_app.entry(name.to_owned()).or_default() += 1;
        self.came.notify_waiters();
    }

    fn note_all(&self) {
        self.heard().of_all += 1;
        self.came.notify_waiters();
    }
}

impl PostgresWake {
    pub(crate) fn new(options: &PostgresOptions) -> Self {
        Self(Arc::new(Bus {
            connect: Connect::new(options, Use::Renewals),
            listen: options.connect.clone(),
            says: OnceLock::new(),
            hears: OnceLock::new(),
            seen: Mutex::default(),
            alive: watch::Sender::new(()),
        }))
    }

    fn says(&self) -> &mpsc::UnboundedSender<String> {
        self.0.says.get_or_init(|| {
            let (says, said) = mpsc::unbounded_channel();
            tokio::spawn(tell(self.0.connect.clone(), said));
            says
        })
    }

    fn hears(&self) -> &Arc<News> {
        self.0.hears.get_or_init(|| {
            let news = Arc::new(News::default());
            let mut alive = self.0.alive.subscribe();
            let (listen, to) = (self.0.listen.clone(), news.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = hear(listen, to) => {}
                    // The sender is dropped with the last handle.
                    _ = alive.changed() => {}
                }
            });
            news
        })
    }
}

#[async_trait]
impl WakeBus for PostgresWake {
    /// Does not wait for the message to be sent.
    async fn announce(&self, app: &str) {
        drop(self.says().send(name_of(app)));
    }

    /// Completes also when the announcement came between two calls, and when some may have been lost.
    async fn heard(&self, app: &str) {
        let (news, name) = (self.hears().clone(), name_of(app));
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&name).copied();
        let seen = seen.unwrap_or_else(|| news.count(&name));
        let now = loop {
            let came = news.came.notified();
            tokio::pin!(came);
            came.as_mut().enable();
            let now = news.count(&name);
            if now != seen {
                break now;
            }
            // Whoever gives up here has seen no more than before.
            self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), seen);
            came.await;
        };
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name, now);
    }
}

/// A payload has a limit, and an app has none.
fn name_of(app: &str) -> String {
    format!("{:08x}", hash(&[app]))
}

/// Sends what is said, many at once. Ends with the last handle.
async fn tell(connect: Connect, mut said: mpsc::UnboundedReceiver<String>) {
    let mut conn: Option<PgConnection> = None;
    while let Some(first) = said.recv().await {
        let mut names = BTreeSet::from([first]);
        while let Ok(name) = said.try_recv() {
            names.insert(name);
        }
        match send(conn.take(), &connect, names).await {
            Ok(still) => {
                conn = Some(still);
                tokio::time::sleep(TOGETHER).await;
            }
            Err(Fault(error)) => {
                tracing::debug!(%error, "others cannot be told that something is ready");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

async fn send(
    conn: Option<PgConnection>,
    connect: &Connect,
    names: BTreeSet<String>,
) -> Result<PgConnection, Fault> {
    let mut conn = match conn {
        Some(conn) => conn,
        None => connect.open().await?,
    };
    let names: Vec<String> = names.into_iter().collect();
    sqlx::query(sql::META_NOTIFY).bind(CHANNEL).bind(names).execute(&mut conn).await?;
    Ok(conn)
}

async fn hear(listen: PgConnectOptions, news: Arc<News>) {
    loop {
        let mut was_there = false;
        if let Err(error) = hear_once(&listen, &news, &mut was_there).await {
            tracing::debug!(%error, "others cannot be heard");
        }
        news.note_all();
        tokio::time::sleep(if was_there { TOGETHER } else { AGAIN_AFTER }).await;
    }
}

/// Until the connection is lost.
async fn hear_once(
    listen: &PgConnectOptions,
    news: &News,
    was_there: &mut bool,
) -> Result<(), sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(listen.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    *was_there = true;
    news.note_all();
    loop {
        match tokio::time::timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(message))) => news.note(message.payload()),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let asked = sqlx::query(sql::META_CLOCK).execute(&mut listener);
                tokio::time::timeout(ANSWER, asked)
                    .await
                    .map_err(|_| sqlx::Error::PoolTimedOut)??;
            }
        }
    }
}

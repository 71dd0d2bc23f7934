//! The rate limit of Surefoot on Valkey: one script, atomic on the server, by the server's clock.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisResult, Script};
use surefoot_sync_core::{
    Key, Namespace, Rate, RateCheck, RateLimit, ResourceId, SyncError, WhenDown,
};

const SCRIPT: &str = include_str!("check.lua");
const OPERATION: &str = "count a request";
/// How long a limited request is told to stay away while the server cannot be asked.
const CLOSED_FOR: Duration = Duration::from_secs(1);
/// An answer is waited for so long, unless another limit is set.
const TIME_LIMIT: Duration = Duration::from_millis(500);
/// Between two tries to connect again, at most.
const RECONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Counts requests on a Valkey server, for all processes together. Clones share the connection.
#[derive(Clone)]
pub struct ValkeyRateLimit {
    client: Client,
    connection: ConnectionManager,
    script: Script,
    prefix: String,
    rate: Rate,
    time_limit: Duration,
    when_down: WhenDown,
}

impl fmt::Debug for ValkeyRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValkeyRateLimit")
            .field("prefix", &self.prefix)
            .field("rate", &self.rate)
            .field("time_limit", &self.time_limit)
            .field("when_down", &self.when_down)
            .finish_non_exhaustive()
    }
}

impl ValkeyRateLimit {
    /// A limit on the server of a URL such as `redis://127.0.0.1:6379/0`. It connects when it is first asked, so an
    /// application starts without the server.
    ///
    /// An answer is waited for 500 ms, and without one the check is an error: see [`time_limit`](Self::time_limit) and
    /// [`when_down`](Self::when_down). Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if the URL is none.
    pub fn new(
        url: &str,
        namespace: &Namespace,
        id: &ResourceId,
        rate: Rate,
    ) -> Result<Self, SyncError> {
        // The URL may hold a password, and the library's error repeats it.
        let bad = |_| SyncError::InvalidOption {
            option: "url",
            why: "it is written like `redis://127.0.0.1:6379/0`".to_owned(),
        };
        let client = Client::open(url).map_err(bad)?;
        Ok(Self {
            connection: connection(&client, TIME_LIMIT).map_err(bad)?,
            client,
            script: Script::new(SCRIPT),
            // With its length, since an id may hold what separates it from the key.
            prefix: format!("{namespace}:limit:{}:{id}:", id.as_str().len()),
            rate,
            time_limit: TIME_LIMIT,
            when_down: WhenDown::Fail,
        })
    }

    /// An answer is waited for so long, connecting included. It has a connection of its own from here on.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for none: nothing is answered at once.
    pub fn time_limit(mut self, limit: Duration) -> Result<Self, SyncError> {
        let bad = |why: String| SyncError::InvalidOption { option: "time_limit", why };
        if limit.is_zero() {
            return Err(bad("an answer takes longer than nothing".to_owned()));
        }
        // What connecting may take is fixed when a connection is made.
        let connection = connection(&self.client, limit);
        self.connection = connection.map_err(|error| bad(error.to_string()))?;
        self.time_limit = limit;
        Ok(self)
    }

    /// What is answered while the server cannot be asked.
    #[must_use]
    pub fn when_down(mut self, when_down: WhenDown) -> Self {
        self.when_down = when_down;
        self
    }

    async fn ask(&self, key: &Key) -> Result<RateCheck, SyncError> {
        let mut connection = self.connection.clone();
        let mut call = self.script.key(format!("{}{key}", self.prefix));
        call.arg(self.rate.period_us()).arg(self.rate.limit());
        let unavailable = |source: Box<dyn std::error::Error + Send + Sync>| {
            SyncError::Unavailable { operation: OPERATION, source }
        };
        let asked = call.invoke_async::<(u8, u32, u64, u64)>(&mut connection);
        let answer = tokio::time::timeout(self.time_limit, asked).await;
        let answer = answer.map_err(|_| {
            unavailable(format!("there was no answer within {:?}", self.time_limit).into())
        })?;
        let (limited, remaining, retry_in_us, reset_in_us) =
            answer.map_err(|error| unavailable(error.into()))?;
        Ok(RateCheck {
            limited: limited == 1,
            remaining,
            retry_in: Duration::from_micros(retry_in_us),
            reset_in: Duration::from_micros(reset_in_us),
        })
    }
}

/// Connects when it is first used.
fn connection(client: &Client, time_limit: Duration) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_max_delay(RECONNECT_WITHIN)
        .set_number_of_retries(1)
        .set_connection_timeout(Some(time_limit))
        .set_response_timeout(Some(time_limit));
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

#[async_trait]
impl RateLimit for ValkeyRateLimit {
    async fn check(&self, key: &Key) -> Result<RateCheck, SyncError> {
        let error = match self.ask(key).await {
            Ok(check) => return Ok(check),
            Err(error) => error,
        };
        let answered = |limited, remaining, wait| {
            tracing::debug!(%error, limited, "the rate limit is answered without its server");
            Ok(RateCheck { limited, remaining, retry_in: wait, reset_in: wait })
        };
        match self.when_down {
            WhenDown::Fail => Err(error),
            WhenDown::Open => answered(false, self.rate.limit(), Duration::ZERO),
            WhenDown::Closed => answered(true, 0, CLOSED_FOR),
        }
    }
}

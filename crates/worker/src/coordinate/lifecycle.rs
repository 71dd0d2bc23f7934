//! The start and stop of what an application is made of. Nothing of it is durable.

use std::error::Error as StdError;
use std::time::Duration;

use surefoot_kernel_core::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

type BoxError = Box<dyn StdError + Send + Sync>;
type Start = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), BoxError>> + Send>;
type Stop = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;
type Tick = Box<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Parts that start in order and stop in reverse order, and loops that run in between.
#[derive(Default)]
#[must_use = "nothing starts before `start`"]
pub struct Lifecycle {
    parts: Vec<(String, Start, Stop)>,
    loops: Vec<(String, Duration, Tick)>,
}

/// A part did not start; those that had were stopped again.
#[derive(Debug, thiserror::Error)]
#[error("{part} did not start")]
pub struct StartError {
    /// Which.
    pub part: String,
    /// Why.
    #[source]
    pub source: BoxError,
}

/// How long a start that failed waits for what it stops again.
const UNDO_WITHIN: Duration = Duration::from_secs(10);

impl Lifecycle {
    /// A part: how it starts, and how it stops once it has.
    pub fn part<A, AF, E, Z, ZF>(mut self, name: &str, start: A, stop: Z) -> Self
    where
        A: FnOnce() -> AF + Send + 'static,
        AF: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
        Z: FnOnce() -> ZF + Send + 'static,
        ZF: Future<Output = ()> + Send + 'static,
    {
        let start: Start = Box::new(move || {
            let start = start();
            Box::pin(async move { start.await.map_err(Into::into) })
        });
        self.parts.push((name.to_owned(), start, Box::new(move || Box::pin(stop()))));
        self
    }

    /// A loop: it runs once all parts have started, and again at each multiple of a span from then on. It never overlaps
    /// itself: where it takes longer, times are left out. An error is logged, and the loop goes on.
    pub fn every<F, Fut, E>(mut self, name: &str, span: Duration, tick: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let tick: Tick = Box::new(move || {
            let tick = tick();
            Box::pin(async move { tick.await.map_err(Into::into) })
        });
        self.loops.push((name.to_owned(), span, tick));
        self
    }

    /// Starts the parts in their order, then the loops. Not cancel safe: parts that have started stay so.
    ///
    /// # Errors
    /// [`StartError`] for the first part that does not start.
    pub async fn start(self) -> Result<Started, StartError> {
        let (stop, stopped) = watch::channel(false);
        let mut started = Started { parts: Vec::new(), loops: JoinSet::new(), stop };
        for (name, start, stop) in self.parts {
            if let Err(source) = start().await {
                started.stop(UNDO_WITHIN).await;
                return Err(StartError { part: name, source });
            }
            started.parts.push((name, stop));
        }
        for (name, span, tick) in self.loops {
            started.loops.spawn(run(name, span, tick, stopped.clone()));
        }
        Ok(started)
    }
}

async fn run(name: String, span: Duration, tick: Tick, mut stopped: watch::Receiver<bool>) {
    let mut due = Instant::now();
    loop {
        if let Err(error) = tick().await {
            tracing::warn!(name, error, "a loop failed, and goes on");
        }
        due = next_due(due, span, Instant::now());
        tokio::select! {
            biased;
            // An error: nobody is left who could stop it.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// The first multiple of the span behind the present: what it took to get here adds up to nothing.
fn next_due(due: Instant, span: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due).as_nanos();
    let into = late.checked_rem(span.as_nanos()).unwrap_or_default();
    let left = span.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(u64::MAX)));
    now + left
}

/// What has started. Dropping it ends the loops at once, and stops no part.
#[must_use = "what has started is stopped by `stop`"]
pub struct Started {
    parts: Vec<(String, Stop)>,
    loops: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Started {
    /// Ends the loops, and stops the parts in reverse order, all within a time. Tells which were still at it when it was
    /// over: they were given up, and what comes after them was begun all the same.
    pub async fn stop(mut self, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        self.stop.send_replace(true);
        let mut late = Vec::new();
        let ended = async { while self.loops.join_next().await.is_some() {} };
        if tokio::time::timeout_at(deadline, ended).await.is_err() {
            self.loops.abort_all();
            late.push("loops".to_owned());
        }
        while let Some((name, stop)) = self.parts.pop() {
            if tokio::time::timeout_at(deadline, stop()).await.is_err() {
                late.push(name);
            }
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        fn say(&self, word: String) {
            self.0.lock().unwrap().push(word);
        }

        fn said(&self) -> String {
            self.0.lock().unwrap().join(" ")
        }

        /// A part that says what it does.
        fn part(&self, life: Lifecycle, name: &'static str, works: bool) -> Lifecycle {
            let (starts, stops) = (self.clone(), self.clone());
            let start = async move || {
                starts.say(format!("+{name}"));
                if works { Ok(()) } else { Err("no port") }
            };
            life.part(name, start, async move || stops.say(format!("-{name}")))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn parts_stop_in_reverse_order_and_loops_before_them() {
        let log = Log::default();
        let life = log.part(Lifecycle::default(), "store", true);
        let ticks = log.clone();
        let life = log.part(life, "http", true).every("tick", Duration::from_secs(1), move || {
            let ticks = ticks.clone();
            async move {
                // Longer than the span: it does not overlap itself.
                tokio::time::sleep(Duration::from_secs(2)).await;
                ticks.say("tick".to_owned());
                Err::<(), _>("a passing fault")
            }
        });
        let started = life.start().await.unwrap();
        tokio::time::sleep(Duration::from_millis(8_500)).await;
        assert_eq!(log.said(), "+store +http tick tick tick");
        assert_eq!(started.stop(Duration::from_secs(5)).await, [""; 0]);
        assert_eq!(log.said(), "+store +http tick tick tick -http -store");
    }

    /// Covers field fault 62.
    #[tokio::test(start_paused = true)]
    async fn a_short_span_does_not_drift() {
        let began = Instant::now();
        let ticks = Arc::new(Mutex::new(Vec::new()));
        let seen = ticks.clone();
        let life = Lifecycle::default();
        let life = life.every("tick", Duration::from_millis(1_500), move || {
            let seen = seen.clone();
            async move {
                seen.lock().unwrap().push(began.elapsed().as_millis());
                // What a tick takes does not add up.
                tokio::time::sleep(Duration::from_millis(7)).await;
                Ok::<(), BoxError>(())
            }
        });
        let started = life.start().await.unwrap();
        tokio::time::sleep(Duration::from_millis(150_500)).await;
        let expected: Vec<u128> = (0..=100).map(|tick| tick * 1_500).collect();
        assert_eq!(*ticks.lock().unwrap(), expected);
        started.stop(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_fails_stops_what_had_started() {
        let log = Log::default();
        let life = log.part(Lifecycle::default(), "store", true);
        let life = log.part(log.part(life, "http", false), "never", true);
        let error = life.start().await.err().unwrap();
        assert_eq!((error.part.as_str(), error.source.to_string().as_str()), ("http", "no port"));
        assert_eq!(log.said(), "+store +http -store");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_is_bounded_and_names_what_hangs() {
        let log = Log::default();
        let life = log.part(Lifecycle::default(), "store", true);
        let start = async || Ok::<(), BoxError>(());
        let life = life.part("stuck", start, std::future::pending);
        let life = life.every("hang", Duration::from_secs(1), || {
            std::future::pending::<Result<(), BoxError>>()
        });
        let began = Instant::now();
        let late = life.start().await.unwrap().stop(Duration::from_secs(5)).await;
        assert_eq!((late, began.elapsed().as_secs()), (vec!["loops".into(), "stuck".into()], 5));
        assert_eq!(log.said(), "+store -store");
    }
}

//! Server-sent events of a run and of a list of runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use serde_json::json;
use surefoot_kernel_core::{RunFilter, RunId};
use surefoot_operator::{ErrorClass, ErrorKind, Operator, RunView, RunsView};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Feeds;
use crate::problem::Problem;

/// So many may look at once.
const STREAMS_MAX: usize = 256;
/// What keeps a quiet stream from being taken for a dead one.
const BREATHE_EVERY: Duration = Duration::from_secs(15);
/// Between two tries where the store cannot be read.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What a stream of a run is told of: the run changed, or it is gone.
type Mark = Option<RunView>;

/// Everything that is looked at live.
pub(crate) struct Live {
    runs: Arc<Feeds<RunId, Mark>>,
    lists: Arc<Feeds<String, RunsView>>,
    places: Arc<Semaphore>,
    /// True once the server is asked to end.
    ending: Arc<watch::Sender<bool>>,
}

impl Live {
    pub(crate) fn new(ending: Arc<watch::Sender<bool>>) -> Self {
        let places = Arc::new(Semaphore::new(STREAMS_MAX));
        Self { runs: Arc::default(), lists: Arc::default(), places, ending }
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let why = format!("{STREAMS_MAX} look already: try again, or ask now and then");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why)
                .header(RETRY_AFTER, HeaderValue::from_static("10"))
        })
    }
}

/// Sends what became durable of a run behind the first `after` facts, and what follows, until it has ended.
pub(crate) async fn follow_run(
    live: &Live,
    operator: Operator,
    run: RunId,
    after: u64,
) -> Result<Response, Problem> {
    let place = live.place()?;
    // Whoever asks for a run that is not there is told so, not kept waiting.
    operator.watch(run, u64::from(u32::MAX)).await?;
    let looker = operator.clone();
    let changed = live.runs.follow(run, move || {
        let operator = looker.clone();
        async move {
            match operator.watch(run, u64::from(u32::MAX)).await {
                Ok(view) => Some(Some(view.run)),
                Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
                Err(_) => None,
            }
        }
    });
    let ending = live.ending.subscribe();
    let of = RunStream { operator, run, after, changed, ending, is_over: false, _place: place };
    Ok(answer(unfold(of, |mut of| async { of.next().await.map(|event| (Ok(event), of)) })))
}

/// Sends the first page of a list whenever it changes.
pub(crate) async fn follow_runs(
    live: &Live,
    operator: Operator,
    filter: RunFilter,
) -> Result<Response, Problem> {
    let place = live.place()?;
    // What is refused is refused with a status.
    operator.runs(filter.clone()).await?;
    let key = format!("{filter:?}");
    let changed = live.lists.follow(key, move || {
        let (operator, filter) = (operator.clone(), filter.clone());
        async move { operator.runs(filter).await.ok() }
    });
    let of = ListStream { changed, ending: live.ending.subscribe(), _place: place };
    Ok(answer(unfold(of, |mut of| async { of.next().await.map(|event| (Ok(event), of)) })))
}

fn answer(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let alive = KeepAlive::new().interval(BREATHE_EVERY);
    Sse::new(events).keep_alive(alive).into_response()
}

fn event(name: &str, view: &impl Serialize) -> Event {
    // Without line breaks, whatever it holds.
    Event::default().event(name).data(serde_json::to_string(view).unwrap_or_default())
}

/// Yields whether there is something new; not once the server ends.
async fn news<V>(
    changed: &mut watch::Receiver<Option<V>>,
    ending: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        biased;
        _ = ending.wait_for(|it| *it) => false,
        changed = changed.changed() => changed.is_ok(),
    }
}

struct RunStream {
    operator: Operator,
    run: RunId,
    after: u64,
    changed: watch::Receiver<Option<Mark>>,
    ending: watch::Receiver<bool>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl RunStream {
    /// `update` with what is new, at last `end`, or `gone` if it cannot be read any more; then nothing.
    async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        while news(&mut self.changed, &mut self.ending).await {
            match self.operator.watch(self.run, self.after).await {
                Ok(view) => {
                    self.after = view.next;
                    self.is_over = view.run.state.is_terminal();
                    let name = if self.is_over { "end" } else { "update" };
                    return Some(event(name, &view).id(view.next.to_string()));
                }
                Err(error) if error.class() == ErrorClass::Unavailable => {
                    tokio::time::sleep(TRY_AGAIN_AFTER).await;
                    self.changed.mark_changed();
                }
                // Deleted, or unreadable: nothing follows.
                Err(error) => {
                    self.is_over = true;
                    let said = json!({ "run": self.run, "detail": error.to_string() });
                    return Some(event("gone", &said));
                }
            }
        }
        None
    }
}

struct ListStream {
    changed: watch::Receiver<Option<RunsView>>,
    ending: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl ListStream {
    async fn next(&mut self) -> Option<Event> {
        if !news(&mut self.changed, &mut self.ending).await {
            return None;
        }
        self.changed.borrow_and_update().as_ref().map(|runs| event("runs", runs))
    }
}

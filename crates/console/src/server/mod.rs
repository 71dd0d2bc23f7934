//! Listens: bounded in connections and time, so that slow, idle and half-open clients hold nobody else up.

mod busy;
mod patience;
mod places;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::busy::Busy;
use self::patience::Patient;
use self::places::{Place, Places};
use crate::Console;
use crate::problem::Problem;

/// Headers of one request.
const HEADERS_MAX: usize = 64;
/// Bytes of the head of one request.
const HEAD_MAX_BYTES: usize = 32 * 1024;
/// What is read of a head, so that one that is over the limits can be told so. Beyond that the connection's end is all
/// that there is to say: a bare 431 or 414.
const READ_MAX: (usize, usize) = (8 * HEADERS_MAX, 4 * HEAD_MAX_BYTES);
/// After a connection could not be accepted: too many files are open.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How much a server takes upon itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. Where there are so many, a new one takes the place of the one that has been idle for longest.
    pub connections: usize,
    /// How long a client may take for the head of a request, and keep a connection open between two.
    pub head: Duration,
    /// How long a client may leave unread what is sent to it.
    pub unread: Duration,
    /// How long requests may go on once the server is asked to end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(15),
            unread: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Anybody could reach it.
    #[error(
        "{address} can be reached from other machines, and everybody who does would be let in: give it tokens, or listen on \
         127.0.0.1"
    )]
    Unguarded {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("{address} cannot be listened on: another program may do so already")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
}

/// A console that listens.
#[must_use = "a server answers nobody until it runs"]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    console: Console,
    limits: Limits,
}

impl Server {
    /// Listens on an address; with port 0, on a free one.
    ///
    /// # Errors
    /// [`ServeError::Unguarded`] for an address beyond loopback where everybody is let in.
    pub async fn bind(console: Console, address: SocketAddr) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() && !console.is_guarded() {
            return Err(ServeError::Unguarded { address });
        }
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, console, limits: Limits::default() })
    }

    /// With other limits.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` completes; then requests that were begun go on to their end within the grace. Dropped, it cuts
    /// them off.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, console, limits, .. } = self;
        let ending = console.ending();
        let router = console.router();
        let places = Arc::new(Places::new(limits.connections));
        let mut tasks = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = async {
                places.vacant().await;
                listener.accept().await
            };
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = tasks.join_next() => {}
                accepted = accepted => match accepted {
                    Ok((stream, _)) => {
                        let place = Places::take(&places);
                        let (number, ending) = (place.number(), ending.subscribe());
                        let task = serve(stream, router.clone(), place, limits, ending);
                        places.belongs_to(number, tasks.spawn(task));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
                },
            }
        }
        drop(listener);
        ending.send_replace(true);
        let ended = async { while tasks.join_next().await.is_some() {} };
        // Past the grace, the set is dropped, and with it what is left.
        let _ = tokio::time::timeout(limits.grace, ended).await;
    }
}

fn check_head<B>(request: &Request<B>) -> Result<(), Problem> {
    let (uri, headers) = (request.uri().to_string().len(), request.headers());
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() <= HEADERS_MAX && uri + bytes.sum::<usize>() <= HEAD_MAX_BYTES {
        return Ok(());
    }
    let why = format!(
        "the address and the headers of a request may have {HEAD_MAX_BYTES} bytes, and there may be {HEADERS_MAX} headers"
    );
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Err(Problem::new(status, "head-too-large", why))
}

/// One connection, to its end.
async fn serve(
    stream: TcpStream,
    router: Router,
    place: Place,
    limits: Limits,
    mut ending: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let io = Patient::new(TokioIo::new(stream), limits.unread);
    let router = TowerToHyperService::new(router);
    let answer = service_fn(|request: Request<Incoming>| {
        let answering = place.answering();
        let answered = check_head(&request).map(|()| router.call(request));
        async move {
            let response = match answered {
                Ok(answered) => answered.await?,
                Err(problem) => problem.into_response(),
            };
            Ok::<_, Infallible>(response.map(|body| Body::new(Busy::new(body, answering))))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(READ_MAX.0)
        .max_buf_size(READ_MAX.1);
    let mut connection = pin!(builder.serve_connection(io, answer));
    tokio::select! {
        biased;
        // Whatever a client did to its connection concerns nobody else.
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|it| *it) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

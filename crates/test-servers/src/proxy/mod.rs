//! A proxy in front of PostgreSQL that loses and delays what a test tells it to.

mod line;
mod trap;
mod wire;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::Error;
use line::Line;
pub use trap::{Fate, Trap};

/// PostgreSQL behind a proxy that reads along: it knows which statement a client is about to have carried out, and what
/// a test wants to become of it. It ends, with all its connections, when it is dropped.
///
/// Clients talk to it without encryption.
#[derive(Debug)]
pub struct PostgresProxy {
    shared: Arc<Shared>,
    port: u16,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    lines: Mutex<Vec<Weak<Line>>>,
    traps: Arc<Traps>,
    is_closed: AtomicBool,
    /// New connections are cut at once.
    is_down: AtomicBool,
}

/// What is waited for, and what came.
#[derive(Debug, Default)]
struct Traps {
    armed: Mutex<Vec<Trap>>,
    seen: Mutex<Vec<String>>,
    drops_options: AtomicBool,
}

impl Traps {
    fn drops_options(&self) -> bool {
        self.drops_options.load(Ordering::SeqCst)
    }

    fn catch(&self, statements: &[String]) -> Option<Trap> {
        if statements.is_empty() {
            return None;
        }
        let heads = statements.iter().filter_map(|statement| statement.lines().next());
        lock(&self.seen).extend(heads.map(str::to_owned));
        lock(&self.armed).iter().find(|trap| trap.catches(statements)).cloned()
    }
}

impl PostgresProxy {
    /// Listens on a free port of this host, in front of the server that a URL names.
    ///
    /// # Errors
    /// [`Error::Io`] if the URL names no host, or no port is free.
    pub fn start(url: &str) -> Result<Self, Error> {
        let upstream = upstream(url)?;
        let failed = |error| Error::io("listen on", Path::new("127.0.0.1"))(error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let shared = Arc::new(Shared {
            upstream,
            lines: Mutex::default(),
            traps: Arc::default(),
            is_closed: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Ok(Self { shared, port })
    }

    /// Where it listens, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Catches the next statement whose text contains this.
    #[must_use]
    pub fn trap(&self, text: &str, fate: Fate) -> Trap {
        self.arm(Trap::new(fate, text, 0, 1))
    }

    /// Catches the `nth` statement from now on whose text contains this, from 1.
    #[must_use]
    pub fn trap_nth(&self, nth: u64, text: &str, fate: Fate) -> Trap {
        self.arm(Trap::new(fate, text, nth.saturating_sub(1), 1))
    }

    /// Catches every statement whose text contains this, until it is disarmed.
    #[must_use]
    pub fn trap_all(&self, text: &str, fate: Fate) -> Trap {
        self.arm(Trap::new(fate, text, 0, u64::MAX))
    }

    fn arm(&self, trap: Trap) -> Trap {
        lock(&self.shared.traps.armed).push(trap.clone());
        trap
    }

    /// The first lines of all statements so far, in the order in which they came.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        lock(&self.shared.traps.seen).clone()
    }

    /// Cuts the connections that are open now.
    pub fn cut(&self) {
        self.shared.each(Line::cut);
    }

    /// On the connections that are open now nothing is carried any more; they stay open, and nobody is told.
    pub fn hush(&self) {
        self.shared.each(Line::hush);
    }

    /// From now on, sessions begin without what they ask for: as behind a pooler that shares its own between transactions.
    pub fn drop_options(&self) {
        self.shared.traps.drops_options.store(true, Ordering::SeqCst);
    }

    /// Cuts every connection, and those that come, until it is told otherwise.
    pub fn down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
        if is_down {
            self.cut();
        }
    }
}

impl Shared {
    fn accept(&self, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            if self.is_down.load(Ordering::SeqCst) {
                continue;
            }
            // A server that is not there is found out by the client, whose connection is dropped here.
            if let Ok(line) = Line::open(client, self.upstream, &self.traps) {
                let mut lines = lock(&self.lines);
                lines.retain(|line| line.strong_count() > 0);
                lines.push(Arc::downgrade(&line));
                // Whoever took the proxy down a moment ago has not seen this one.
                if self.is_down.load(Ordering::SeqCst) {
                    line.cut();
                }
            }
        }
    }

    fn each(&self, act: impl Fn(&Line)) {
        lock(&self.lines).iter().filter_map(Weak::upgrade).for_each(|line| act(&line));
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        lock(&self.shared.traps.armed).iter().for_each(Trap::disarm);
        self.shared.each(Line::cut);
        // The thread that listens looks up.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

/// Where the server of a URL is.
pub(crate) fn upstream(url: &str) -> Result<SocketAddr, Error> {
    resolve(url).map_err(Error::io("find", Path::new(url)))
}

fn resolve(url: &str) -> std::io::Result<SocketAddr> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?']).next().unwrap_or_default();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host =
        if host.rsplit_once(':').is_some() { host.to_owned() } else { format!("{host}:5432") };
    let found = host.to_socket_addrs()?.next();
    found.ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! One connection through the proxy: a thread for each way.

use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Traps;
use super::trap::{Fate, Trap};
use super::wire::{self, NO_ENCRYPTION, Opening, Prepared, READY, Unit};

#[derive(Debug)]
pub(super) struct Line {
    client: TcpStream,
    server: TcpStream,
    /// What becomes of the answer that is awaited.
    answer: Mutex<Answer>,
    /// Nothing is carried any more, and nobody is told.
    is_silent: AtomicBool,
}

#[derive(Debug, Default)]
enum Answer {
    #[default]
    Carried,
    /// Read to its end; then both sides are cut.
    Swallowed(Trap),
    Held(Trap),
    /// Carried, and the trap is told of its end.
    Noted(Trap),
}

impl Line {
    /// Connects a client, and carries until one side is gone.
    pub(super) fn open(
        client: TcpStream,
        upstream: SocketAddr,
        traps: &Arc<Traps>,
    ) -> io::Result<Arc<Self>> {
        let server = TcpStream::connect(upstream)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (answer, is_silent) = (Mutex::default(), AtomicBool::new(false));
        let line = Arc::new(Self { client, server, answer, is_silent });
        let (up, down, traps) = (line.clone(), line.clone(), traps.clone());
        std::thread::spawn(move || {
            let ended = up.carry_up(&traps);
            if ended.is_err() {
                up.cut();
            }
        });
        std::thread::spawn(move || {
            drop(down.carry_down());
            down.cut();
        });
        Ok(line)
    }

    /// Both sides lose the connection.
    pub(super) fn cut(&self) {
        for side in [&self.client, &self.server] {
            // One that is gone needs no cut.
            drop(side.shutdown(Shutdown::Both));
        }
    }

    pub(super) fn hush(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }

    fn answer(&self) -> MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, mut to: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        if self.is_silent.load(Ordering::SeqCst) { Ok(()) } else { to.write_all(bytes) }
    }

    fn carry_up(&self, traps: &Traps) -> io::Result<()> {
        let mut from = BufReader::new(&self.client);
        loop {
            match wire::opening(&mut from)? {
                Opening::Encryption => (&self.client).write_all(NO_ENCRYPTION)?,
                Opening::Startup(message) if traps.drops_options() => {
                    break self.say(&self.server, &wire::without(&message, "options"))?;
                }
                Opening::Startup(message) => break self.say(&self.server, &message)?,
            }
        }
        let mut prepared = Prepared::default();
        loop {
            let unit = prepared.unit(&mut from)?;
            match traps.catch(&unit.statements) {
                None => self.say(&self.server, &unit.bytes)?,
                Some(trap) => {
                    let is_last = matches!(trap.fate(), Fate::LoseAnswer | Fate::ComeLate);
                    self.spring(trap, &unit)?;
                    // The client has nothing more to say; the line is cut when the server has answered.
                    if is_last {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn spring(&self, trap: Trap, unit: &Unit) -> io::Result<()> {
        match trap.fate() {
            Fate::LoseRequest => return Err(io::ErrorKind::ConnectionReset.into()),
            Fate::LoseAnswer => *self.answer() = Answer::Swallowed(trap),
            Fate::ComeLate => {
                *self.answer() = Answer::Swallowed(trap.clone());
                drop(self.client.shutdown(Shutdown::Both));
                trap.until_released();
            }
            Fate::Delay => {
                trap.until_released();
                *self.answer() = Answer::Noted(trap);
            }
            Fate::DelayAnswer => *self.answer() = Answer::Held(trap),
            Fate::Fail(sqlstate) => {
                *self.answer() = Answer::Noted(trap);
                return self.say(&self.server, &wire::failing(sqlstate));
            }
        }
        self.say(&self.server, &unit.bytes)
    }

    fn carry_down(&self) -> io::Result<()> {
        let mut from = BufReader::new(&self.server);
        loop {
            let (kind, message) = wire::message(&mut from)?;
            let is_end = kind == READY;
            let answer = std::mem::take(&mut *self.answer());
            match answer {
                Answer::Carried => {}
                Answer::Swallowed(trap) if is_end => {
                    trap.settle();
                    return Ok(());
                }
                swallowed @ Answer::Swallowed(_) => {
                    *self.answer() = swallowed;
                    continue;
                }
                Answer::Held(trap) => {
                    trap.until_released();
                    *self.answer() = Answer::Noted(trap);
                }
                Answer::Noted(trap) if is_end => trap.settle(),
                noted @ Answer::Noted(_) => *self.answer() = noted,
            }
            self.say(&self.client, &message)?;
        }
    }
}

//! A connection that is given up where the other side reads nothing of what is sent to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::{Sleep, sleep};

pub(super) struct Patient<T> {
    io: T,
    patience: Duration,
    /// Runs while something waits to be sent.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(super) const fn new(io: T, patience: Duration) -> Self {
        Self { io, patience, waiting: None }
    }

    /// What came of an attempt to send.
    fn judge<R>(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if tried.is_ready() {
            self.waiting = None;
            return tried;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        if waiting.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let unread = io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing");
        Poll::Ready(Err(unread))
    }
}

impl<T: Read + Unpin> Read for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: Write + Unpin> Write for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, tried)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.io).poll_flush(cx);
        self.judge(cx, tried)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.io).poll_shutdown(cx);
        self.judge(cx, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.judge(cx, tried)
    }
}

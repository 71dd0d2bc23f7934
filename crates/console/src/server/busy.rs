//! The body of an answer, which keeps its connection busy until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use super::places::Answering;

pub(super) struct Busy {
    body: Body,
    _answering: Answering,
}

impl Busy {
    pub(super) const fn new(body: Body, answering: Answering) -> Self {
        Self { body, _answering: answering }
    }
}

impl hyper::body::Body for Busy {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

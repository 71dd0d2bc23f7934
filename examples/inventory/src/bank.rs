//! The client of the payment provider.
//!
//! It is written on a single connection and not on a pooling client, for a reason that matters here: a pool hides
//! whether a request was sent, and some pools send it again by themselves. Here "connected" and "sent" are two calls,
//! so the action can say what each failure means for the money.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use surefoot::{EffectKey, RunId};
use tokio::net::TcpStream;

use crate::payment::CardCharge;
use crate::provider::wire::{self, ChargeRequest, OpenCall, Receipt, Refusal};

/// No answer of the provider is longer.
const ANSWER_MAX_BYTES: usize = 64 * 1024;

/// Why there is no answer that can be understood. After a charge was sent, each of them means: nobody knows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BankError {
    /// The line broke.
    #[error("the line to the provider broke")]
    Line(#[from] hyper::Error),
    /// Nothing came.
    #[error("the provider did not answer within {} ms", .waited.as_millis())]
    Silent {
        /// How long was waited.
        waited: Duration,
    },
    /// An answer that says neither yes nor no.
    #[error("the provider answered {status}: {text}")]
    Unclear {
        /// The HTTP status.
        status: u16,
        /// What it said.
        text: String,
    },
    /// The answer could not be read.
    #[error("the provider's answer could not be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The provider could not be reached; nothing was sent.
    #[error("the provider could not be reached")]
    Unreachable(#[from] io::Error),
}

/// What the provider says to a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Charged.
    Charged(Receipt),
    /// Not charged, for good.
    Declined(String),
}

/// What the provider knows about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It acted on the key.
    Answer(Answer),
    /// It does not know the key; perhaps not yet.
    Nothing,
    /// It cannot tell.
    CannotTell(String),
}

/// Where the provider is, and how long we wait for it. Cheap to clone.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    address: SocketAddr,
    patience: Duration,
}

impl Bank {
    /// The provider at an address.
    #[must_use]
    pub const fn at(address: SocketAddr) -> Self {
        Self { address, patience: Duration::from_secs(20) }
    }

    /// Waits this long for an answer. The default is 20 s.
    #[must_use]
    pub const fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Opens a line. Nothing is asked for yet.
    ///
    /// # Errors
    /// The provider cannot be reached.
    pub async fn connect(&self) -> Result<Line, BankError> {
        let stream = tokio::time::timeout(self.patience, TcpStream::connect(self.address)).await;
        let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Moves the bytes. It ends with the line, and its error also comes out of the request.
        tokio::spawn(connection);
        Ok(Line { requests, patience: self.patience })
    }

    /// Asks what became of a key. Changes nothing, so it may be asked again and again.
    ///
    /// # Errors
    /// No answer that can be understood.
    pub async fn find(&self, key: &EffectKey) -> Result<Found, BankError> {
        let mut line = self.connect().await?;
        let (status, body) = line.get(&format!("/charges/{key}")).await?;
        Ok(match status {
            StatusCode::OK => Found::Answer(Answer::Charged(read(&body)?)),
            StatusCode::PAYMENT_REQUIRED => Found::Answer(Answer::Declined(message(&body))),
            StatusCode::NOT_FOUND => Found::Nothing,
            StatusCode::GONE => Found::CannotTell(message(&body)),
            status => return Err(unclear(status, &body)),
        })
    }

    /// The charges that the provider is working on: what only a demo can look at.
    ///
    /// # Errors
    /// No answer that can be understood.
    pub async fn open_calls(&self) -> Result<Vec<OpenCall>, BankError> {
        let mut line = self.connect().await?;
        let (status, body) = line.get("/control/calls").await?;
        if status == StatusCode::OK { read(&body) } else { Err(unclear(status, &body)) }
    }
}

/// An open line to the provider, good for one question.
#[derive(Debug)]
pub struct Line {
    requests: SendRequest<Full<Bytes>>,
    patience: Duration,
}

impl Line {
    /// Charges a card.
    ///
    /// # Errors
    /// The charge may have been carried out or not: every error says only that no clear answer came.
    pub async fn charge(
        mut self,
        key: &EffectKey,
        run: RunId,
        charge: &CardCharge,
    ) -> Result<Answer, BankError> {
        let CardCharge { cents, currency, card } = charge.clone();
        let asked = ChargeRequest { cents, currency, card, reference: run.to_string() };
        let body =
            serde_json::to_vec(&asked).map_err(|error| BankError::Unreadable(error.into()))?;
        let request = Request::builder()
            .method(Method::POST)
            .uri("/charges")
            .header("content-type", "application/json")
            .header(wire::EFFECT_KEY, key.as_str())
            .header(wire::WORKER, std::process::id());
        let (status, body) = self.ask(request, body).await?;
        match status {
            StatusCode::OK => Ok(Answer::Charged(read(&body)?)),
            StatusCode::PAYMENT_REQUIRED => Ok(Answer::Declined(message(&body))),
            // Also those that look like a definite no: a gateway may have said it after the charge went through.
            status => Err(unclear(status, &body)),
        }
    }

    async fn get(&mut self, path: &str) -> Result<(StatusCode, Bytes), BankError> {
        self.ask(Request::builder().method(Method::GET).uri(path), Vec::new()).await
    }

    async fn ask(
        &mut self,
        request: hyper::http::request::Builder,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), BankError> {
        let request = request.header("host", "provider").body(Full::new(Bytes::from(body)));
        let request = request.map_err(|error| BankError::Unreadable(error.into()))?;
        let answered = async {
            let answer = self.requests.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_MAX_BYTES).collect().await;
            Ok((status, body.map_err(BankError::Unreadable)?.to_bytes()))
        };
        let waited = self.patience;
        tokio::time::timeout(waited, answered).await.map_err(|_| BankError::Silent { waited })?
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, BankError> {
    serde_json::from_slice(body).map_err(|error| BankError::Unreadable(error.into()))
}

fn message(body: &[u8]) -> String {
    let refusal = serde_json::from_slice::<Refusal>(body);
    refusal.map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |refusal| refusal.message)
}

fn unclear(status: StatusCode, body: &[u8]) -> BankError {
    BankError::Unclear { status: status.as_u16(), text: message(body) }
}

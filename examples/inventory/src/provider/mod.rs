//! A payment provider, small and real: HTTP on loopback, a log on disk, and the faults of its trade.
//!
//! It is not part of the application. It stands for the company at the other end of the line, which is why it knows
//! nothing of workflows. Its log is the truth that the demo compares the kernel's journal with.

mod calls;
mod ledger;
pub mod wire;

use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::net::TcpListener;

use calls::{Call, Calls};
use ledger::{Known, Ledger};
use wire::{Charge, ChargeRequest, OpenCall, Receipt, Refusal, card};

/// The file with one line for each charge carried out, and nothing else.
pub const CHARGES_FILE: &str = "charges.jsonl";
/// The file with requests and answers.
pub const REQUESTS_FILE: &str = "requests.jsonl";
/// How long after the request a late charge is carried out.
pub const LATE_AFTER: Duration = Duration::from_millis(1_500);

/// A payment provider with its books in a folder.
#[derive(Debug, Clone)]
pub struct Provider {
    ledger: Arc<Mutex<Ledger>>,
    calls: Arc<Calls>,
}

impl Provider {
    /// Opens the books in a folder that exists. What it charged before, it remembers.
    ///
    /// # Errors
    /// The files cannot be read or written.
    pub fn open(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref();
        let ledger = Ledger::open(&folder.join(CHARGES_FILE))?;
        let calls = Calls::open(&folder.join(REQUESTS_FILE))?;
        Ok(Self { ledger: Arc::new(Mutex::new(ledger)), calls })
    }

    /// Answers until `stop` completes.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let routes = Router::new()
            .route("/charges", post(charge))
            .route("/charges/{effect_key}", get(find))
            .route("/control/calls", get(open_calls))
            .with_state(self);
        // Not a graceful end: calls that are never answered would hold it up for ever.
        tokio::select! {
            ended = async { axum::serve(listener, routes).await } => ended,
            () = stop => Ok(()),
        }
    }

    async fn carry_out(&self, effect_key: String, request: ChargeRequest) -> io::Result<Charge> {
        let ledger = self.ledger.clone();
        let ChargeRequest { cents, currency, card, reference } = request;
        let charge = move |id| Charge { effect_key, id, cents, currency, card, reference };
        // A flush blocks its thread. And a caller that hangs up stops nothing: the money moves.
        let written = tokio::task::spawn_blocking(move || {
            ledger.lock().unwrap_or_else(PoisonError::into_inner).carry_out(charge)
        });
        written.await.map_err(io::Error::other)?
    }
}

async fn charge(
    State(provider): State<Provider>,
    headers: HeaderMap,
    Json(request): Json<ChargeRequest>,
) -> Response {
    let Some(effect_key) = header(&headers, wire::EFFECT_KEY) else {
        return refusal(StatusCode::BAD_REQUEST, "a charge needs the header `effect-key`");
    };
    let worker = header(&headers, wire::WORKER).and_then(|text| text.parse().ok());
    let call = provider.calls.begin(OpenCall {
        effect_key: effect_key.clone(),
        reference: request.reference.clone(),
        worker: worker.unwrap_or_default(),
        carried_out: false,
        age_ms: 0,
    });
    answer(&provider, call, effect_key, request).await
}

async fn answer(
    provider: &Provider,
    call: Call,
    effect_key: String,
    request: ChargeRequest,
) -> Response {
    match request.card.as_str() {
        card::DECLINED => {
            provider.ledger.lock().unwrap_or_else(PoisonError::into_inner).refuse(effect_key);
            return refused(call, StatusCode::PAYMENT_REQUIRED, "the bank declined the card");
        }
        card::LATE => {
            let provider = provider.clone();
            tokio::spawn(async move {
                tokio::time::sleep(LATE_AFTER).await;
                let _ = provider.carry_out(effect_key, request).await;
            });
            return refused(call, StatusCode::GATEWAY_TIMEOUT, "the bank did not answer in time");
        }
        _ => {}
    }
    let silent = request.card == card::NO_ANSWER;
    let forgetful = request.card == card::FORGOTTEN;
    let charge = match provider.carry_out(effect_key, request).await {
        Ok(charge) => charge,
        Err(error) => {
            return refused(call, StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
        }
    };
    call.carried_out();
    if silent {
        // Ends when the caller hangs up.
        pending::<()>().await;
    }
    if forgetful {
        return refused(call, StatusCode::INTERNAL_SERVER_ERROR, "the provider lost its memory");
    }
    call.answered(StatusCode::OK.as_u16());
    Json(Receipt { id: charge.id, cents: charge.cents }).into_response()
}

async fn find(State(provider): State<Provider>, UrlPath(effect_key): UrlPath<String>) -> Response {
    let known = provider.ledger.lock().unwrap_or_else(PoisonError::into_inner).find(&effect_key);
    match known {
        Known::Charged(Charge { id, cents, .. }) => Json(Receipt { id, cents }).into_response(),
        Known::Refused => refusal(StatusCode::PAYMENT_REQUIRED, "the bank declined the card"),
        Known::CannotTell => {
            refusal(StatusCode::GONE, "the provider cannot tell any more what it did")
        }
        Known::Nothing => refusal(StatusCode::NOT_FOUND, "no charge is known under this key"),
    }
}

async fn open_calls(State(provider): State<Provider>) -> Json<Vec<OpenCall>> {
    Json(provider.calls.list())
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(ToOwned::to_owned)
}

fn refused(call: Call, status: StatusCode, message: &str) -> Response {
    call.answered(status.as_u16());
    refusal(status, message)
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, Json(Refusal { message: message.to_owned() })).into_response()
}

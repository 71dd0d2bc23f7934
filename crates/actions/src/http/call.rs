//! `httpCall`: may be sent again.

use surefoot_kernel_core::Code;
use surefoot_language::{
    Access, ActionResult, Cost, Idempotent, IdempotentCx, PlanResult, StepCx, Stop,
};

use super::answer::{described, retry_after};
use super::client::{HttpClient, Lost, Reply, exchange};
use super::input::HttpInput;
use super::prepare::{Outgoing, Unready, check};
use super::request::said;
use super::status::Meaning;
use super::written::check_written;
use super::{
    HTTP_ADDRESS_REFUSED, HTTP_ASTRAY, HTTP_BUSY, HTTP_REFUSED, HTTP_REQUESTS, HTTP_UNANSWERED,
    HTTP_UNREACHABLE, HttpAnswer, SECRET_MISSING, SECRET_UNAVAILABLE, access, planned,
};

/// Calls a server that recognises an idempotency key. It is called again where no clear answer came.
#[derive(Debug, Clone)]
pub struct HttpCall {
    client: HttpClient,
}

impl HttpCall {
    /// With a client, which says where calls may go.
    #[must_use]
    pub const fn new(client: HttpClient) -> Self {
        Self { client }
    }
}

impl Idempotent for HttpCall {
    const NAME: &'static str = "httpCall";
    const ABOUT: &'static str = "Calls a server that honours an idempotency key; without a clear answer it is called again.";
    type Input = HttpInput;
    type Output = HttpAnswer;

    async fn authorize(&self, cx: &StepCx, input: &HttpInput) -> ActionResult<Access> {
        access(check(self.client.policy(), input).and_then(|_| check_written(cx, input)))
    }

    async fn run(&self, cx: &IdempotentCx, input: HttpInput) -> ActionResult<HttpAnswer> {
        let checked = check(self.client.policy(), &input);
        let checked = checked.map_err(|why| Stop::fail(Code::CONFIG_INVALID, why.to_string()))?;
        let outgoing = checked.ready(&self.client, cx.effect_key()).await.map_err(unready)?;
        let reply = tokio::select! {
            reply = exchange(&self.client, &outgoing) => reply,
            // It may be sent again, so whoever wants this worker to end need not wait for an answer.
            () = cx.canceled() => {
                let what = "the step was stopped before an answer came".to_owned();
                Err(Lost::Unanswered { what, status: None })
            }
        };
        let reply = reply.map_err(|lost| stopped(&lost, &outgoing))?;
        verdict(&reply, &outgoing, input.statuses.of_call(reply.status))
    }

    async fn plan(&self, cx: &StepCx, input: &HttpInput) -> PlanResult<HttpAnswer> {
        let planned = planned(&self.client, input, "again if no answer comes");
        Ok(match check_written(cx, input) {
            Err(why) if planned.issues().is_empty() => planned.issue(why.to_string()),
            Ok(()) | Err(_) => planned,
        })
    }

    fn cost(&self, _: &HttpInput) -> Cost {
        Cost::of(HTTP_REQUESTS, 1)
    }
}

fn unready(error: Unready) -> Stop {
    match error {
        Unready::NoSecret(_) | Unready::OddSecret(_) => {
            Stop::fail(SECRET_MISSING, error.to_string())
        }
        Unready::Secrets(error) => Stop::retry(SECRET_UNAVAILABLE, error.to_string()),
    }
}

fn stopped(lost: &Lost, outgoing: &Outgoing) -> Stop {
    let why = said(lost, outgoing);
    match lost {
        Lost::Forbidden(_) => Stop::fail(HTTP_ADDRESS_REFUSED, why),
        Lost::Astray(_) => Stop::fail(HTTP_ASTRAY, why),
        Lost::Unreachable(_) => Stop::retry(HTTP_UNREACHABLE, why),
        Lost::Unanswered { .. } => Stop::retry(HTTP_UNANSWERED, why),
    }
}

fn verdict(reply: &Reply, outgoing: &Outgoing, meaning: Meaning) -> ActionResult<HttpAnswer> {
    let redactor = &outgoing.redactor;
    match meaning {
        Meaning::Success => Ok(HttpAnswer::of(reply, redactor)),
        Meaning::Refused => Err(Stop::fail(HTTP_REFUSED, described(reply, redactor))),
        Meaning::Retry | Meaning::Unclear => {
            let stop = Stop::retry(HTTP_BUSY, described(reply, redactor));
            Err(match retry_after(&reply.headers) {
                Some(span) => stop.retry_after(span),
                None => stop,
            })
        }
    }
}

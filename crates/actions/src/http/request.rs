//! `httpRequest`: sent once.

use serde_json::json;
use surefoot_kernel_core::Code;
use surefoot_language::{
    Access, ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Cost, PlanResult,
    ReconcileResult, Reconciled, StepCx, Stop,
};

use super::answer::{described, evidence, retry_after};
use super::client::{HttpClient, Lost, Reply, exchange};
use super::confirm::{Conditions, Word};
use super::input::{Confirm, HttpRequestInput};
use super::policy::Forbidden;
use super::prepare::{Outgoing, Unready, check, check_confirm};
use super::status::Meaning;
use super::written::{check_confirm_written, check_written};
use super::{
    HTTP_ADDRESS_REFUSED, HTTP_ASTRAY, HTTP_BUSY, HTTP_REFUSED, HTTP_REQUESTS, HTTP_UNREACHABLE,
    HttpAnswer, SECRET_MISSING, SECRET_UNAVAILABLE, access, planned,
};

/// Sends one request to a server, once. What became of one that got no answer is asked for by its `confirm`; without
/// one, an operator says so.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    client: HttpClient,
}

impl HttpRequest {
    /// With a client, which says where requests may go.
    #[must_use]
    pub const fn new(client: HttpClient) -> Self {
        Self { client }
    }

    fn check(&self, input: &HttpRequestInput, cx: &StepCx) -> Result<(), Forbidden> {
        check(self.client.policy(), &input.request)?;
        check_written(cx, &input.request)?;
        let Some(confirm) = &input.confirm else { return Ok(()) };
        check_confirm_written(cx, confirm)?;
        Conditions::read(confirm).map_err(|error| Forbidden::Malformed(error.to_string()))?;
        let key = surefoot_kernel_core::EffectKey::of(cx.run_id(), cx.step_key());
        check_confirm(self.client.policy(), confirm, &key).map(drop)
    }
}

impl Ambiguous for HttpRequest {
    const NAME: &'static str = "httpRequest";
    const ABOUT: &'static str = "Sends a request to a server, once. Without an answer it is not sent again: `confirm` is asked.";
    type Input = HttpRequestInput;
    type Output = HttpAnswer;

    async fn authorize(&self, cx: &StepCx, input: &HttpRequestInput) -> ActionResult<Access> {
        access(self.check(input, cx))
    }

    async fn run(&self, cx: &AmbiguousCx, input: HttpRequestInput) -> AmbiguousResult<HttpAnswer> {
        let refused =
            |why: Forbidden| AmbiguousStop::refused(Code::CONFIG_INVALID, why.to_string());
        let checked = check(self.client.policy(), &input.request).map_err(refused)?;
        let outgoing = checked.ready(&self.client, cx.effect_key()).await.map_err(unready)?;
        if cx.is_canceled() {
            let why = "the step was stopped before anything was sent";
            return Err(AmbiguousStop::nothing_happened_retry(HTTP_UNREACHABLE, why));
        }
        let reply =
            exchange(&self.client, &outgoing).await.map_err(|lost| stopped(lost, &outgoing))?;
        verdict(&reply, &outgoing, input.request.statuses.of_request(reply.status))
    }

    async fn reconcile(
        &self,
        cx: &AmbiguousCx,
        input: HttpRequestInput,
    ) -> ReconcileResult<HttpAnswer> {
        match &input.confirm {
            Some(confirm) => self.ask(cx, confirm).await,
            None => Ok(Reconciled::unknown(
                "the step has no `confirm`, so only the server's operator can tell whether the request was carried out",
            )),
        }
    }

    async fn plan(&self, cx: &StepCx, input: &HttpRequestInput) -> PlanResult<HttpAnswer> {
        let planned = planned(&self.client, &input.request, "once");
        Ok(match self.check(input, cx) {
            Err(why) if planned.issues().is_empty() => planned.issue(format!("`confirm`: {why}")),
            Ok(()) | Err(_) => planned,
        })
    }

    fn cost(&self, _: &HttpRequestInput) -> Cost {
        Cost::of(HTTP_REQUESTS, 1)
    }
}

impl HttpRequest {
    async fn ask(&self, cx: &AmbiguousCx, confirm: &Confirm) -> ReconcileResult<HttpAnswer> {
        let invalid = |why: String| Stop::fail(Code::CONFIG_INVALID, why);
        let conditions = Conditions::read(confirm).map_err(|error| invalid(error.to_string()))?;
        let checked = check_confirm(self.client.policy(), confirm, cx.effect_key());
        let checked = checked.map_err(|why| invalid(why.to_string()))?;
        let outgoing = checked.ready(&self.client, cx.effect_key()).await?;
        let reply = exchange(&self.client, &outgoing).await;
        let reply = reply.map_err(|lost| Stop::retry(HTTP_UNREACHABLE, said(&lost, &outgoing)))?;
        let answer = HttpAnswer::of(&reply, &outgoing.redactor);
        Ok(match conditions.judge(&answer) {
            Word::Succeeded => Reconciled::Succeeded(answer),
            Word::Failed => Reconciled::failed(HTTP_REFUSED, described(&reply, &outgoing.redactor)),
            Word::NotFound => Reconciled::NotFound,
            Word::Unknown(why) => Reconciled::unknown(outgoing.redactor.text(&why)),
        })
    }
}

/// Nothing was sent.
fn unready(error: Unready) -> AmbiguousStop {
    match error {
        Unready::NoSecret(_) | Unready::OddSecret(_) => {
            AmbiguousStop::refused(SECRET_MISSING, error.to_string())
        }
        Unready::Secrets(error) => {
            AmbiguousStop::nothing_happened_retry(SECRET_UNAVAILABLE, error.to_string())
        }
    }
}

fn stopped(lost: Lost, outgoing: &Outgoing) -> AmbiguousStop {
    let why = said(&lost, outgoing);
    match lost {
        Lost::Forbidden(_) => AmbiguousStop::refused(HTTP_ADDRESS_REFUSED, why),
        Lost::Astray(_) => AmbiguousStop::refused(HTTP_ASTRAY, why),
        Lost::Unreachable(_) => AmbiguousStop::nothing_happened_retry(HTTP_UNREACHABLE, why),
        Lost::Unanswered { status, .. } => {
            AmbiguousStop::may_have_happened(why).evidence(json!({ "status": status }))
        }
    }
}

pub(super) fn said(lost: &Lost, outgoing: &Outgoing) -> String {
    let text = match lost {
        Lost::Forbidden(why) | Lost::Astray(why) => why.clone(),
        Lost::Unreachable(why) => format!("the server cannot be reached: {why}"),
        Lost::Unanswered { what, status: None } => format!("the request was sent: {what}"),
        Lost::Unanswered { what, status: Some(status) } => {
            format!("the request was sent, and the server answered {status}, but {what}")
        }
    };
    outgoing.redactor.text(&text)
}

fn verdict(reply: &Reply, outgoing: &Outgoing, meaning: Meaning) -> AmbiguousResult<HttpAnswer> {
    let redactor = &outgoing.redactor;
    match meaning {
        Meaning::Success => Ok(HttpAnswer::of(reply, redactor)),
        Meaning::Refused => Err(AmbiguousStop::refused(HTTP_REFUSED, described(reply, redactor))),
        Meaning::Retry => {
            let stop = AmbiguousStop::nothing_happened_retry(HTTP_BUSY, described(reply, redactor));
            Err(match retry_after(&reply.headers) {
                Some(span) => stop.retry_after(span),
                None => stop,
            })
        }
        Meaning::Unclear => {
            let stop = AmbiguousStop::may_have_happened(described(reply, redactor));
            Err(stop.evidence(evidence(reply, redactor)))
        }
    }
}

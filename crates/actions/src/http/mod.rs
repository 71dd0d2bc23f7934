//! Calls to other people's servers.
//!
//! [`HttpRequest`] is ambiguous: it is sent once, and what became of a request without an answer is asked for by its
//! `confirm`, or by a person. [`HttpCall`] is idempotent: for servers that honour an idempotency key, so it may be sent
//! again. Both send the step's effect key as `Idempotency-Key`, and both connect only to addresses that were checked.

mod address;
pub(crate) mod answer;
mod body;
mod call;
pub(crate) mod client;
mod confirm;
mod connect;
mod input;
mod judge;
mod named;
mod policy;
pub(crate) mod prepare;
mod request;
mod status;
mod written;

pub use answer::{ANSWER_HEADERS_MAX_BYTES, Encoding, HttpAnswer};
pub use call::HttpCall;
pub use client::{
    HttpClient, HttpClientBuilder, HttpSetupError, REDIRECTS_MAX, RESPONSE_MAX_BYTES,
};
pub use connect::{Resolve, SystemResolver};
pub use input::{
    Argument, Confirm, HttpInput, HttpRequestInput, Method, SecretRef, StatusRule, Statuses,
    TIMEOUT_DEFAULT, TIMEOUT_MAX, Text,
};
pub(crate) use judge::judge;
pub use named::secrets_named;
pub use policy::URL_MAX_CHARS;
pub use prepare::{HEADERS_MAX, REQUEST_MAX_BYTES};
pub use request::HttpRequest;

use surefoot_kernel_core::Code;
use surefoot_language::{Access, ActionResult, Planned, Stop};

use policy::Forbidden;
use prepare::{Checked, check};

/// No connection to the server. Nothing was sent.
pub const HTTP_UNREACHABLE: &str = "HTTP_UNREACHABLE";
/// The address behind the host is not allowed. Nothing was sent.
pub const HTTP_ADDRESS_REFUSED: &str = "HTTP_ADDRESS_REFUSED";
/// The server sent the request elsewhere, where it may not or cannot go.
pub const HTTP_ASTRAY: &str = "HTTP_ASTRAY";
/// The server said no.
pub const HTTP_REFUSED: &str = "HTTP_REFUSED";
/// The server said: not now.
pub const HTTP_BUSY: &str = "HTTP_BUSY";
/// It was sent, and no answer came that could be understood.
pub const HTTP_UNANSWERED: &str = "HTTP_UNANSWERED";
/// There is no such secret, or it cannot be sent.
pub const SECRET_MISSING: &str = "SECRET_MISSING";
/// Secrets cannot be read now.
pub const SECRET_UNAVAILABLE: &str = "SECRET_UNAVAILABLE";
/// The dimension of the effect budget to which each request charges 1.
pub const HTTP_REQUESTS: &str = "httpRequests";

/// What can be said before anything is sent: a config that makes no sense fails, a place that is not allowed is
/// forbidden.
fn access(checked: Result<(), Forbidden>) -> ActionResult<Access> {
    match checked {
        Ok(()) => Ok(Access::Allowed),
        Err(Forbidden::NotAllowed(why)) => Ok(Access::denied(why)),
        Err(Forbidden::Malformed(why)) => Err(Stop::fail(Code::CONFIG_INVALID, why)),
    }
}

fn planned<T>(client: &HttpClient, input: &HttpInput, how: &str) -> Planned<T> {
    match check(client.policy(), input) {
        Ok(checked) => Planned::new(format!("{}, {how}", Checked::summary(&checked))),
        Err(why) => Planned::new(format!("{} {}", input.method.name(), input.url))
            .issue(format!("nothing would be sent: {why}")),
    }
}

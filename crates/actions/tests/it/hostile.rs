//! Servers that misbehave: the right verdict for each, in bounded time and memory, and nothing is sent twice.

use serde_json::{Value, json};
use surefoot_actions::http::{HttpCall, HttpClient, HttpInput, HttpRequest, HttpRequestInput};
use surefoot_kernel_core::RunId;
use surefoot_language::{
    Access, Ambiguous, AmbiguousCx, AmbiguousStop, AmbiguousStopParts, Classifiers, Idempotent,
    IdempotentCx, Reconciled, StepCx, StepData, Stop, StopParts,
};

use crate::server::{CANARY, CERTIFICATE, Server, builder, client};

fn step() -> StepCx {
    StepCx::new(StepData::detached(RunId::from_bytes([1; 16]), "steps.0"))
}

/// What `httpRequest` says of the effect.
#[derive(Debug, PartialEq)]
enum Verdict {
    Done(Value),
    Refused(String),
    NothingHappened(String),
    MayHaveHappened(Option<Value>),
}

async fn request(client: &HttpClient, input: Value) -> (Verdict, String) {
    let input: HttpRequestInput = serde_json::from_value(input).unwrap();
    let answer = HttpRequest::new(client.clone()).run(&AmbiguousCx::unfenced(step()), input).await;
    match answer {
        Ok(answer) => (Verdict::Done(serde_json::to_value(answer).unwrap()), String::new()),
        Err(stop) => verdict_of(stop),
    }
}

fn verdict_of(stop: AmbiguousStop) -> (Verdict, String) {
    match stop.into_parts(&Classifiers::default()) {
        AmbiguousStopParts::Refused { code, message, .. } => {
            (Verdict::Refused(code.to_string()), message)
        }
        AmbiguousStopParts::NothingHappened { code, message, .. } => {
            (Verdict::NothingHappened(code.to_string()), message)
        }
        AmbiguousStopParts::MayHaveHappened { message, evidence, .. } => {
            (Verdict::MayHaveHappened(evidence), message)
        }
        other @ (AmbiguousStopParts::NothingHappenedWaiting(_) | AmbiguousStopParts::Halted(_)) => {
            panic!("{other:?}")
        }
    }
}

/// What `httpCall` says: code, whether it is tried again, message, and after how many microseconds at least.
async fn call(
    client: &HttpClient,
    input: Value,
) -> Result<Value, (String, bool, String, Option<i64>)> {
    let input: HttpInput = serde_json::from_value(input).unwrap();
    let answer = HttpCall::new(client.clone()).run(&IdempotentCx::unfenced(step()), input).await;
    match answer.map_err(|stop| stop.into_parts(&Classifiers::default())) {
        Ok(answer) => Ok(serde_json::to_value(answer).unwrap()),
        Err(StopParts::Failed { code, message, retryable, retry_after, .. }) => {
            Err((code.to_string(), retryable, message, retry_after.map(|it| it.get())))
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn post(url: String) -> Value {
    json!({ "method": "POST", "url": url, "json": { "cents": 100 }, "timeout": "1s" })
}

#[tokio::test]
async fn a_request_is_sent_as_it_was_written() {
    let server = Server::start().await;
    let input = json!({
        "method": "PUT",
        "url": server.url("/echo?a=1"),
        "headers": { "Authorization": { "secret": "KEY", "prefix": "Bearer " }, "X-Plain": "p" },
        "query": { "b": "x y", "c": 7, "d": true, "e": { "secret": "KEY" } },
        "json": { "n": 1.5 },
    });
    let (Verdict::Done(answer), _) = request(&client(), input).await else { panic!() };
    let [hit] = &server.hits()[..] else { panic!("it was sent once") };
    assert_eq!(hit.method, "PUT");
    assert_eq!(hit.body, r#"{"n":1.5}"#);
    assert!(hit.target.starts_with("/echo?a=1&b=x+y&c=7&d=true&e=canary-4711-"), "{}", hit.target);
    let header = |name: &str| hit.headers.get(name).map(String::as_str);
    assert_eq!(header("idempotency-key"), Some(step_key().as_str()));
    assert_eq!(header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("x-plain"), Some("p"));
    // The server repeats the secret in three forms, and none is kept.
    let kept = answer.to_string();
    assert!(!kept.contains("canary"), "{kept}");
    assert!(kept.contains("Bearer ***"), "{kept}");
    assert_eq!((&answer["status"], &answer["encoding"]), (&json!(200), &json!("json")));
}

fn step_key() -> String {
    surefoot_kernel_core::EffectKey::of(RunId::from_bytes([1; 16]), &"steps.0".into()).to_string()
}

#[tokio::test]
async fn before_anything_is_sent_nothing_happened() {
    let server = Server::start().await;
    let address = server.address;
    drop(server);
    let gone = format!("http://{address}/pay");
    for url in [gone, "http://nowhere.test/pay".to_owned()] {
        let (verdict, why) = request(&client(), post(url.clone())).await;
        assert_eq!(verdict, Verdict::NothingHappened("HTTP_UNREACHABLE".to_owned()), "{why}");
        let (code, again, ..) = call(&client(), post(url)).await.unwrap_err();
        assert_eq!((code.as_str(), again), ("HTTP_UNREACHABLE", true));
    }
}

#[tokio::test]
async fn after_it_was_sent_nobody_knows() {
    let server = Server::start().await;
    for (path, status) in [
        ("/silent", None),
        ("/answers-then-hangs", Some(200)),
        ("/resets", None),
        ("/resets-after-part", Some(200)),
        ("/closes", None),
        ("/drips", Some(200)),
        ("/drips-head", None),
        ("/huge", Some(200)),
        ("/huge-head", None),
        ("/short", Some(200)),
        ("/lies", None),
        ("/garbage", None),
    ] {
        let before = server.hits().len();
        let (verdict, why) = request(&client(), post(server.url(path))).await;
        // A reset may overtake the part of the answer that came before it.
        let known = [Some(json!({ "status": status })), Some(json!({ "status": null }))];
        let Verdict::MayHaveHappened(evidence) = verdict else { panic!("{path}: {verdict:?}") };
        assert!(known.contains(&evidence), "{path}: {evidence:?}");
        assert!(why.starts_with("the request was sent"), "{path}: {why}");
        assert_eq!(server.hits().len(), before + 1, "{path}: it was sent once");
        let (code, again, ..) = call(&client(), post(server.url(path))).await.unwrap_err();
        assert_eq!((code.as_str(), again), ("HTTP_UNANSWERED", true), "{path}");
    }
    // Ten gigabytes were offered, twice. What the sockets hold on the way is all that was taken beyond the limit.
    assert!(server.sent_bytes() < 200 << 20, "{}", server.sent_bytes());
}

/// The whole answer came, or the reset overtook it: either way it is not sent again.
#[tokio::test]
async fn an_answer_before_a_reset_counts_if_it_came() {
    let server = Server::start().await;
    let (verdict, why) = request(&client(), post(server.url("/resets-after-body"))).await;
    match verdict {
        Verdict::Done(answer) => assert_eq!(answer["body"], "said"),
        Verdict::MayHaveHappened(_) => assert!(why.starts_with("the request was sent"), "{why}"),
        other @ (Verdict::Refused(_) | Verdict::NothingHappened(_)) => panic!("{other:?}"),
    }
    assert_eq!(server.hits().len(), 1);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_all_the_same() {
    let server = Server::start().await;
    let (Verdict::Done(answer), _) = request(&client(), post(server.url("/no-text"))).await else {
        panic!()
    };
    assert_eq!((&answer["body"], &answer["encoding"]), (&json!("//4="), &json!("base64")));
}

#[tokio::test]
async fn a_status_says_what_became_of_it() {
    let server = Server::start().await;
    let said = Some(json!({ "status": 503, "body": "said" }));
    for (status, verdict) in [
        (422, Verdict::Refused("HTTP_REFUSED".to_owned())),
        (307, Verdict::Refused("HTTP_REFUSED".to_owned())),
        (429, Verdict::NothingHappened("HTTP_BUSY".to_owned())),
        (503, Verdict::MayHaveHappened(said)),
    ] {
        let (found, why) = request(&client(), post(server.url(&format!("/status/{status}")))).await;
        assert_eq!(found, verdict);
        assert_eq!(why, format!("the server answered {status}: said"));
    }
    let mut written = post(server.url("/status/503"));
    written["statuses"] = json!({ "retry": ["5xx"] });
    assert_eq!(
        request(&client(), written).await.0,
        Verdict::NothingHappened("HTTP_BUSY".to_owned())
    );
    let (code, again, _, after) =
        call(&client(), post(server.url("/status/503"))).await.unwrap_err();
    assert_eq!((code.as_str(), again, after), ("HTTP_BUSY", true, Some(7_000_000)));
    let (code, again, ..) = call(&client(), post(server.url("/status/422"))).await.unwrap_err();
    assert_eq!((code.as_str(), again), ("HTTP_REFUSED", false));
}

#[tokio::test]
async fn an_address_inside_is_refused_however_one_gets_there() {
    let server = Server::start().await;
    let get = |url: String| json!({ "url": url, "timeout": "5s" });
    for (url, code) in [
        ("http://inside.test/".to_owned(), "HTTP_ADDRESS_REFUSED"),
        (server.url("/to-private"), "HTTP_ASTRAY"),
        (server.url("/to-metadata"), "HTTP_ASTRAY"),
        (server.url("/loop"), "HTTP_ASTRAY"),
    ] {
        let (verdict, why) = request(&client(), get(url.clone())).await;
        assert_eq!(verdict, Verdict::Refused(code.to_owned()), "{url}: {why}");
        let (found, again, ..) = call(&client(), get(url)).await.unwrap_err();
        assert_eq!((found.as_str(), again), (code, false));
    }
    // As it is written, it is refused before the step is begun.
    let hosts = builder().allow_host("api.test").build().unwrap();
    for (url, why) in [
        ("http://10.0.0.7/", "does not allow the host"),
        ("http://elsewhere.test/", "does not allow the host"),
    ] {
        let input = serde_json::from_value(get(url.to_owned())).unwrap();
        let access = HttpCall::new(hosts.clone()).authorize(&step(), &input).await.unwrap();
        let Access::Denied { why: found } = access else { panic!("{url}") };
        assert!(found.contains(why), "{found}");
    }
}

#[tokio::test]
async fn a_redirect_takes_nothing_along_to_another_server() {
    let server = Server::start().await;
    let get = |path: &str| {
        json!({
            "url": server.named("http", "api.test", path),
            "headers": { "authorization": { "secret": "KEY" }, "x-plain": "p" },
        })
    };
    let answer = call(&client(), get("/to-echo")).await.unwrap();
    assert_eq!(answer["body"]["headers"]["x-plain"], "p");
    let answer = call(&client(), get("/to-other")).await.unwrap();
    let headers = answer["body"]["headers"].as_object().unwrap();
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["host"], "{headers:?}");
    // What changes something is not sent on by itself.
    let (verdict, _) = request(&client(), post(server.url("/to-echo"))).await;
    assert!(matches!(verdict, Verdict::MayHaveHappened(_)), "{verdict:?}");
}

#[tokio::test]
async fn without_a_certificate_that_is_trusted_nothing_is_sent() {
    let server = Server::with_tls().await;
    let url = server.named("https", "api.test", "/pay");
    let (verdict, why) = request(&client(), post(url.clone())).await;
    assert_eq!(verdict, Verdict::NothingHappened("HTTP_UNREACHABLE".to_owned()));
    assert!(why.contains("TLS"), "{why}");
    assert!(server.hits().is_empty());

    let trusting = builder().trust(CERTIFICATE).build().unwrap();
    let (verdict, why) = request(&trusting, post(url)).await;
    assert!(matches!(verdict, Verdict::Done(_)), "{why}");
    assert_eq!(server.paid().len(), 1);

    // Its certificate is for another name.
    let (verdict, _) = request(&trusting, post(server.named("https", "other.test", "/pay"))).await;
    assert_eq!(verdict, Verdict::NothingHappened("HTTP_UNREACHABLE".to_owned()));
    // It does not speak TLS at all.
    let plain = Server::start().await;
    let (verdict, _) = request(&trusting, post(plain.named("https", "api.test", "/pay"))).await;
    assert_eq!(verdict, Verdict::NothingHappened("HTTP_UNREACHABLE".to_owned()));
    assert_eq!(server.paid().len(), 1);
}

#[tokio::test]
async fn what_became_of_it_is_asked_for() {
    let server = Server::start().await;
    let mut input = post(server.url("/pay-and-hang"));
    input["confirm"] = json!({
        "url": server.url("/payments/{effectKey}"),
        "succeeded": "status == 200 && body.state == 'paid'",
    });
    let asked = |input: &Value| {
        let input: HttpRequestInput = serde_json::from_value(input.clone()).unwrap();
        async move {
            let cx = AmbiguousCx::unfenced(step());
            HttpRequest::new(client()).reconcile(&cx, input).await
        }
    };
    assert_eq!(asked(&input).await.unwrap(), Reconciled::NotFound);
    let (verdict, _) = request(&client(), input.clone()).await;
    assert!(matches!(verdict, Verdict::MayHaveHappened(_)));
    let Reconciled::Succeeded(answer) = asked(&input).await.unwrap() else { panic!() };
    assert_eq!(answer.body["state"], "paid");
    assert_eq!(server.paid(), [step_key()], "asking is no second request");

    input["confirm"]["succeeded"] = json!("body.state == 'settled'");
    assert!(matches!(asked(&input).await.unwrap(), Reconciled::Unknown { .. }));
    input["confirm"]["failed"] = json!("body.state == 'paid'");
    assert!(matches!(asked(&input).await.unwrap(), Reconciled::Failed { .. }));
    input["confirm"]["url"] = json!("http://nowhere.test/");
    assert!(asked(&input).await.unwrap_err().is_retryable());
    input.as_object_mut().unwrap().remove("confirm");
    assert!(matches!(asked(&input).await.unwrap(), Reconciled::Unknown { .. }));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_the_step_begins() {
    let server = Server::start().await;
    for (change, why) in [
        (json!({ "text": "x" }), "not both"),
        (json!({ "method": "GET" }), "has no body"),
        (json!({ "timeout": "61s" }), "from `1s` to `60s`"),
        (json!({ "headers": { "Host": "x" } }), "cannot be set"),
        (json!({ "headers": { "Idempotency-Key": "x" } }), "cannot be set"),
        (json!({ "headers": { "x\ny": "x" } }), "no name of a header"),
        (json!({ "headers": { "x": "a\r\nb: c" } }), "cannot be sent"),
        (json!({ "statuses": { "retry": [500], "refused": [500] } }), "twice"),
        (
            json!({ "confirm": { "url": "https://a.test", "succeeded": "status =" } }),
            "no expression",
        ),
    ] {
        let mut input = post(server.url("/pay"));
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let input: HttpRequestInput = serde_json::from_value(input).unwrap();
        let action = HttpRequest::new(client());
        let stop: Stop = action.authorize(&step(), &input).await.unwrap_err();
        assert_eq!(stop.code().as_str(), "CONFIG_INVALID", "{change}");
        assert!(stop.message().contains(why), "{change}: {}", stop.message());
        let planned = action.plan(&step(), &input).await.unwrap();
        assert!(!planned.issues().is_empty(), "{change}");
    }
    let mut input = post(server.url("/pay"));
    input["headers"] = json!({ "authorization": { "secret": "NOT_THERE" } });
    let (verdict, why) = request(&client(), input).await;
    assert_eq!(verdict, Verdict::Refused("SECRET_MISSING".to_owned()));
    assert!(why.contains("NOT_THERE"), "{why}");
    assert!(server.hits().is_empty());
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_sent_and_sends_nothing() {
    let server = Server::start().await;
    let mut input = post(server.url("/pay"));
    input["query"] = json!({ "token": { "secret": "KEY" } });
    let input: HttpRequestInput = serde_json::from_value(input).unwrap();
    let action = HttpRequest::new(client());
    let planned = action.plan(&step(), &input).await.unwrap();
    let url = server.url("/pay");
    assert_eq!(
        planned.summary(),
        format!("POST {url}?token=*** with 13 bytes of application/json, once")
    );
    assert_eq!(action.cost(&input).amounts().collect::<Vec<_>>(), [("httpRequests", 1.0)]);
    assert!(server.hits().is_empty());
}

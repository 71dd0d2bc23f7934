//! Any server that speaks the chat completions of OpenAI's HTTP API: streamed, so that a break in the line is noticed, and
//! broken off as soon as nobody wants the answer any more.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use surefoot_kernel_core::{BoxFuture, EffectKey};
use tokio::time::{Instant, timeout};
use url::Url;

use super::output::AI_ANSWER_MAX_BYTES;
use super::provider::{AiError, AiProvider};
use super::request::{AiAnswer, AiRequest, AiRole, AiUsage};
use super::sse::Lines;
use crate::http::answer::retry_after;
use crate::http::client::{Lost, open, told};
use crate::http::prepare::Outgoing;
use crate::http::{HttpClient, Method};
use crate::secret::Redactor;

/// How long a model may think before it says anything. The worker that asks gives up a call at the same time by default.
const THINKING_MAX: Duration = Duration::from_secs(600);
/// The longest silence inside an answer, once it has begun.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes of an answer that is no stream: every character of it may be escaped.
const WHOLE_MAX_BYTES: usize = 8 * AI_ANSWER_MAX_BYTES;
/// Bytes of a whole stream: its frame is many times as long as the words in it.
const STREAM_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an answer that is no success.
const REFUSAL_MAX_BYTES: usize = 64 * 1024;
/// Characters of it that an error repeats.
const SHOWN_CHARS: usize = 500;

/// A provider behind an HTTP API like OpenAI's.
#[derive(Debug, Clone)]
pub struct OpenAi {
    client: HttpClient,
    base: String,
    key: Option<String>,
}

impl OpenAi {
    /// At a base URL, such as `https://api.openai.com/v1`. The client says whether it may be asked.
    pub fn new(client: HttpClient, base: impl Into<String>) -> Self {
        Self { client, base: base.into().trim_end_matches('/').to_owned(), key: None }
    }

    /// With the key that this secret holds. It is read for each call.
    #[must_use]
    pub fn key(mut self, secret: impl Into<String>) -> Self {
        self.key = Some(secret.into());
        self
    }

    /// Whether the client may ask there at all, as far as that can be told without asking.
    ///
    /// # Errors
    /// [`AiError::Refused`]: it is no URL that could be asked, or the client does not allow it.
    pub fn check(&self) -> Result<(), AiError> {
        self.place().map(drop)
    }

    fn place(&self) -> Result<Url, AiError> {
        let url = self.client.policy().check(&format!("{}/chat/completions", self.base));
        url.map_err(|why| AiError::refused(why.to_string()))
    }

    async fn outgoing(&self, request: &AiRequest, key: &EffectKey) -> Result<Outgoing, AiError> {
        let mut redactor = Redactor::default();
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("surefoot"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        if let Ok(key) = HeaderValue::from_str(key.as_str()) {
            headers.insert("idempotency-key", key);
        }
        if let Some(name) = &self.key {
            let found = self.client.secrets().secret(name).await;
            let found = found.map_err(|error| AiError::transport(error.to_string()))?;
            let found =
                found.ok_or_else(|| AiError::refused(format!("there is no secret `{name}`")))?;
            redactor.hide(&found);
            let bearer = HeaderValue::from_str(&format!("Bearer {}", found.expose()));
            let odd = |_| AiError::refused(format!("the secret `{name}` cannot stand in a header"));
            let mut bearer = bearer.map_err(odd)?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let url = self.place()?;
        let body = Bytes::from(body_of(request).to_string());
        let (method, timeout) = (Method::Post, THINKING_MAX);
        Ok(Outgoing { method, url, headers, body, follows: false, timeout, redactor })
    }

    async fn answer(&self, request: &AiRequest, key: &EffectKey) -> Result<AiAnswer, AiError> {
        let outgoing = self.outgoing(request, key).await?;
        let deadline = Instant::now() + outgoing.timeout;
        let to = (&outgoing.url, &outgoing.headers);
        let clean = |text: &str| outgoing.redactor.text(text);
        let (answer, _moving) = match open(&self.client, &outgoing, to, deadline).await {
            Ok(opened) => opened,
            Err(Lost::Forbidden(why) | Lost::Astray(why)) => {
                return Err(AiError::refused(clean(&why)));
            }
            Err(Lost::Unreachable(what) | Lost::Unanswered { what, .. }) => {
                return Err(AiError::transport(clean(&what)));
            }
        };
        if !answer.status().is_success() {
            return Err(refusal(answer, &outgoing.redactor).await);
        }
        let heard =
            if is_stream(answer.headers()) { stream(answer).await } else { whole(answer).await };
        let heard = heard.map_err(|error| error.map_message(clean))?;
        if heard.is_cut {
            return Err(AiError::unusable(
                "the answer was cut off at its limit of tokens: allow more with `maxTokens`",
            ));
        }
        if !heard.has_words {
            return Err(AiError::transport("the provider's answer has no words in it"));
        }
        let model = heard.model.map_or_else(|| request.model.clone(), |model| clean(&model));
        Ok(AiAnswer { text: clean(&heard.text), model, usage: heard.usage })
    }
}

impl AiProvider for OpenAi {
    fn ask<'a>(
        &'a self,
        request: &'a AiRequest,
        key: &'a EffectKey,
    ) -> BoxFuture<'a, Result<AiAnswer, AiError>> {
        Box::pin(self.answer(request, key))
    }
}

fn body_of(request: &AiRequest) -> Value {
    let messages = request.messages.iter().map(|message| {
        let role = match message.role {
            AiRole::System => "system",
            AiRole::User => "user",
        };
        json!({ "role": role, "content": message.content })
    });
    let mut body = json!({
        "model": request.model,
        "messages": messages.collect::<Vec<_>>(),
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let Some(members) = body.as_object_mut() {
        if let Some(schema) = &request.schema {
            let format = json!({ "name": "answer", "schema": schema });
            let format = json!({ "type": "json_schema", "json_schema": format });
            members.insert("response_format".to_owned(), format);
        }
        if let Some(tokens) = request.max_tokens {
            members.insert("max_tokens".to_owned(), json!(tokens));
        }
        if let Some(temperature) = request.temperature {
            members.insert("temperature".to_owned(), json!(temperature));
        }
    }
    body
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/event-stream")
}

/// A status that is no success: who is busy may answer later.
async fn refusal(answer: Response<Incoming>, redactor: &Redactor) -> AiError {
    let status = answer.status().as_u16();
    let retry_after = retry_after(answer.headers());
    let body = Limited::new(answer.into_body(), REFUSAL_MAX_BYTES).collect();
    let body = timeout(SILENCE_MAX, body).await.ok().and_then(Result::ok);
    let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
    let text: String = redactor.text(&text.unwrap_or_default()).chars().take(SHOWN_CHARS).collect();
    let message = format!("the provider answered {status}: {text}");
    match status {
        408 | 409 | 425 | 429 | 500..=599 => AiError::Transport { message, retry_after },
        _ => AiError::Refused { message },
    }
}

/// What has been heard so far.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    /// Whether there was any, be it empty.
    has_words: bool,
    model: Option<String>,
    usage: AiUsage,
    /// Whether it ended at a limit, in the middle of what the model had to say.
    is_cut: bool,
    is_over: bool,
}

/// Servers leave out what they have nothing to say of, or write null.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    choices: Vec<Choice>,
    model: Option<String>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// Of a stream.
    #[serde(default, deserialize_with = "or_default")]
    delta: Words,
    /// Of an answer as a whole.
    #[serde(default, deserialize_with = "or_default")]
    message: Words,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Words {
    content: Option<String>,
    /// In place of the content: why the model says no.
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Heard {
    fn hear(&mut self, data: &[u8]) -> Result<(), AiError> {
        if data == b"[DONE]" {
            self.is_over = true;
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_slice(data).map_err(|error| {
            AiError::transport(format!("the provider is not understood: {error}"))
        })?;
        if let Some(error) = chunk.error {
            return Err(AiError::transport(format!("the provider broke off: {error}")));
        }
        self.model = self.model.take().or(chunk.model);
        if let Some(Usage { prompt_tokens, completion_tokens }) = chunk.usage {
            self.usage = AiUsage { input_tokens: prompt_tokens, output_tokens: completion_tokens };
        }
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        if let Some(why) = choice.delta.refusal.or(choice.message.refusal) {
            return Err(AiError::refused(format!("the model refused: {why}")));
        }
        if let Some(words) = choice.delta.content.or(choice.message.content) {
            self.has_words = true;
            self.text.push_str(&words);
        }
        match choice.finish_reason.as_deref() {
            Some("content_filter") => {
                return Err(AiError::refused("the provider's filter withheld the answer"));
            }
            // What was used is told after it.
            Some("length") => self.is_cut = true,
            Some(_) | None => {}
        }
        if self.text.len() > AI_ANSWER_MAX_BYTES {
            return Err(too_long());
        }
        Ok(())
    }
}

fn too_long() -> AiError {
    AiError::unusable(format!("the answer has more than {AI_ANSWER_MAX_BYTES} bytes"))
}

/// An answer of a server that does not stream: it may come as a whole once the model has thought it all.
async fn whole(answer: Response<Incoming>) -> Result<Heard, AiError> {
    let body = Limited::new(answer.into_body(), WHOLE_MAX_BYTES).collect();
    let body = timeout(THINKING_MAX, body).await;
    let body = body.map_err(|_| AiError::transport("the provider fell silent"))?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => too_long(),
        None => AiError::transport(told(&*error)),
    })?;
    let mut heard = Heard::default();
    heard.hear(&body.to_bytes())?;
    Ok(heard)
}

/// Server-sent events, until the one that says that it is over.
async fn stream(answer: Response<Incoming>) -> Result<Heard, AiError> {
    let mut body = answer.into_body();
    let (mut heard, mut lines, mut bytes) = (Heard::default(), Lines::default(), 0);
    while !heard.is_over {
        let patience = if heard.has_words { SILENCE_MAX } else { THINKING_MAX };
        let frame = timeout(patience, body.frame()).await;
        let frame = frame.map_err(|_| AiError::transport("the provider fell silent"))?;
        let frame = frame.ok_or_else(|| AiError::transport("the answer broke off"))?;
        let frame = frame.map_err(|error| AiError::transport(told(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len();
        if bytes > STREAM_MAX_BYTES {
            return Err(AiError::unusable(format!(
                "the stream has more than {STREAM_MAX_BYTES} bytes"
            )));
        }
        for event in lines.take(&data)? {
            heard.hear(&event)?;
        }
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(parts: &[&str]) -> Result<Heard, AiError> {
        let (mut heard, mut lines) = (Heard::default(), Lines::default());
        for part in parts {
            for event in lines.take(part.as_bytes())? {
                heard.hear(&event)?;
            }
        }
        Ok(heard)
    }

    #[test]
    fn events_are_heard_however_the_bytes_are_cut() {
        let heard = hear(&[
            ": hello\r\n\r\ndata: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"content\":\"Gr",
            "ü\"}}]}\r\n\r\nda",
            "ta: {\"choices\":[{\"delta\":{\"content\":\"ße\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n",
        ]);
        let heard = heard.unwrap();
        assert_eq!((heard.text.as_str(), heard.model.as_deref()), ("Grüße", Some("m-1")));
        assert_eq!(heard.usage, AiUsage { input_tokens: 5, output_tokens: 2 });
        assert!(heard.is_over);
    }

    #[test]
    fn what_breaks_off_may_go_better_and_what_is_withheld_does_not() {
        let error = hear(&["data: {\"error\":{\"message\":\"overloaded\"}}\n"]).unwrap_err();
        assert!(matches!(error, AiError::Transport { .. }), "{error}");
        let filtered =
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n";
        assert!(matches!(hear(&[filtered]).unwrap_err(), AiError::Refused { .. }));
        assert!(matches!(hear(&["data: nonsense\n"]).unwrap_err(), AiError::Transport { .. }));
        let endless = "x".repeat(STREAM_MAX_BYTES / 16);
        assert!(matches!(hear(&[&endless]).unwrap_err(), AiError::Unusable { .. }));
        let long = "x".repeat(AI_ANSWER_MAX_BYTES / 2 + 1);
        let long = json!({ "choices": [{ "delta": { "content": long } }] });
        let long = format!("data: {long}\n");
        assert_eq!(hear(&[&long, &long]).unwrap_err(), too_long());
    }

    #[test]
    fn an_answer_that_was_cut_off_is_told_with_what_was_used() {
        let heard = hear(&[
            "data: {\"choices\":[{\"delta\":{\"content\":\"Dear\"},\"finish_reason\":\"length\"}]}\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n",
        ]);
        let heard = heard.unwrap();
        assert!(heard.is_cut && heard.usage.output_tokens == 1);
        assert!(!hear(&["data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n"]).unwrap().is_cut);
    }

    #[test]
    fn what_is_null_is_left_out() {
        let heard = hear(&[
            "data: {\"choices\":null,\"usage\":null,\"model\":null,\"error\":null}\n",
            "data: {\"choices\":[{\"delta\":null,\"message\":{\"content\":\"hi\",\"refusal\":null},\"finish_reason\":null}]}\n",
            "data: {\"usage\":{\"prompt_tokens\":null,\"completion_tokens\":2}}\n",
        ]);
        let heard = heard.unwrap();
        assert_eq!((heard.text.as_str(), heard.usage.output_tokens), ("hi", 2));
    }

    #[test]
    fn a_stream_is_told_by_its_type_in_any_case() {
        for (kind, is) in [
            ("text/event-stream", true),
            ("Text/Event-Stream; charset=utf-8", true),
            (" text/event-stream ;x", true),
            ("text/event-streams", false),
            ("application/json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
            assert_eq!(is_stream(&headers), is, "{kind}");
        }
    }

    #[test]
    fn an_answer_without_words_is_none_and_a_refusal_is_no_answer() {
        for text in [
            "data: {}\n",
            "data: {\"choices\":[]}\n",
            "data: {\"detail\":\"not found\"}\n",
            "data: {\"choices\":[{\"delta\":{}}]}\n",
        ] {
            assert!(!hear(&[text]).unwrap().has_words, "{text}");
        }
        assert!(
            hear(&["data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n"]).unwrap().has_words
        );
        let refused =
            "data: {\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"I cannot\"}}]}\n";
        let error = hear(&[refused]).unwrap_err();
        assert_eq!(error, AiError::refused("the model refused: I cannot"));
    }

    #[test]
    fn a_schema_is_asked_for_in_the_words_of_the_api() {
        let request = AiRequest {
            model: "m".to_owned(),
            messages: vec![super::super::AiMessage {
                role: AiRole::User,
                content: "hi".to_owned(),
            }],
            schema: Some(json!({ "type": "object" })),
            max_tokens: Some(9),
            temperature: None,
        };
        let body = body_of(&request);
        assert_eq!(body["response_format"]["json_schema"]["schema"], json!({ "type": "object" }));
        assert_eq!((&body["max_tokens"], body.get("temperature")), (&json!(9), None));
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "hi" }]));
    }
}

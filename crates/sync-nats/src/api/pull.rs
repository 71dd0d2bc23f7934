//! Taking messages from consumers.

use std::time::Duration;

use async_nats::{Message, StatusCode};
use futures_util::StreamExt as _;
use serde_json::json;
use surefoot_sync_core::SyncError;
use tokio::time::Instant;

use super::{Api, Headers};

const OPERATION: &str = "hand out messages";
/// How much longer than asked for an answer is waited for; then the connection is gone.
const SLACK: Duration = Duration::from_secs(2);

/// What is asked of each consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) batch: usize,
    /// `None` takes only what is there.
    pub(crate) expires: Option<Duration>,
}

/// A message in hand.
#[derive(Debug, Clone)]
pub(crate) struct Pulled {
    pub(crate) subject: String,
    pub(crate) headers: Headers,
    pub(crate) data: Vec<u8>,
    /// What it is settled by.
    pub(crate) reply: String,
    pub(crate) delivered: u64,
    pub(crate) seq: u64,
}

/// Asks consumers of one stream, and waits until each has answered in full: so no message comes to nobody.
pub(crate) async fn pull(
    api: &Api,
    stream: &str,
    consumers: &[&str],
    pull: Pull,
) -> Result<Vec<Pulled>, SyncError> {
    let unavailable = |source| SyncError::Unavailable { operation: OPERATION, source };
    let client = api.client();
    let inbox = client.new_inbox();
    // A subscription with a wildcard is compared with all subjects that the server remembers: one consumer needs none.
    let is_one = consumers.len() == 1;
    let heard = if is_one { inbox.clone() } else { format!("{inbox}.*") };
    let answers = client.subscribe(heard).await;
    let mut answers = answers.map_err(|error| unavailable(error.into()))?;
    let body = match pull.expires {
        Some(expires) => {
            let expires = u64::try_from(expires.as_nanos()).unwrap_or(u64::MAX);
            json!({ "batch": pull.batch, "expires": expires })
        }
        None => json!({ "batch": pull.batch, "no_wait": true }),
    };
    for (at, consumer) in consumers.iter().enumerate() {
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let reply = if is_one { inbox.clone() } else { format!("{inbox}.{at}") };
        let asked = client.publish_with_reply(subject, reply, body.to_string().into()).await;
        asked.map_err(|error| unavailable(error.into()))?;
    }
    let deadline = Instant::now() + pull.expires.unwrap_or_default() + SLACK;
    let mut open = vec![pull.batch; consumers.len()];
    let mut pulled = Vec::new();
    while open.iter().any(|left| *left > 0) {
        let Ok(Some(message)) = tokio::time::timeout_at(deadline, answers.next()).await else {
            break;
        };
        match message.status {
            Some(StatusCode::NO_RESPONDERS) => {
                if pulled.is_empty() {
                    return Err(unavailable(format!("nobody answers for {stream}").into()));
                }
                break;
            }
            // A request has ended: nothing more, or its time is over.
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(_) => {
                if let Some(left) = asked_by(&message, &mut open) {
                    *left = 0;
                }
            }
            None => {
                // The subject of a message is its own, so the request is known by what is left.
                if let Some(left) = consumer_of(&message, consumers, &mut open) {
                    *left = left.saturating_sub(1);
                }
                pulled.extend(read(message));
            }
        }
    }
    Ok(pulled)
}

fn asked_by<'a>(message: &Message, open: &'a mut [usize]) -> Option<&'a mut usize> {
    if let [only] = open {
        return Some(only);
    }
    let at: usize = message.subject.rsplit('.').next()?.parse().ok()?;
    open.get_mut(at)
}

fn consumer_of<'a>(
    message: &Message,
    consumers: &[&str],
    open: &'a mut [usize],
) -> Option<&'a mut usize> {
    let reply = Reply::parse(message.reply.as_deref()?)?;
    let at = consumers.iter().position(|consumer| *consumer == reply.consumer)?;
    open.get_mut(at)
}

fn read(message: Message) -> Option<Pulled> {
    let text = message.reply.as_ref()?.to_string();
    let reply = Reply::parse(&text)?;
    let (delivered, seq) = (reply.delivered, reply.seq);
    Some(Pulled {
        subject: message.subject.to_string(),
        headers: Headers::of(message.headers.as_ref()),
        data: message.payload.to_vec(),
        delivered,
        seq,
        reply: text,
    })
}

/// What a reply subject tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) delivered: u64,
    pub(crate) seq: u64,
}

impl<'a> Reply<'a> {
    /// `$JS.ACK.<stream>.<consumer>.<delivered>.<place>.…`, with domain and account before the stream where there are
    /// any.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let tokens: Vec<&str> = text.split('.').collect();
        let [consumer, delivered, seq] = match tokens.as_slice() {
            ["$JS", "ACK", _, consumer, delivered, seq, _, _, _] => [consumer, delivered, seq],
            ["$JS", "ACK", _, _, _, consumer, delivered, seq, _, _, _, ..] => {
                [consumer, delivered, seq]
            }
            _ => return None,
        };
        Some(Self { consumer, delivered: delivered.parse().ok()?, seq: seq.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_subject_tells_place_and_count() {
        let expected = Reply { consumer: "work", delivered: 2, seq: 41 };
        let short = "$JS.ACK.shop_JOB_mail.work.2.41.7.1700000000000000000.0";
        assert_eq!(Reply::parse(short), Some(expected));
        let expected = Reply { consumer: "p01", delivered: 1, seq: 9 };
        let long = "$JS.ACK.hub.A1B2.shop_QUEUE_a.p01.1.9.9.1700000000000000000.0.xyz";
        assert_eq!(Reply::parse(long), Some(expected));
        for none in ["", "$JS.ACK.a.b", "$JS.ACK.a.b.c.d.e.f.g", "x.y.a.b.1.2.3.4.5"] {
            assert_eq!(Reply::parse(none), None, "{none}");
        }
    }
}

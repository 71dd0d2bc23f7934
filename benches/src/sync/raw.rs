//! The bare operations: the same requests, by hand.

use std::time::Duration;

use async_nats::{Client, HeaderMap, Message};
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Failed;

/// What a message holds.
pub(crate) const BODY: &str = "a message of about a hundred bytes, as they are sent when only an id and a few words are needed";
/// Who pulls beside each other.
const PULLERS: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Raw {
    client: Client,
    name: String,
}

impl Raw {
    pub(crate) async fn connect(url: &str, namespace: &str) -> Result<Self, Failed> {
        let client = async_nats::connect(url).await?;
        Ok(Self { client, name: format!("raw-{namespace}") })
    }

    async fn ask(&self, subject: String, body: Value) -> Result<Value, Failed> {
        let answer = self.client.request(subject, body.to_string().into()).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        match answer.get("error") {
            Some(error) => Err(error.to_string().into()),
            None => Ok(answer),
        }
    }

    pub(crate) async fn declare(&self, at_once: usize) -> Result<(), Failed> {
        let name = &self.name;
        let work = json!({
            "name": name, "subjects": [format!("{name}.w.*")], "retention": "workqueue",
            "storage": "file", "duplicate_window": 120_000_000_000_u64,
        });
        self.ask(format!("$JS.API.STREAM.CREATE.{name}"), work).await?;
        let consumer = json!({
            "stream_name": name,
            "config": {
                "name": "work", "durable_name": "work", "ack_policy": "explicit",
                "ack_wait": 30_000_000_000_u64, "max_ack_pending": at_once.max(256),
            },
        });
        self.ask(format!("$JS.API.CONSUMER.CREATE.{name}.work"), consumer).await?;
        let locks = json!({
            "name": format!("{name}-locks"), "subjects": [format!("{name}.l.*")],
            "storage": "file", "max_msgs_per_subject": 1, "discard": "new", "allow_msg_ttl": true,
        });
        self.ask(format!("$JS.API.STREAM.CREATE.{name}-locks"), locks).await?;
        Ok(())
    }

    /// Removes the streams of a namespace, and these.
    pub(crate) async fn remove_all(&self, namespace: &str) -> Result<(), Failed> {
        let listed = self.ask("$JS.API.STREAM.NAMES".to_owned(), json!({})).await?;
        for name in listed["streams"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if name.starts_with(namespace) || name.starts_with(&self.name) {
                self.ask(format!("$JS.API.STREAM.DELETE.{name}"), json!({})).await?;
            }
        }
        Ok(())
    }

    async fn store(&self, subject: String, headers: HeaderMap) -> Result<u64, Failed> {
        let body = json!(BODY).to_string();
        let answer = self.client.request_with_headers(subject, headers, body.into()).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        answer["seq"].as_u64().ok_or_else(|| answer.to_string().into())
    }

    pub(crate) async fn publish(&self, count: usize, at_once: usize) -> Result<(), Failed> {
        let mut tasks = JoinSet::new();
        for task in 0..at_once {
            let raw = self.clone();
            tasks.spawn(async move {
                for number in (task..count).step_by(at_once) {
                    let mut headers = HeaderMap::new();
                    headers.insert("Nats-Msg-Id", number.to_string().as_str());
                    raw.store(format!("{}.w.{number}", raw.name), headers).await?;
                }
                Ok::<(), Failed>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Pulls in batches, and has each acknowledgement confirmed.
    pub(crate) async fn consume(&self, count: usize, at_once: usize) -> Result<(), Failed> {
        let mut tasks = JoinSet::new();
        for puller in 0..PULLERS {
            let (raw, share) =
                (self.clone(), count / PULLERS + usize::from(puller < count % PULLERS));
            tasks.spawn(async move { raw.pull(share, (at_once / PULLERS).max(1)).await });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    async fn pull(&self, count: usize, batch: usize) -> Result<(), Failed> {
        let inbox = self.client.new_inbox();
        let mut messages = self.client.subscribe(inbox.clone()).await?;
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.work", self.name);
        let mut left = count;
        while left > 0 {
            let batch = batch.min(left);
            let ask = json!({ "batch": batch, "expires": 10_000_000_000_u64 }).to_string();
            self.client.publish_with_reply(next.clone(), inbox.clone(), ask.into()).await?;
            let mut taken = Vec::with_capacity(batch);
            while taken.len() < batch {
                let message =
                    tokio::time::timeout(Duration::from_secs(20), messages.next()).await?;
                let message = message.ok_or("the connection is closed")?;
                if message.status.is_none() {
                    taken.push(message);
                }
            }
            left -= batch;
            try_join_all(taken.into_iter().map(|message| self.acknowledge(message))).await?;
        }
        Ok(())
    }

    async fn acknowledge(&self, message: Message) -> Result<(), Failed> {
        let reply = message.reply.ok_or("a message without a reply subject")?;
        self.client.request(reply, "+ACK".into()).await?;
        Ok(())
    }

    pub(crate) async fn lock(&self, count: usize) -> Result<(), Failed> {
        for number in 0..count {
            let mut headers = HeaderMap::new();
            headers.insert("Nats-TTL", "10");
            headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
            let seq = self.store(format!("{}.l.{}", self.name, number % 10), headers).await?;
            let delete = format!("$JS.API.STREAM.MSG.DELETE.{}-locks", self.name);
            self.ask(delete, json!({ "seq": seq })).await?;
        }
        Ok(())
    }
}

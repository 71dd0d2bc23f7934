//! What stays on the server while nobody comes, and over its death.

use std::time::Duration;

use serde_json::Value;
use surefoot_sync_core::{
    Coordinator as _, GroupSettings, GroupStart, Job, Key, Partitions, QueueSettings, Receive,
    ResourceId, Submitted, TopicSettings, Verdict, WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::{NATS_URL, Nats as Servers, given};

use crate::{connect, namespace};

fn id(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

async fn ask(client: &async_nats::Client, subject: String) -> Value {
    let answer = client.request(subject, "{}".into()).await.unwrap();
    serde_json::from_slice(&answer.payload).unwrap()
}

/// Covers field fault 152.
#[tokio::test]
async fn no_consumer_ends_by_being_idle() {
    let namespace = namespace();
    let nats = connect(&namespace).await;
    nats.jobs(WorkSettings::new(id("mail"))).await.unwrap();
    let ordered =
        QueueSettings::ordered(WorkSettings::new(id("orders")), Partitions::new(2).unwrap());
    nats.queue(ordered).await.unwrap();
    let group = GroupSettings::new(Key::new("billing").unwrap(), GroupStart::All);
    nats.group(TopicSettings::new(id("prices")), group).await.unwrap();
    let client = async_nats::connect(given(NATS_URL).unwrap()).await.unwrap();
    let mut consumers = 0;
    for stream in ["JOB_mail", "QUEUE_orders", "TOPIC_prices"] {
        let listed = ask(&client, format!("$JS.API.CONSUMER.LIST.{namespace}_{stream}")).await;
        for consumer in listed["consumers"].as_array().unwrap() {
            let config = &consumer["config"];
            assert!(config["durable_name"].is_string(), "{config}");
            assert_eq!(config["inactive_threshold"].as_u64().unwrap_or(0), 0, "{config}");
            consumers += 1;
        }
    }
    assert_eq!(consumers, 4);
}

/// As it is promised: while the work is stored. What is done is not remembered by a server that died.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_recognised_over_the_servers_death_while_its_work_is_stored() {
    let mut server = Servers::given().unwrap().start().unwrap();
    let nats = Nats::connect(server.url(), namespace()).await.unwrap();
    let jobs = nats.jobs(WorkSettings::new(id("mail"))).await.unwrap();
    let submit = async || {
        let job = || Job::new(Key::new("a").unwrap(), &1).unwrap();
        eventually("a submit", async || jobs.submit(job()).await.ok()).await
    };
    let Submitted::Stored(first) = submit().await else { unreachable!() };
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(submit().await, Submitted::Duplicate(Some(first)));
    let delivery = eventually("the job", async || {
        let request = Receive { max: 1, wait: Duration::from_secs(1) };
        jobs.receive(request).await.ok()?.pop()
    })
    .await;
    jobs.settle(&delivery, Verdict::Done).await.unwrap();
    assert!(matches!(submit().await, Submitted::Duplicate(_)), "inside the window");
}

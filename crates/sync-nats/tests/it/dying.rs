//! Servers that die and come back: one, or whichever of three leads.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use surefoot_sync_core::Namespace;
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::{Nats as Servers, Server};

/// How somebody dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Kill,
    Term,
}

pub(crate) struct Dying {
    members: Vec<Server>,
    urls: Vec<String>,
    pub(crate) namespace: Namespace,
}

impl Dying {
    pub(crate) fn one() -> Self {
        Self::of(vec![Servers::given().unwrap().start().unwrap()])
    }

    pub(crate) fn three() -> Self {
        Self::of(Servers::given().unwrap().cluster(3).unwrap())
    }

    fn of(members: Vec<Server>) -> Self {
        let urls = members.iter().map(|member| member.url().to_owned()).collect();
        Self { members, urls, namespace: crate::namespace() }
    }

    /// All members, for a client.
    pub(crate) fn url(&self) -> String {
        self.urls.join(",")
    }

    /// A client whose streams are kept by all members.
    pub(crate) async fn connect(&self) -> Nats {
        connect(&self.url(), &self.namespace).await
    }

    /// The one who has a stream dies. It comes back at once where it is the only one, and else when another one leads.
    pub(crate) async fn strike(&mut self, stream: &str, signal: Signal) {
        let led_by = if self.members.len() == 1 { 0 } else { self.leader(stream, None).await };
        let member = &mut self.members[led_by];
        match signal {
            Signal::Kill => member.kill().unwrap(),
            Signal::Term => member.terminate().unwrap(),
        }
        if self.members.len() > 1 {
            self.leader(stream, Some(led_by)).await;
        }
        self.members[led_by].restart().unwrap();
    }

    async fn leader(&self, stream: &str, but: Option<usize>) -> usize {
        let urls: Vec<async_nats::ServerAddr> =
            self.urls.iter().map(|url| url.parse().unwrap()).collect();
        let connect = async || async_nats::connect(&urls).await.ok();
        let client = eventually("a connection", connect).await;
        let subject = format!("$JS.API.STREAM.INFO.{}_{stream}", self.namespace);
        eventually("a leader", async || {
            let answer = client.request(subject.clone(), "{}".into()).await.ok()?;
            let info: serde_json::Value = serde_json::from_slice(&answer.payload).ok()?;
            let leader = info["cluster"]["leader"].as_str()?.strip_prefix("member-")?;
            leader.parse().ok().filter(|leader| Some(*leader) != but)
        })
        .await
    }
}

/// A client of one server or of many, for whom a stream is kept by all.
pub(crate) async fn connect(url: &str, namespace: &Namespace) -> Nats {
    let replicas = u8::try_from(url.split(',').count()).unwrap();
    let connected = async || Nats::connect(url, namespace.clone()).await.ok();
    eventually("a connection", connected).await.replicas(replicas).unwrap()
}

/// A test of this program in a process of its own, which is told by its environment what to do, and says lines.
pub(crate) fn process(
    test: &str,
    told: &BTreeMap<&str, String>,
    hear: impl Fn(&str) + Send + 'static,
) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).envs(told).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            hear(&line);
        }
    });
    child
}

pub(crate) fn end(mut child: Child, signal: Signal) {
    let name = match signal {
        Signal::Kill => "-KILL",
        Signal::Term => "-TERM",
    };
    let told = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(told.success() && !child.wait().unwrap().success());
}

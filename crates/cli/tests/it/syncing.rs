//! The coordination server: what is looked at, what is done, and how safe it is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use serde_json::Value;
use surefoot_sync_core::{
    Coordinator as _, Job, Jobs, Key, Namespace, Receive, ResourceId, ScheduleSpec, Schedules,
    Verdict, WorkSettings,
};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::{NATS_URL, Nats as Servers, given};

use crate::shell::{Did, Shell};

/// A namespace of its own on a server, and the binary beside it.
struct Place {
    shell: Shell,
    namespace: String,
    url: String,
}

impl Place {
    fn new(namespace: &str) -> Self {
        // Nobody else's: the process is part of it.
        let namespace = format!("{namespace}-{}", std::process::id());
        Self { shell: Shell::new(), namespace, url: given(NATS_URL).unwrap() }
    }

    fn run(&self, line: &str) -> Did {
        let words = format!("sync --nats {} --namespace {} {line}", self.url, self.namespace);
        self.shell.run(&words)
    }

    fn json(&self, line: &str) -> Value {
        let did = self.run(&format!("{line} --json"));
        assert_eq!(did.code, 0, "{did:?}");
        serde_json::from_str(&did.out).unwrap()
    }

    fn with<T>(&self, work: impl AsyncFnOnce(Nats) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let namespace = Namespace::new(self.namespace.clone()).unwrap();
            work(Nats::connect(&self.url, namespace).await.unwrap()).await
        })
    }
}

async fn jobs(nats: &Nats) -> Arc<dyn Jobs> {
    nats.jobs(WorkSettings::new(ResourceId::new("mail").unwrap())).await.unwrap()
}

async fn give_up(jobs: &Arc<dyn Jobs>, name: &str) {
    jobs.submit(Job::new(Key::new(name).unwrap(), &name).unwrap()).await.unwrap();
    let delivery = eventually("a delivery", async || {
        let request = Receive { max: 1, wait: std::time::Duration::from_secs(1) };
        jobs.receive(request).await.ok()?.pop()
    })
    .await;
    let reason = "no such user".to_owned();
    jobs.settle(&delivery, Verdict::DeadLetter { reason }).await.unwrap();
}

#[test]
fn queues_and_dead_letters_are_looked_after() {
    let place = Place::new("queues");
    place.with(async |nats| {
        let jobs = jobs(&nats).await;
        give_up(&jobs, "ann").await;
        give_up(&jobs, "bob").await;
        jobs.submit(Job::new(Key::new("carl").unwrap(), &1).unwrap()).await.unwrap();
    });
    let queues = place.json("queues");
    let queue = &queues["queues"][0];
    assert_eq!((&queue["resource"], &queue["waiting"]), (&"jobs:mail".into(), &1.into()));
    assert_eq!((&queue["dead"], &queue["paused"]), (&2.into(), &false.into()));
    let table = place.run("queues");
    assert!(table.out.contains("jobs:mail") && table.out.contains("OLDEST"), "{table:?}");

    let dead = place.json("dead list");
    assert_eq!(dead, place.json("dead list jobs:mail"));
    let (ann, bob) = (&dead["dead"][0], &dead["dead"][1]);
    assert_eq!((&ann["key"], &ann["reason"]), (&"ann".into(), &"no such user".into()));
    let id = |letter: &Value| letter["id"].as_str().unwrap().to_owned();
    let shown = place.run(&format!("dead show jobs:mail {}", id(ann)));
    assert!(shown.out.contains("data: \"ann\"") && shown.out.contains("1 attempts"), "{shown:?}");

    // Without a yes nothing is done, and what is asked for without a reason neither.
    let redrive = format!("dead redrive jobs:mail {}", id(bob));
    assert_eq!(place.run(&format!("{redrive} --reason mended")).code, 2);
    assert_eq!(place.run(&format!("{redrive} --yes")).code, 2);
    let did = place.run(&format!("{redrive} --reason mended --yes"));
    assert!(did.code == 0 && did.out.contains("sent again"), "{did:?}");
    let did = place.run(&format!("dead discard jobs:mail {} --reason old --yes", id(ann)));
    assert_eq!(did.code, 0, "{did:?}");
    let did = place.run(&format!("dead discard jobs:mail {} --reason old --yes", id(ann)));
    assert!(did.code == 1 && did.err.contains("there is no dead letter"), "{did:?}");
    assert_eq!(place.json("dead list")["dead"], Value::Array(Vec::new()));

    assert_eq!(place.run("pause jobs:mail --reason storm --yes").code, 0);
    assert_eq!(place.json("queues")["queues"][0]["paused"], true);
    assert_eq!(place.run("resume jobs:mail --reason calm --yes").code, 0);
    let audit = place.json("audit");
    let verbs: Vec<_> = audit["audit"].as_array().unwrap().iter().map(|it| &it["verb"]).collect();
    assert_eq!(verbs, ["resume", "pause", "discard", "redrive"]);
    assert_eq!(
        (&audit["audit"][0]["actor"], &audit["audit"][0]["reason"]),
        (&"tester".into(), &"calm".into())
    );
}

#[test]
fn schedules_are_looked_after() {
    let place = Place::new("schedules");
    place.with(async |nats| {
        let schedules =
            Schedules::new(nats.schedules(ResourceId::new("house").unwrap()).await.unwrap());
        let id = Key::new("nightly").unwrap();
        schedules
            .create(ScheduleSpec::new(id, "0 3 * * *", Some("Europe/Berlin")).unwrap())
            .await
            .unwrap();
    });
    let listed = place.json("schedules list");
    let schedule = &listed["schedules"][0];
    assert_eq!(
        (&schedule["id"], &schedule["timezone"]),
        (&"nightly".into(), &"Europe/Berlin".into())
    );
    let next = place.json("schedules next nightly --count 3");
    let times = next["next"].as_array().unwrap();
    assert!(
        times.len() == 3 && times.iter().all(|it| it.as_str().unwrap().ends_with("00:00.000000Z"))
    );

    let why = "--reason test --yes";
    assert_eq!(place.run(&format!("schedules pause nightly {why}")).code, 0);
    let table = place.run("schedules list");
    assert!(table.out.contains("paused by tester: test"), "{table:?}");
    let did = place.run(&format!("schedules run nightly --request r1 {why}"));
    assert!(did.code == 0 && did.out.starts_with("done"), "{did:?}");
    let did = place.run(&format!("schedules run nightly --request r1 {why}"));
    assert!(did.code == 0 && did.out.starts_with("nothing was changed"), "{did:?}");
    let span = "--from 2026-11-01T00:00:00Z --until 2026-11-03T00:00:00+01:00";
    let did = place.run(&format!("schedules backfill nightly {span} {why}"));
    assert!(did.code == 0 && did.out.starts_with("done"), "{did:?}");
    assert_eq!(place.run(&format!("schedules resume nightly {why}")).code, 0);

    for (line, code, says) in [
        ("schedules next weekly", 1, "there is no schedule weekly"),
        ("schedules list --set attic", 1, "there is no set of schedules `attic`"),
        (
            "schedules backfill nightly --from 2026-11-01 --until 2026-11-02 --reason x --yes",
            2,
            "offset",
        ),
        (
            "schedules backfill nightly --from 2900-01-01T00:00:00Z --until 2900-01-02T00:00:00Z --reason x --yes",
            2,
            "to come",
        ),
        ("pause mail --reason x --yes", 2, "KIND:ID"),
        (
            "pause jobs:mail --reason x --yes",
            1,
            "there is no jobs:mail in the namespace `schedules-",
        ),
        ("audit --limit 0", 2, "1..=1000"),
        ("dead list --limit 99999999", 2, "1..=1000"),
    ] {
        let did = place.run(line);
        assert!(did.code == code && did.err.contains(says), "{line}: {did:?}");
    }
}

#[test]
fn a_server_that_is_away_or_not_named_is_an_error_for_people() {
    let shell = Shell::new();
    let did = shell.run("sync --nats nats://127.0.0.1:1 --namespace shop queues");
    assert!(did.code == 3 && did.err.contains("nats://127.0.0.1:1"), "{did:?}");
    let did = shell.run("sync --nats nats://127.0.0.1:1 queues");
    assert!(did.code == 2 && did.err.contains("--namespace"), "{did:?}");
    let did = shell.run("sync --nats nats://[oops --namespace shop queues");
    assert!(did.code == 2 && did.err.contains("nats://127.0.0.1:4222"), "{did:?}");
    let list = "nats://a:secret@127.0.0.1:1,nats://b:secret@127.0.0.1:2";
    let did = shell.run(&format!("sync --nats {list} --namespace shop queues"));
    assert!(did.err.contains("`nats://127.0.0.1:1,nats://127.0.0.1:2`"), "{did:?}");
}

/// An error for a program is one line of JSON, whoever found it, and nothing else.
#[test]
fn errors_are_json_where_json_is_wanted() {
    let shell = Shell::new();
    for (line, code) in [
        ("sync --nats nats://127.0.0.1:1 --namespace shop queues --json", 3),
        ("sync --namespace shop audit --limit 0 --json", 2),
        ("--json sync", 2),
        ("nonsense --json", 2),
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, code, "{did:?}");
        let said: Value =
            serde_json::from_str(&did.err).unwrap_or_else(|why| panic!("{why}: {did:?}"));
        assert_eq!(said["error"]["exit"], code, "{said}");
        assert!(!said["error"]["message"].as_str().unwrap().starts_with("error"), "{said}");
    }
}

/// The server's words for it are a violation, and a server that does not answer is something else.
#[test]
fn credentials_that_are_refused_are_called_so() {
    let server = Servers::given().unwrap().settings(ACCOUNTS.replace("no_auth_user: app", ""));
    let server = server.start().unwrap();
    let shell = Shell::published();
    let wrong = server.url().replace("nats://", "nats://app:wrong@");
    for url in [wrong.as_str(), server.url()] {
        let did = shell.run(&format!("sync --nats {url} --namespace shop queues"));
        assert!(did.code == 3 && did.err.contains("refused the credentials"), "{did:?}");
        assert!(!did.err.contains("wrong") && !did.err.contains("did not answer"), "{did:?}");
    }
}

#[test]
fn doctor_looks_at_the_store_where_the_server_is_away() {
    let shell = Shell::published();
    let did = shell.run("doctor --nats nats://127.0.0.1:1 --namespace shop --json");
    assert_eq!(did.code, 1, "{did:?}");
    let view: Value = serde_json::from_str(&did.out).unwrap();
    let checks = view["checks"].as_array().unwrap();
    let of = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    assert!(of("clock")["found"].is_string());
    let server = of("coordination server");
    assert_eq!(server["ok"], false);
    assert!(server["found"].as_str().unwrap().contains("127.0.0.1:1"), "{server}");
}

/// By the server's own protocol: nothing of ours deletes a stream.
fn delete_stream(url: &str, stream: &str) {
    let mut line = TcpStream::connect(url.strip_prefix("nats://").unwrap()).unwrap();
    let ask =
        format!("CONNECT {{}}\r\nSUB gone 1\r\nPUB $JS.API.STREAM.DELETE.{stream} gone 0\r\n\r\n");
    line.write_all(ask.as_bytes()).unwrap();
    let answers = BufReader::new(line).lines().map(Result::unwrap);
    let answer = answers.skip_while(|line| !line.starts_with("MSG gone")).nth(1).unwrap();
    assert!(answer.contains("\"success\":true"), "{answer}");
}

/// Somebody deleted the stream of the dead letters.
#[test]
fn a_lost_stream_is_told_in_words_for_people() {
    let place = Place::new("lost");
    place.with(async |nats| {
        give_up(&jobs(&nats).await, "ann").await;
    });
    let id = place.json("dead list")["dead"][0]["id"].as_str().unwrap().to_owned();
    let lost = format!("{}_JOBDLQ_mail", place.namespace);
    delete_stream(&place.url, &lost);
    for line in ["dead list".to_owned(), format!("dead show jobs:mail {id}")] {
        let did = place.run(&line);
        assert!(did.code == 1 && did.err.contains("somebody deleted it"), "{did:?}");
        assert!(did.err.contains(&lost) && !did.err.contains("10059"), "{did:?}");
    }
}

const ACCOUNTS: &str = "
    accounts {
        SYS { users: [{ user: sys, password: secret }] }
        APP { jetstream: enabled, users: [{ user: app, password: app }] }
    }
    system_account: SYS
    no_auth_user: app
";

/// Covers field fault 144.
#[test]
fn doctor_warns_where_acknowledged_work_can_be_lost_with_the_power() {
    for (sync, safe) in [("", false), ("jetstream { sync_interval: always }", true)] {
        let settings = format!("{ACCOUNTS}{sync}");
        let server = Servers::given().unwrap().settings(settings).start().unwrap();
        let place = Place {
            shell: Shell::published(),
            namespace: "shop".to_owned(),
            url: server.url().to_owned(),
        };
        place.with(async |nats| {
            jobs(&nats).await;
        });
        let system = place.url.replace("nats://", "nats://sys:secret@");
        let doctor = format!("doctor --nats {} --namespace shop", place.url);
        let with_system = format!("{doctor} --nats-system {system}");
        let check = |line: &str| {
            let view = place.shell.json(line);
            let checks = view["checks"].as_array().unwrap().clone();
            checks.into_iter().find(|it| it["name"] == "durability of jobs:mail").unwrap()
        };
        let found = check(&with_system);
        assert_eq!(found["ok"], safe, "{found}");
        let help = found["help"].as_str();
        assert_eq!(help.is_some_and(|help| help.contains("sync_interval: always")), !safe);
        // Who cannot know warns.
        let blind = check(&doctor);
        assert!(
            blind["ok"] == false && blind["found"].as_str().unwrap().contains("system account")
        );
        let text = place.shell.run(&with_system).out;
        assert!(!text.contains("secret"), "{text}");
    }
}

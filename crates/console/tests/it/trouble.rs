//! What goes wrong on this side stands in the log, with its cause.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use surefoot_operator::Operator;
use surefoot_testkit::{Fault, FaultPlan, FaultyStore, Method};

use crate::client::{OPERATOR, Served, console, with_tokens};
use crate::world::World;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_told_in_the_log() {
    let mut world = World::published().await;
    let run = world.failed().await;
    let plan = FaultPlan::new();
    let store = FaultyStore::new(world.store.clone(), plan.clone());
    world.operator = Operator::new(store, "console");
    let served = Served::on(console(&world, with_tokens()), Default::default()).await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _here = tracing::subscriber::set_default(subscriber);

    served.operator().get("/runs").await.done();
    served.operator().get("/runs/run_1").await.refused(400);
    assert_eq!(log.lines(), [""; 0], "what a caller did wrong is the caller's");

    plan.every(Method::RunList, Some(Fault::Unavailable));
    plan.every(Method::RunCommit, Some(Fault::LostAnswer));
    assert_eq!(served.operator().get("/runs").await.refused(503), "unavailable");
    assert_eq!(served.operator().anywhere("GET", "/runs", None).await.status, 503);
    let seen = world.revision(run).await;
    let retry = format!("deed=retry&revision={seen}&reason=secret");
    let form = served.operator().with("Content-Type", "application/x-www-form-urlencoded");
    let answer = form.anywhere("POST", &format!("/runs/{run}/act"), Some(&retry)).await;
    assert_eq!(answer.status, 503);

    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines[..2] {
        assert!(line.contains("WARN") && line.contains("status=503"), "{line}");
        assert!(line.contains("the store cannot be used: "), "{line}");
    }
    assert!(lines[0].contains("/api/v1/runs") && lines[1].contains("path=\"/runs\""), "{lines:?}");
    assert!(lines[2].contains("nobody knows whether it was done"), "{}", lines[2]);
    assert!(!lines.concat().contains("secret") && !lines.concat().contains(OPERATOR));

    for _ in 0..50 {
        let body = json!({ "reason": "mended" });
        served.operator().post("/runs/retry", body).await.refused(503);
    }
    assert_eq!(log.lines().len(), 10, "{:?}", log.lines());
}

//! Schedules of workflows on a real server: slots that passed are fired once, by whichever worker, over its death.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::{
    Amounts, EventFilter, Ids as _, Micros, OperatorStore as _, PlanStore as _, Publish, Timestamp,
};
use surefoot_language::Module;
use surefoot_sync_core::{Coordinator as _, ResourceId, ScheduleStore};
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::plans::{plan, scheduled, succeed};
use surefoot_testkit::servers::Nats as Servers;
use surefoot_testkit::{MemoryStore, SeqIds};
use surefoot_worker::{Kernel, Misfire, Running, WorkerBuilder};

use crate::namespace;

pub(crate) const APP: &str = "shop";

fn builder(store: &MemoryStore) -> WorkerBuilder<MemoryStore> {
    let module: Module = Module::builder("testkit", 1).build().unwrap();
    let kernel = Kernel::builder(APP, store.clone()).build();
    kernel.worker(module).catch_up(Duration::from_secs(3 * 3_600), Misfire::All)
}

async fn start(store: &MemoryStore, set: Option<Arc<dyn ScheduleStore>>) -> Running {
    let builder = builder(store);
    let builder = if let Some(set) = set { builder.schedules(set) } else { builder };
    builder.start().await.unwrap()
}

/// A schedule for every minute.
pub(crate) async fn publish(store: &MemoryStore) {
    let publish = Publish {
        app: APP.into(),
        scope: "berlin".into(),
        workflow: "report".into(),
        version: SeqIds::new().version(),
        plan: scheduled(plan(vec![succeed("ok")]), "often", "* * * * *", None),
        source: String::new(),
        budget: Amounts::default(),
        activate: true,
        authorization: None,
        author: "ann".to_owned(),
    };
    store.version_publish(publish).await.unwrap();
}

/// How often each slot fired.
async fn fired(store: &MemoryStore) -> BTreeMap<Timestamp, usize> {
    let app = Some(APP.into());
    let filter =
        EventFilter { app, scope: None, kind: None, status: None, limit: 1_000, cursor: None };
    let mut slots = BTreeMap::new();
    for event in store.event_list(filter).await.unwrap().rows {
        *slots.entry(event.occurred_at).or_default() += 1;
    }
    slots
}

/// Covers behaviour 193.
/// Covers field faults 60, 61.
#[tokio::test(flavor = "multi_thread")]
async fn no_slot_is_lost_or_doubled_with_and_without_the_server() {
    let mut server = Servers::given().unwrap().start().unwrap();
    let namespace = namespace();
    let connect = async || Nats::connect(server.url(), namespace.clone()).await.unwrap();
    let id = ResourceId::new("workflows").unwrap();
    let first = connect().await.schedules(id.clone()).await.unwrap();
    let second = connect().await.schedules(id.clone()).await.unwrap();

    // The store's clock goes with the server's, and the schedule stands for two hours.
    let (store, now) = (MemoryStore::new(), first.now());
    let hours = Micros::from_secs(2 * 3_600);
    store.clock().set(Timestamp::from_micros(now.micros() - hours.get()));
    publish(&store).await;
    store.clock().set(now);
    let alone = start(&store, None).await;
    let workers = [start(&store, Some(first)).await, start(&store, Some(second)).await];
    let caught_up = async |least: usize| {
        eventually("the slots that passed", async || {
            store.clock().set(store.clock().now().plus(Micros::from_millis(20)));
            (fired(&store).await.len() >= least).then_some(())
        })
        .await;
    };
    caught_up(119).await;
    alone.stop(Duration::from_secs(1)).await;
    // The server dies, and time goes on.
    server.kill().unwrap();
    store.clock().advance(Micros::from_secs(120));
    server.restart().unwrap();
    let another = start(&store, None).await;
    caught_up(121).await;
    for worker in workers.into_iter().chain([another]) {
        worker.stop(Duration::from_secs(1)).await;
    }
    let slots = fired(&store).await;
    assert!(slots.values().all(|times| *times == 1), "{slots:?}");
    let (first, last) = (slots.keys().next().unwrap(), slots.keys().last().unwrap());
    let minutes = (last.micros() - first.micros()) / 60_000_000;
    assert_eq!(slots.len(), usize::try_from(minutes).unwrap() + 1, "none is missing");
}

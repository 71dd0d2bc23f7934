//! A crash at every call of a tree's life: created once, each child runs to its end, the parent has its results.

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Amounts, Answer, ChildStore as _, ClaimRequest, Event, EventStore as _, Fact, Ids as _,
    LoadRequest, Micros, Mode, Phase, PlanStore as _, Plans, Publish, Run, RunId, RunState,
    RunStore as _, Scan, SessionId, StoreError,
};
use surefoot_testkit::plans::{plan, pure, run_workflows, transactional};
use surefoot_testkit::{
    Drive, DriveError, Fault, FaultPlan, FaultyStore, MemoryStore, Method, Reply, SeqIds,
};

type Store = FaultyStore<MemoryStore>;

const LEASE: Micros = Micros::from_secs(120);

/// What dies of a fault, and is done again by the next process.
#[derive(Debug)]
struct Crashed;

impl From<StoreError> for Crashed {
    fn from(_: StoreError) -> Self {
        Self
    }
}

impl From<DriveError> for Crashed {
    fn from(_: DriveError) -> Self {
        Self
    }
}

async fn start(store: &MemoryStore, ids: &SeqIds) -> RunId {
    let flow = plan(vec![run_workflows("one", 4, Some(2)), pure("after")]);
    for (key, plan) in [("one", plan(vec![transactional("work")])), ("flow", flow)] {
        let publish = Publish {
            app: "shop".into(),
            scope: "north".into(),
            workflow: key.into(),
            version: ids.version(),
            plan,
            source: String::new(),
            budget: Amounts::default(),
            activate: true,
            authorization: None,
            author: "ada".to_owned(),
        };
        store.version_publish(publish).await.unwrap();
    }
    let event = Event::start("flow", json!({})).check().unwrap();
    let (app, scope, id) = ("shop".into(), "north".into(), ids.event());
    let emit = surefoot_kernel_core::Emit { app, scope, id, event, eager: None };
    store.event_emit(emit).await.unwrap().runs[0]
}

/// One process: recovers, claims and drives until nothing is left to do.
async fn work(store: &Store, session: SessionId) -> Result<(), Crashed> {
    for nonce in 0.. {
        store.run_recover(Scan { app: "shop".into(), limit: 100 }).await?;
        let footprints = store.footprint_list(&"shop".into()).await?;
        let request = ClaimRequest {
            app: "shop".into(),
            mode: Mode::Execute,
            footprints: footprints
                .iter()
                .map(surefoot_kernel_core::plan::Footprint::hash)
                .collect(),
            tree: None,
            limit: 1,
            session,
            nonce,
            lease: LEASE,
            plans: Plans::default(),
        };
        let Some(claimed) = store.run_claim(request).await?.pop() else { return Ok(()) };
        let mut drive = Drive::load(store, claimed.run.id).await?;
        let of = claimed.run.origin.parent.as_ref().map(|parent| parent.index);
        let answer = Answer::Succeeded { output: json!(of) };
        drive.to_end(store, |_| Reply::Answer(answer.clone())).await?;
    }
    Ok(())
}

async fn row(store: &MemoryStore, run: RunId) -> Run {
    store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap().run
}

/// Runs a tree whose first process has this trouble, and then as many others as it takes.
async fn tree(faults: FaultPlan) {
    let (store, ids) = (MemoryStore::new(), SeqIds::new());
    let run = start(&store, &ids).await;
    let mut faults = Some(faults);
    for _ in 0..20 {
        let process = FaultyStore::new(store.clone(), faults.take().unwrap_or_default());
        let _ = work(&process, ids.session()).await;
        store.clock().advance(LEASE);
        store.clock().advance(Micros::from_secs(1));
        if row(&store, run).await.state().is_terminal() {
            break;
        }
    }
    let ended = row(&store, run).await;
    assert!(matches!(ended.phase, Phase::Succeeded { .. }), "{ended:?}");
    let group = store.children_groups(run).await.unwrap().remove(0);
    assert_eq!((group.total, group.live, group.held), (4, 0, 0));
    assert!(group.states.contains(&(RunState::Succeeded, 4)));
    let stored = store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap();
    let facts = stored.journal.unwrap().into_iter().flat_map(|entry| entry.facts);
    let mut results: Vec<Value> = Vec::new();
    for fact in facts {
        if let Fact::StepCompleted { step, output, .. } = fact
            && step.as_str() == "steps.0"
        {
            results.push(output);
        }
    }
    assert_eq!(results, [json!([0, 1, 2, 3])], "one outcome, in order");
}

/// Covers field fault 140.
#[tokio::test]
async fn a_tree_comes_to_its_end_whatever_call_a_process_dies_at() {
    let undisturbed = FaultPlan::new();
    tree(undisturbed.clone()).await;
    let calls = undisturbed.calls();
    assert!(calls.contains(&Method::ChildrenCreate) && calls.contains(&Method::ChildrenRead));
    let mut nth = std::collections::BTreeMap::<Method, u64>::new();
    for method in calls {
        let count = nth.entry(method).or_default();
        *count += 1;
        for fault in [Fault::DiesBefore, Fault::DiesAfter, Fault::LostRequest, Fault::LostAnswer] {
            let faults = FaultPlan::new();
            faults.at(method, *count, fault);
            tree(faults).await;
        }
    }
}

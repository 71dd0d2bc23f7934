//! Workers with different versions of a module on one store.

use serde_json::json;
use surefoot_kernel_core::{App, Event, Micros, PassTime, RunState};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Module, ModuleBuilder, PlanResult, Planned, StepCx,
};
use surefoot_operator::Operator;
use surefoot_testkit::{Bench, MemoryStore};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {}

macro_rules! action {
    ($name:ident, $key:literal, $about:literal) => {
        struct $name;

        impl Idempotent for $name {
            const NAME: &'static str = $key;
            const ABOUT: &'static str = $about;
            type Input = Order;
            type Output = String;

            async fn run(&self, _: &IdempotentCx, _: Order) -> ActionResult<String> {
                Ok($about.to_owned())
            }

            async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<String> {
                Ok(Planned::new($about))
            }
        }
    };
}

action!(Mail, "mail", "Writes.");
action!(BetterMail, "mail", "Writes a letter.");
action!(Pay, "pay", "Pays.");
action!(Note, "note", "Notes.");

fn shop(version: u32) -> ModuleBuilder {
    Module::builder("shop", version).idempotent(Pay)
}

fn on(store: &MemoryStore, module: ModuleBuilder) -> Bench<MemoryStore> {
    Bench::on(store.clone(), module.build().unwrap())
}

const ORDER: &str =
    "steps: [{ pay: {} }, { waitFor: { kind: approval, key: bolt } }, { mail: {} }]";

fn start(workflow: &str) -> Event {
    Event::start(workflow, json!({}))
}

#[tokio::test]
async fn a_new_action_and_another_label_strand_nothing() {
    let store = MemoryStore::new();
    let old = on(&store, shop(1).idempotent(Mail));
    let new = on(&store, shop(2).idempotent(BetterMail).idempotent(Note));
    old.publish("order", ORDER).await;
    let parked = old.run_to_end(start("order")).await;
    assert_eq!(parked.state, RunState::Waiting, "{}", parked.explain());

    new.signal_when_waiting("approval", "bolt", true);
    let end = new.go_on(parked.run.id).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    assert_eq!(end.step("mail").output::<String>(), "Writes a letter.");

    // What is published with the new version and uses nothing new, the old one runs.
    new.publish("order", ORDER).await;
    let end = old.run_to_end(start("order")).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    assert_eq!(end.step("mail").output::<String>(), "Writes.");
}

#[tokio::test]
async fn runs_whose_action_is_gone_stay_queued_and_start_when_it_is_back() {
    let store = MemoryStore::new();
    let old = on(&store, shop(1).idempotent(Mail));
    let lacking = on(&store, shop(2).idempotent(Note));
    old.publish("order", "steps: [{ pay: {} }, { mail: {} }]").await;
    lacking.publish("other", "steps: [{ pay: {} }, { note: {} }]").await;

    // The old worker was last seen long ago.
    store.pass_time(Micros::from_secs(3_600));
    let stranded = lacking.run_to_end(start("order")).await;
    assert_eq!(stranded.state, RunState::Queued, "{}", stranded.explain());
    assert_eq!(stranded.run.attempt, 0, "nobody claimed it");
    let explained = stranded.explain().to_string();
    assert!(explained.contains("mail"), "{explained}");

    let app = Some(App::from("bench"));
    let health = Operator::new(store.clone(), "ann").health(app, None).await.unwrap();
    let missing = &health.apps[0].missing_modules[..];
    let [missing] = missing else { panic!("{missing:?}") };
    assert_eq!((missing.module.as_str(), missing.due_runs), ("shop", 1));
    assert!(missing.lacks.iter().any(|name| name.contains("mail")), "{missing:?}");

    // Runs that need nothing of it are not held up.
    let end = lacking.run_to_end(start("other")).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());

    let end = old.go_on(stranded.run.id).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
}

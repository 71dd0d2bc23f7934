//! A store with something of everything, and a browser's requests without a browser.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};
use surefoot_console::{Access, Console, Identity, Role, Server, Tokens};
use surefoot_kernel_core::{
    Amounts, Answer, ClaimRequest, Event, Ids as _, Micros, Mode, Plans, RunId, RunStore as _,
    Scope, Signal, WorkflowKey,
};
use surefoot_language::{Bindings, Limits, Manifest};
use surefoot_operator::{EmitEvent, PublishSource, SendTo};
use surefoot_testkit::{Drive, Reply};
use tower::ServiceExt as _;

use crate::world::{LEASE, SCOPE, World, app, failed, manifest, succeeded};

pub(crate) const VIEWER: &str = "viewer-0123456789abcdef";
pub(crate) const OPERATOR: &str = "operator-0123456789abcdef";

/// Every kind of step that is drawn.
pub(crate) const SUPPLY: &str = r#"
inputs:
  item: { type: text, required: true }
  amounts: { type: list, required: true }
triggers:
  schedule:
    nightly:
      cron: "30 2 * * *"
      timezone: Europe/Berlin
      with: { item: bolt, amounts: [1] }
steps:
  - mail: {}
    label: Tell the warehouse
  - if: "${{ inputs.item == 'bolt' }}"
    then:
      - pay: { item: "${{ inputs.item }}" }
        saveAs: receipt
    else:
      - fail: { message: "Unknown item", code: UNKNOWN_ITEM }
  - forEach: "${{ inputs.amounts }}"
    as: amount
    do:
      - mail: { amount: "${{ amount }}" }
      - book: { amount: "${{ amount }}" }
  - waitFor: { kind: approval, key: "${{ run.id }}", timeout: 2d }
    saveAs: approval
  - switch: "${{ inputs.item }}"
    cases:
      - when: bolt
        do:
          - succeed: { message: "Bolts are on their way" }
    default:
      - book: {}
"#;

/// A store, and the console on it.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) router: Router,
}

/// An answer.
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn location(&self) -> &str {
        self.headers[header::LOCATION].to_str().unwrap()
    }

    /// Says what is missing.
    #[track_caller]
    pub(crate) fn has(&self, text: &str) -> &Self {
        assert!(self.text.contains(text), "no `{text}` in:\n{}", self.text);
        self
    }
}

pub(crate) fn console(world: &World, access: Access) -> Console {
    let (ids, clock) = (world.ids.clone(), world.store.clock().clone());
    Console::new(world.operator.clone(), ids, clock, access)
}

pub(crate) fn with_tokens() -> Access {
    let tokens = Tokens::new()
        .with_lines(Role::Viewer, &format!("vic {VIEWER}"))
        .and_then(|tokens| tokens.with_lines(Role::Operator, &format!("bob {OPERATOR}")));
    Access::Tokens(tokens.unwrap())
}

pub(crate) fn open_as(role: Role) -> Access {
    Access::Open(Identity::new("ann", role).unwrap())
}

impl Stage {
    pub(crate) fn on(world: World, access: Access) -> Self {
        let router = console(&world, access).router();
        Self { world, router }
    }

    /// With `reorder` published, for somebody who may act.
    pub(crate) async fn set() -> Self {
        Self::on(World::published().await, open_as(Role::Operator))
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        let request = Request::get(path).header(header::HOST, "localhost");
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Got {
        let body = form(fields);
        let kind = "application/x-www-form-urlencoded";
        let request = Request::builder().method(Method::POST).uri(path);
        let request = request.header(header::HOST, "localhost").header(header::CONTENT_TYPE, kind);
        self.ask(request.body(Body::from(body)).unwrap()).await
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Got {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        Got { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// Answers real connections until it is dropped.
    pub(crate) async fn served(&self, access: Access) -> String {
        let console = console(&self.world, access);
        let server = Server::bind(console, "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.address();
        drop(tokio::spawn(server.run(std::future::pending())));
        format!("http://{address}")
    }
}

pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        let value: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
        form.push_str(&format!("{name}={value}&"));
    }
    form
}

/// Something of everything: runs in every state, events, signals, a schedule, two versions, an audit.
pub(crate) struct Furnished {
    pub(crate) stage: Stage,
    pub(crate) unknown: RunId,
    pub(crate) running: RunId,
    pub(crate) waiting: RunId,
    pub(crate) failed: RunId,
    pub(crate) succeeded: RunId,
}

pub(crate) async fn furnished(access: Access) -> Furnished {
    let world = World::published().await;
    publish(&world, "supply", SUPPLY, true).await;
    let step = |minutes: i64| world.store.clock().advance(Micros::from_secs(minutes * 60));
    let mut done = Vec::new();
    for key in 0..6 {
        let run = emit(&world, &format!("order-{key}")).await;
        step(3);
        done.push(finish(&world, run).await);
    }
    let failing = emit(&world, "order-6").await;
    let mut drive = claim(&world, failing).await;
    drive.to_call(&world.store).await.unwrap();
    world.answered(&mut drive, "steps.0", failed(false)).await;
    step(2);
    let waiting = start(&world, json!({ "item": "bolt", "amounts": [1, 2, 3] })).await;
    let mut drive = claim(&world, waiting).await;
    drive.set_cost(Amounts::of([("calls", 1.0)]).unwrap());
    drive
        .to_end(&world.store, |call| Reply::Answer(answer_to(call.action.as_str())))
        .await
        .unwrap();
    step(1);
    let unknown = emit(&world, "order-7").await;
    let mut drive = claim(&world, unknown).await;
    drive.to_call(&world.store).await.unwrap();
    world.answered(&mut drive, "steps.0", succeeded(json!({}))).await;
    drive.to_call(&world.store).await.unwrap();
    let no_answer = Answer::Unknown { message: "no answer".to_owned(), evidence: None };
    world.answered(&mut drive, "steps.1", no_answer).await;
    world.store.clock().advance(Micros::from_secs(2));
    let mut drive = claim(&world, unknown).await;
    drive.to_call(&world.store).await.unwrap();
    let answer = surefoot_kernel_core::ReconcileAnswer::Unknown { why: "no such service".into() };
    let step_1 = "steps.1".into();
    let input = surefoot_kernel_core::Input::Reconciled { step: step_1, answer };
    drive.take(&world.store, input).await.unwrap();
    step(4);
    let running = emit(&world, "order-8").await;
    let mut drive = claim(&world, running).await;
    drive.to_call(&world.store).await.unwrap();
    world.answered(&mut drive, "steps.0", succeeded(json!({}))).await;
    drive.to_call(&world.store).await.unwrap();
    emit(&world, "order-9").await;
    rest(&world).await;
    world.store.clock().advance(Micros::from_secs(20));
    let footprints = footprints(&world).await;
    world.report(footprints, 0).await;
    let stage = Stage::on(world, access);
    Furnished { stage, unknown, running, waiting, failed: failing, succeeded: done[0] }
}

/// What is no run: an event without listeners, a signal, a second version, an audit.
async fn rest(world: &World) {
    let event = Event::new("inventory.counted", json!({ "items": 12 }));
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    world.operator.emit(&world.ids, emit).await.unwrap();
    let signal = Signal::new("approval", "order-99").data(json!({ "by": "ann" }));
    world.operator.signal(app(), SendTo::Scope(SCOPE.into()), signal).await.unwrap();
    let later =
        crate::world::REORDER.replace("- mail: {}", "- mail: {}\n  - mail: { twice: true }");
    publish(world, "reorder", &later, false).await;
    let switch = surefoot_operator::Switch {
        app: app(),
        scope: SCOPE.into(),
        workflow: "supply".into(),
        activation: Some("nightly".to_owned()),
        enabled: false,
        why: "stock is being counted".to_owned(),
    };
    world.operator.switch(switch.clone()).await.unwrap();
    let on = surefoot_operator::Switch { enabled: true, why: "counted".to_owned(), ..switch };
    world.operator.switch(on).await.unwrap();
}

pub(crate) async fn publish(world: &World, workflow: &str, source: &str, activate: bool) {
    let mut limits = Limits::default();
    limits.loop_items = 10_000;
    let publish = PublishSource {
        app: app(),
        scope: Scope::from(SCOPE),
        workflow: WorkflowKey::from(workflow),
        source,
        manifest: &Manifest { limits, ..manifest() },
        bindings: &Bindings::new(),
        budget: Amounts::of([("calls", 10.0)]).unwrap(),
        activate,
    };
    world.operator.publish(&world.ids, publish).await.unwrap();
}

pub(crate) async fn emit(world: &World, key: &str) -> RunId {
    let event = Event::new("inventory.stockLow", json!({ "item": "bolt" })).dedupe_key(key);
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    world.operator.emit(&world.ids, emit).await.unwrap().runs[0]
}

pub(crate) async fn start(world: &World, inputs: Value) -> RunId {
    let event = Event::start("supply", inputs);
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    world.operator.emit(&world.ids, emit).await.unwrap().runs[0]
}

async fn footprints(world: &World) -> Vec<surefoot_kernel_core::plan::Footprint> {
    world.store.footprint_list(&app()).await.unwrap()
}

/// Claims all that is due, and loads this run.
pub(crate) async fn claim(world: &World, run: RunId) -> Drive {
    let footprints = footprints(world).await;
    let request = ClaimRequest {
        app: app(),
        mode: Mode::Execute,
        footprints: footprints.iter().map(|it| it.hash()).collect(),
        tree: None,
        limit: 100,
        session: world.session,
        nonce: u64::from_be_bytes(world.ids.event().to_bytes()[..8].try_into().unwrap()),
        lease: LEASE,
        plans: Plans::default(),
    };
    world.store.run_claim(request).await.unwrap();
    Drive::load(&world.store, run).await.unwrap()
}

pub(crate) fn answer_to(action: &str) -> Answer {
    match action {
        "pay" => succeeded(json!({ "id": "receipt-7" })),
        _ => succeeded(json!({})),
    }
}

pub(crate) async fn finish(world: &World, run: RunId) -> RunId {
    let mut drive = claim(world, run).await;
    let answer = |call: &surefoot_kernel_core::Call| Reply::Answer(answer_to(&call.action));
    drive.to_end(&world.store, answer).await.unwrap();
    run
}

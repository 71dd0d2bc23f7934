//! A small application without handlers: the tests answer in place of its actions.

use serde_json::{Value, json};
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Answer, App, ClaimRequest, Command, EffectClass, Event, Failure, Ids as _, Micros, Mode, Plans,
    ReconcileAnswer, Run, RunId, RunStore as _, Scope, SessionId, SessionReport, WorkflowKey,
};
use surefoot_language::{ActionDecl, Bindings, Limits, Manifest, TriggerDecl};
use surefoot_operator::{EmitEvent, Operator, PublishSource};
use surefoot_testkit::{Drive, MemoryStore, SeqIds};

pub(crate) const APP: &str = "shop";
pub(crate) const SCOPE: &str = "berlin";
pub(crate) const LEASE: Micros = Micros::from_secs(120);

/// Mail, then payment, then booking.
pub(crate) const REORDER: &str = r#"
inputs:
  item: { type: text, required: true }
triggers:
  stockLow:
    with: { item: "${{ trigger.item }}" }
steps:
  - mail: {}
  - pay: { item: "${{ inputs.item }}" }
    saveAs: receipt
  - book: { receipt: "${{ receipt.id }}" }
"#;

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) ids: SeqIds,
    pub(crate) operator: Operator,
    pub(crate) session: SessionId,
}

pub(crate) fn app() -> App {
    App::from(APP)
}

pub(crate) fn manifest() -> Manifest {
    let any = || json!({ "type": "object" });
    let action = |name: &str, class, output: Value| ActionDecl {
        name: name.to_owned(),
        about: String::new(),
        class,
        input: any(),
        output,
        retry: Default::default(),
        settle_after: None,
    };
    let receipt = json!({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"],
        "additionalProperties": false,
    });
    Manifest {
        id: "inventory".to_owned(),
        version: 1,
        limits: Limits::default(),
        inputs: Vec::new(),
        triggers: vec![TriggerDecl {
            kind: "stockLow".to_owned(),
            event: "inventory.stockLow".to_owned(),
            schema: json!({
                "type": "object",
                "properties": { "item": { "type": "string" } },
                "required": ["item"],
            }),
        }],
        actions: vec![
            action("mail", EffectClass::Idempotent, any()),
            action("pay", EffectClass::Ambiguous, receipt),
            action("book", EffectClass::Transactional, any()),
        ],
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let (store, ids) = (MemoryStore::new(), SeqIds::new());
        let operator = Operator::new(store.clone(), "ann");
        let session = ids.session();
        Self { store, ids, operator, session }
    }

    /// With the workflow `reorder` published and a worker that can run it.
    pub(crate) async fn published() -> Self {
        let world = Self::new();
        world.publish("reorder", REORDER).await;
        world.report(vec![world.footprint().await], 0).await;
        world
    }

    pub(crate) async fn publish(&self, workflow: &str, source: &str) {
        let publish = PublishSource {
            app: app(),
            scope: Scope::from(SCOPE),
            workflow: WorkflowKey::from(workflow),
            source,
            manifest: &manifest(),
            bindings: &Bindings::new(),
            budget: Default::default(),
            activate: true,
        };
        self.operator.publish(&self.ids, publish).await.unwrap();
    }

    pub(crate) async fn footprint(&self) -> Footprint {
        use surefoot_kernel_core::PlanStore as _;
        let (scope, key) = (Scope::from(SCOPE), WorkflowKey::from("reorder"));
        self.store.version_list(&app(), &scope, &key).await.unwrap()[0].footprint.clone()
    }

    /// A worker says that it lives.
    pub(crate) async fn report(&self, offers: Vec<Footprint>, stuck: u32) {
        let report = SessionReport {
            session: self.session,
            app: app(),
            name: "host 12".to_owned(),
            mode: Mode::Execute,
            offers,
            tree: None,
            slots: 4,
            busy: 1,
            stuck,
            ended: false,
        };
        self.store.session_report(report).await.unwrap();
    }

    pub(crate) async fn emit(&self, kind: &str) -> Vec<RunId> {
        let event = Event::new(kind, json!({ "item": "bolt" })).dedupe_key("bolt");
        let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
        self.operator.emit(&self.ids, emit).await.unwrap().runs
    }

    pub(crate) async fn emitted(&self) -> RunId {
        self.emit("inventory.stockLow").await[0]
    }

    /// Claims the run and goes on to its next call.
    pub(crate) async fn claimed(&self, run: RunId) -> (Drive, Option<Command>) {
        let request = ClaimRequest {
            app: app(),
            mode: Mode::Execute,
            footprints: vec![self.footprint().await.hash()],
            tree: None,
            limit: 1,
            session: self.session,
            nonce: u64::from_be_bytes(self.ids.event().to_bytes()[..8].try_into().unwrap()),
            lease: LEASE,
            plans: Plans::default(),
        };
        let claimed = self.store.run_claim(request).await.unwrap();
        assert_eq!(claimed.iter().map(|it| it.run.id).collect::<Vec<_>>(), [run]);
        let mut drive = Drive::load(&self.store, run).await.unwrap();
        let command = drive.to_call(&self.store).await.unwrap();
        (drive, command)
    }

    /// A worker takes all that is due.
    pub(crate) async fn claim_all(&self) {
        let footprints = self.store.footprint_list(&app()).await.unwrap();
        let request = ClaimRequest {
            app: app(),
            mode: Mode::Execute,
            footprints: footprints.iter().map(Footprint::hash).collect(),
            tree: None,
            limit: 10,
            session: self.session,
            nonce: u64::from_be_bytes(self.ids.event().to_bytes()[..8].try_into().unwrap()),
            lease: LEASE,
            plans: Plans::default(),
        };
        self.store.run_claim(request).await.unwrap();
    }

    pub(crate) async fn answered(&self, drive: &mut Drive, step: &str, answer: Answer) {
        drive.answer(&self.store, &step.into(), answer).await.unwrap();
    }

    /// The run, once its mail is sent and its payment is called.
    pub(crate) async fn paying(&self) -> (RunId, Drive) {
        let run = self.emitted().await;
        let (mut drive, _) = self.claimed(run).await;
        self.answered(&mut drive, "steps.0", succeeded(json!({}))).await;
        drive.to_call(&self.store).await.unwrap();
        (run, drive)
    }

    /// The run, once nobody can tell what became of its payment.
    pub(crate) async fn unknown(&self) -> RunId {
        let (run, mut drive) = self.paying().await;
        let no_answer = Answer::Unknown { message: "no answer".to_owned(), evidence: None };
        self.answered(&mut drive, "steps.1", no_answer).await;
        self.asked(run).await;
        run
    }

    /// A worker asks the provider, in vain.
    pub(crate) async fn asked(&self, run: RunId) {
        self.store.clock().advance(Micros::from_secs(2));
        let (mut drive, _) = self.claimed(run).await;
        let answer = ReconcileAnswer::Unknown { why: "no such service".to_owned() };
        let step = "steps.1".into();
        let input = surefoot_kernel_core::Input::Reconciled { step, answer };
        drive.take(&self.store, input).await.unwrap();
    }

    /// The run, once its mail failed for good.
    pub(crate) async fn failed(&self) -> RunId {
        let run = self.emitted().await;
        let (mut drive, _) = self.claimed(run).await;
        self.answered(&mut drive, "steps.0", failed(false)).await;
        run
    }

    pub(crate) async fn row(&self, run: RunId) -> Run {
        use surefoot_kernel_core::OperatorStore as _;
        self.store.run_detail(run).await.unwrap().unwrap().run
    }

    pub(crate) async fn revision(&self, run: RunId) -> u64 {
        self.row(run).await.revision
    }

    /// Verb, actor and reason of the audit rows, newest first.
    pub(crate) async fn audit(&self) -> Vec<(String, String, String)> {
        use surefoot_kernel_core::OperatorStore as _;
        let rows = self.store.audit_list(&app(), None, 100).await.unwrap();
        rows.into_iter().map(|row| (row.verb, row.actor, row.reason)).collect()
    }
}

pub(crate) fn succeeded(output: Value) -> Answer {
    Answer::Succeeded { output }
}

pub(crate) fn failed(retryable: bool) -> Answer {
    let failure = Failure::new("NO_ADDRESS", "the supplier has no address");
    Answer::Failed { failure, retryable, retry_after: None }
}

//! Models asked by durable tasks, on both stores.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use surefoot_actions::ai::{
    AI_CALLS, Ai, AiProvider, AiWorker, AiWorking, Classify, ClassifyMany, Extract, GenerateText,
};
use surefoot_kernel_core::{
    Commit, EffectKey, Event, RowInput, RunFilter, RunId, RunState, TaskState, TaskStore, TxStore,
    decide_row,
};
use surefoot_language::Module;
use surefoot_testkit::{Say, ScriptedProvider};
use surefoot_worker::{Kernel, Publication, Running};

use crate::database::{postgres, sqlite};
use crate::openai::Model;
use crate::server::{CANARY, builder};
use crate::thinker::clever;

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(20);

pub(crate) struct Office<S: TxStore + TaskStore> {
    kernel: Kernel<S>,
    working: Option<Running>,
    thinking: Option<AiWorking>,
}

impl<S: TxStore + TaskStore> Office<S> {
    async fn open(store: S, provider: impl AiProvider + 'static) -> Self {
        Self::wide(store, provider, 8).await
    }

    /// With so many calls at the same time.
    async fn wide(store: S, provider: impl AiProvider + 'static, calls: usize) -> Self {
        let thinking = AiWorker::new("office", store.clone(), provider)
            .scan_every(SOON)
            .again_after(Duration::from_millis(1))
            .concurrency(calls)
            .start();
        Self { thinking: Some(thinking), ..Self::without_model(store).await }
    }

    async fn without_model(store: S) -> Self {
        let ai = Ai::new(store.clone(), "small").allow_model("large");
        let module = Module::builder("office", 1)
            .idempotent(GenerateText::new(ai.clone()))
            .idempotent(Classify::new(ai.clone()))
            .idempotent(ClassifyMany::new(ai.clone()))
            .idempotent(Extract::new(ai))
            .build()
            .unwrap();
        let kernel = Kernel::new("office", store);
        let scope = kernel.scope("office");
        for (key, source) in [("all", ALL), ("one", ONE), ("many", MANY)] {
            let publication = Publication::new(key, source).budget(AI_CALLS, 2_000);
            scope.publish(module.manifest(), publication).await.unwrap();
        }
        let working = kernel.worker(module).concurrency(8).scan_every(SOON).start().await.unwrap();
        Self { kernel, working: Some(working), thinking: None }
    }

    async fn start(&self, workflow: &str, inputs: Value) -> RunId {
        let event = Event::start(workflow, inputs);
        self.kernel.scope("office").emit(event).await.unwrap().runs[0]
    }

    async fn end(&self, run: RunId) -> RunState {
        let ended = tokio::time::timeout(PATIENCE, self.kernel.await_run(run)).await;
        ended.unwrap().unwrap().state()
    }

    async fn task(&self, run: RunId) -> TaskState {
        let key = EffectKey::of(run, &"steps.0".into());
        self.kernel.store().task_find(&"office".into(), &key).await.unwrap().unwrap().state
    }

    /// All that is shown of a run.
    async fn shown(&self, run: RunId) -> String {
        format!("{:?}", self.kernel.store().run_detail(run).await.unwrap().unwrap())
    }

    async fn charged(&self, run: RunId) -> String {
        let detail = self.kernel.store().run_detail(run).await.unwrap().unwrap();
        detail.budget.counter(AI_CALLS).used.to_string()
    }

    /// How the children of a run stand, each with its task.
    async fn children(&self, parent: RunId) -> Vec<(RunState, TaskState)> {
        let filter = RunFilter { parent: Some(parent), limit: 1_000, ..RunFilter::default() };
        let mut states = Vec::new();
        for row in self.kernel.store().run_list(filter).await.unwrap().rows {
            states.push((row.run.state(), self.task(row.run.id).await));
        }
        states
    }

    /// Nobody works any more; what there is can be looked at.
    async fn close(&mut self) {
        if let Some(working) = self.working.take() {
            working.stop(Duration::from_secs(1)).await;
        }
        if let Some(thinking) = self.thinking.take() {
            thinking.stop().await;
        }
    }
}

async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, condition).await;
}

async fn until_within(patience: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(patience, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

const ONE: &str = r#"
inputs:
  prompt: { type: text, required: true }
steps:
  - generateText: { prompt: "${{ inputs.prompt }}" }
"#;

const MANY: &str = r#"
inputs:
  prompts: { type: list, required: true }
steps:
  - runWorkflows:
      workflow: one
      each: "${{ inputs.prompts }}"
      as: prompt
      inputs: { prompt: "${{ prompt }}" }
      parallel: 1000
"#;

const ALL: &str = r#"
steps:
  - generateText: { prompt: "Say hello", model: large, maxTokens: 20 }
    saveAs: hello
  - classify: { text: "${{ hello.text }}", labels: [friendly, rude] }
    saveAs: tone
  - classifyMany: { texts: ["${{ hello.text }}", other], labels: [friendly, rude] }
    saveAs: tones
  - extract:
      text: "bolt, 3 pieces"
      schema: { type: object, properties: { pieces: { type: integer } }, required: [pieces] }
    saveAs: found
  - generateText: { prompt: "${{ tone.label }} ${{ tones.labels[1] }} ${{ found.value.pieces }} ${{ hello.model }}" }
"#;

async fn all_four<S: TxStore + TaskStore>(store: S) {
    let provider = clever();
    let mut office = Office::open(store, provider.clone()).await;
    let run = office.start("all", json!({})).await;
    assert_eq!(office.end(run).await, RunState::Succeeded, "{}", office.shown(run).await);
    let shown = office.shown(run).await;
    assert!(shown.contains("you said: friendly rude 3 large"), "{shown}");
    assert_eq!(provider.asked(), 5);
    assert_eq!(office.charged(run).await, "5");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_gets_what_a_model_said_on_the_embedded_store() {
    all_four(sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_gets_what_a_model_said_on_the_shared_store() {
    let shared = postgres().await;
    all_four(shared.store.clone()).await;
}

/// Covers behaviour 216.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_line_is_tried_again_and_a_useless_answer_is_not() {
    let provider = ScriptedProvider::new(|request, attempt| {
        let told = &request.messages.last().unwrap().content;
        match (told.as_str(), attempt) {
            ("third time lucky", 3) => Say::Text("here".to_owned()),
            ("third time lucky" | "never", _) => Say::Transport("the line broke".to_owned()),
            _ => Say::Refused("no such model".to_owned()),
        }
    });
    let mut office = Office::open(sqlite().await, provider.clone()).await;
    for (prompt, state, code, asked) in [
        ("third time lucky", RunState::Succeeded, "here", 3),
        ("never", RunState::Failed, "AI_UNAVAILABLE", 3),
        ("refused", RunState::Failed, "AI_REFUSED", 1),
    ] {
        let before = provider.asked();
        let run = office.start("one", json!({ "prompt": prompt })).await;
        assert_eq!(office.end(run).await, state, "{prompt}");
        let shown = office.shown(run).await;
        assert!(shown.contains(code), "{prompt}: {shown}");
        assert_eq!(provider.asked() - before, asked, "{prompt}");
        assert_eq!(office.charged(run).await, "1", "{prompt}");
    }
    office.close().await;
    let useless = ScriptedProvider::new(|_, _| Say::Json(json!({ "label": "polite" })));
    let mut office = Office::open(sqlite().await, useless.clone()).await;
    let module_says = "steps:\n  - classify: { text: a, labels: [friendly, rude] }\n";
    let ai = Ai::new(office.kernel.store().clone(), "small");
    let manifest = Module::builder("office", 1).idempotent(Classify::new(ai)).build().unwrap();
    let publication = Publication::new("useless", module_says);
    office.kernel.scope("office").publish(manifest.manifest(), publication).await.unwrap();
    let run = office.start("useless", json!({})).await;
    assert_eq!(office.end(run).await, RunState::Failed);
    assert!(office.shown(run).await.contains("AI_OUTPUT_INVALID"));
    assert_eq!(useless.asked(), 1);
    office.close().await;
}

async fn cancel<S: TxStore + TaskStore>(store: S) {
    let provider = ScriptedProvider::new(|_, _| Say::Hang);
    let mut office = Office::open(store, provider.clone()).await;
    let run = office.start("one", json!({ "prompt": "think" })).await;
    until("the model is asked", async || provider.open() == 1).await;
    office.kernel.cancel(run, "enough").await.unwrap();
    assert_eq!(office.end(run).await, RunState::Canceled);
    until("the call is broken off", async || provider.open() == 0).await;
    assert_eq!(provider.broken_off(), 1);
    until("the task is canceled", async || office.task(run).await == TaskState::Canceled).await;
    office.close().await;
}

/// Covers behaviour 215.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_canceled_run_is_broken_off_on_the_embedded_store() {
    cancel(sqlite().await).await;
}

/// Covers behaviour 215.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_canceled_run_is_broken_off_on_the_shared_store() {
    let shared = postgres().await;
    cancel(shared.store.clone()).await;
}

/// Its task is another worker's at once, and no attempt is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_gives_its_tasks_back() {
    let (store, hanging) = (sqlite().await, ScriptedProvider::new(|_, _| Say::Hang));
    let mut office = Office::open(store.clone(), hanging.clone()).await;
    let run = office.start("one", json!({ "prompt": "think" })).await;
    until("the model is asked", async || hanging.open() == 1).await;
    office.thinking.take().unwrap().stop().await;
    assert_eq!((hanging.open(), hanging.broken_off()), (0, 1));
    assert_eq!(office.task(run).await, TaskState::Queued);
    let other = AiWorker::new("office", store, clever()).scan_every(SOON).start();
    assert_eq!(office.end(run).await, RunState::Succeeded);
    other.stop().await;
    office.close().await;
}

/// Tasks of one parent: some fail at first, some hang, the rest is answered late, after the cancel.
async fn crowd(count: usize) {
    let model = Model::start().await;
    let store = sqlite().await;
    let (provider, calls) = (model.provider(builder()), (count / 5).max(8));
    let mut office = Office::wide(store, provider, calls).await;
    let kinds = ["fine", "fails once", "hangs", "late"];
    let prompts: Vec<&str> = (0..count).map(|at| kinds[at % kinds.len()]).collect();
    let run = office.start("many", json!({ "prompts": prompts })).await;
    let expected = count.to_string();
    // A second for each, on a machine that does much else.
    let patience = PATIENCE.max(Duration::from_secs(count as u64));
    let charged = async || office.charged(run).await == expected;
    until_within(patience, "every step has asked", charged).await;
    // Half of them hang or are late.
    until_within(patience, "the model is busy", async || model.open() >= calls as u64).await;
    let canceled_at = Instant::now();
    office.kernel.cancel(run, "enough").await.unwrap();
    until("every call is broken off", async || model.open() == 0).await;
    let broken_off = canceled_at.elapsed();
    assert_eq!(office.end(run).await, RunState::Canceled);
    until_within(patience, "all children and their tasks have ended", async || {
        office.children(run).await.iter().all(|(state, task)| {
            state.is_terminal() && !matches!(task, TaskState::Queued | TaskState::Running)
        })
    })
    .await;
    // For people: a machine that does much else is no reason to fail.
    let all = canceled_at.elapsed();
    eprintln!(
        "{count} tasks, {calls} calls: broken off after {broken_off:?}, all over after {all:?}"
    );
    assert_eq!(model.open(), 0);
    let ended = office.children(run).await;
    assert_eq!(ended.len(), count);
    assert!(ended.iter().any(|(_, task)| *task == TaskState::Canceled));
    model.answer_what_was_late();
    let asked = model.asked();
    office.close().await;
    assert_eq!(model.asked(), asked, "nobody is asked for nobody");
    assert_eq!(office.children(run).await, ended, "what came late changed something");
    assert_eq!(office.charged(run).await, expected, "each is charged once");
}

/// Covers behaviour 215.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_tasks_follows_its_parent() {
    crowd(40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn a_thousand_tasks_follow_their_parent() {
    crowd(1_000).await;
}

/// The provider is asked with its key, streams, and repeats the key: it is kept nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_the_api_is_understood_and_its_key_is_kept_nowhere() {
    let model = Model::start().await;
    let store = sqlite().await;
    let mut office = Office::open(store.clone(), model.provider(builder())).await;
    for (prompt, state) in [
        ("fine", RunState::Succeeded),
        ("whole", RunState::Succeeded),
        ("fails once", RunState::Succeeded),
        ("breaks off", RunState::Failed),
        ("cut off", RunState::Failed),
        ("refused", RunState::Failed),
        ("echo", RunState::Succeeded),
    ] {
        let run = office.start("one", json!({ "prompt": prompt })).await;
        assert_eq!(office.end(run).await, state, "{prompt}: {}", office.shown(run).await);
        let shown = office.shown(run).await;
        assert!(!shown.contains("canary"), "{prompt}: {shown}");
        let is_cut = shown.contains("AI_OUTPUT_INVALID") && shown.contains("cut off at its limit");
        assert_eq!(is_cut, prompt == "cut off", "{shown}");
    }
    assert!(model.keys().iter().all(|key| key == &format!("Bearer {CANARY}")));
    let path = store.path().to_owned();
    office.close().await;
    for suffix in ["", "-wal"] {
        let mut file = path.clone().into_os_string();
        file.push(suffix);
        let bytes = std::fs::read(file).unwrap_or_default();
        assert!(!bytes.windows(6).any(|part| part == b"canary"), "{suffix}");
    }
}

async fn retried<S: TxStore + TaskStore>(store: S) {
    let provider = ScriptedProvider::new(|_, attempt| match attempt {
        1 => Say::Refused("no such model".to_owned()),
        _ => Say::Text("here".to_owned()),
    });
    let mut office = Office::open(store, provider.clone()).await;
    let run = office.start("one", json!({ "prompt": "think" })).await;
    assert_eq!(office.end(run).await, RunState::Failed);
    assert_eq!(provider.asked(), 1);
    let row = office.kernel.store().run_detail(run).await.unwrap().unwrap().run;
    let facts = decide_row(&row, RowInput::Retry, row.origin.created_at).unwrap();
    office.kernel.store().run_commit(Commit::new(&row, &facts)).await.unwrap();
    assert_eq!(office.end(run).await, RunState::Succeeded, "{}", office.shown(run).await);
    assert_eq!((provider.asked(), office.charged(run).await.as_str()), (2, "1"));
    office.close().await;
}

/// The same request under the same key, and no second charge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_asks_the_model_once_more_on_the_embedded_store() {
    retried(sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_asks_the_model_once_more_on_the_shared_store() {
    let shared = postgres().await;
    retried(shared.store.clone()).await;
}

/// Not every worker of an app can ask every model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tasks_of_a_lane_are_done_by_its_own_workers_alone() {
    let store = sqlite().await;
    let ai = Ai::new(store.clone(), "small").lane("left");
    let module = Module::builder("office", 1).idempotent(GenerateText::new(ai)).build().unwrap();
    let kernel = Kernel::new("office", store.clone());
    let scope = kernel.scope("office");
    scope.publish(module.manifest(), Publication::new("one", ONE)).await.unwrap();
    let working = kernel.worker(module).scan_every(SOON).start().await.unwrap();
    let event = Event::start("one", json!({ "prompt": "think" }));
    let run = scope.emit(event).await.unwrap().runs[0];
    let key = EffectKey::of(run, &"steps.0".into());
    let app = "office".into();
    until("there is a task", async || store.task_find(&app, &key).await.unwrap().is_some()).await;
    let worker = || AiWorker::new("office", store.clone(), clever());
    assert_eq!(worker().tick().await.unwrap(), 0);
    assert_eq!(worker().lane("right").tick().await.unwrap(), 0);
    assert_eq!(worker().lane("left").tick().await.unwrap(), 1);
    let ended = tokio::time::timeout(PATIENCE, kernel.await_run(run)).await.unwrap().unwrap();
    assert_eq!(ended.state(), RunState::Succeeded);
    working.stop(Duration::from_secs(1)).await;
}

//! Tasks behind a codec: what stands in the files, and what a lost key stops.

use serde_json::{Value, json};
use surefoot_codec::{CodecStore, WithCodec as _};
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{
    ClaimTasks, Micros, NewTask, RunId, StepKey, StoreError, Task, TaskEnd, TaskEnded, TaskState,
    TaskStore,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_testkit::suite::StoreFactory as _;
use surefoot_testkit::{Fault, FaultPlan, FaultyStore, MemoryStore, Method};

use crate::encoded::{TempFile, vault};
use crate::shop::{APP, MARK, SCOPE};
use crate::vault::Vault;

const LEASE: Micros = Micros::from_secs(60);

fn asked(run: u8, request: &Value) -> NewTask {
    NewTask {
        app: APP.into(),
        scope: SCOPE.into(),
        run: RunId::from_bytes([run; 16]),
        step: StepKey::from("steps.0"),
        kind: "ai".to_owned(),
        request: Payload::from_value(request).unwrap(),
    }
}

fn claim() -> ClaimTasks {
    ClaimTasks { app: APP.into(), kind: "ai".to_owned(), limit: 10, lease: LEASE }
}

async fn found(store: &impl TaskStore, run: u8) -> Result<Task, StoreError> {
    let key = asked(run, &Value::Null).key();
    store.task_find(&APP.into(), &key).await.map(Option::unwrap)
}

#[tokio::test]
async fn nothing_of_a_task_stands_in_the_files() {
    let file = TempFile::fresh().await;
    let store = file.open().await.with_codec(vault());
    let request = json!({ "prompt": format!("{MARK}-request") });
    for run in [1, 2] {
        let task = store.task_open(asked(run, &request)).await.unwrap();
        assert_eq!(task.request.value(), &request);
    }
    let mut taken = store.task_claim(claim()).await.unwrap();
    taken.sort_by_key(|task| task.run);
    assert!(taken.iter().all(|task| task.request.value() == &request));
    let output = Payload::parse(&format!(r#"{{ "text":  "{MARK}-output" }}"#)).unwrap();
    // As long as a message may be: the text that is kept is longer.
    let failed = TaskEnd::failed("AI_REFUSED", format!("{MARK}-message ").repeat(10_000));
    let TaskEnd::Failed { message, .. } = failed.clone() else { unreachable!() };
    let done = TaskEnd::Succeeded { output: output.clone() };
    for (task, end) in taken.iter().zip([done, failed]) {
        for ended in [TaskEnded::Recorded, TaskEnded::Known] {
            assert_eq!(store.task_end(task.hold(), end.clone()).await.unwrap(), ended);
        }
    }
    assert_eq!(found(&store, 1).await.unwrap().state, TaskState::Succeeded { output });
    let state = TaskState::Failed { code: "AI_REFUSED".into(), message };
    assert_eq!(found(&store, 2).await.unwrap().state, state);
    let kept = store.inner().task_find(&APP.into(), &taken[0].key()).await.unwrap().unwrap();
    assert!(kept.request.value().as_str().unwrap().starts_with("surefoot/encoded/1/scope:k1."));
    for entry in std::fs::read_dir(file.folder()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let is_there = bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes());
        assert!(!is_there, "{} has a secret", path.display());
    }
}

/// The answer to the first call is lost, and the second one has another text for the same end.
#[tokio::test]
async fn an_end_whose_answer_was_lost_is_known_though_its_text_is_another() {
    let plan = FaultPlan::new();
    let store = FaultyStore::new(MemoryStore::default(), plan.clone()).with_codec(vault());
    store.task_open(asked(1, &json!("think"))).await.unwrap();
    let task = store.task_claim(claim()).await.unwrap().remove(0);
    plan.at(Method::TaskEnd, 1, Fault::LostAnswer);
    let done =
        |output: i64| TaskEnd::Succeeded { output: Payload::from_value(&json!(output)).unwrap() };
    let lost = store.task_end(task.hold(), done(7)).await.unwrap_err();
    assert!(matches!(lost, StoreError::UnknownOutcome(_)), "{lost}");
    assert_eq!(store.task_end(task.hold(), done(7)).await.unwrap(), TaskEnded::Known);
    assert_eq!(store.task_end(task.hold(), done(8)).await.unwrap(), TaskEnded::Lost);
}

fn keys(names: &[(&str, u8)], current: &str) -> Vault {
    Vault::new(names.iter().map(|(name, key)| ((*name).to_owned(), [*key; 32])), current)
}

async fn with(file: &TempFile, vault: Vault) -> CodecStore<SqliteStore> {
    file.open().await.with_codec(vault)
}

/// A worker of tasks without the key goes on with all others, and the attempts of this one are not used up by it.
#[tokio::test]
async fn a_lost_key_stops_its_tasks_and_no_others() {
    let file = TempFile::fresh().await;
    let old = with(&file, keys(&[("k1", 1)], "k1")).await;
    old.task_open(asked(1, &json!("old"))).await.unwrap();
    let new = with(&file, keys(&[("k2", 2)], "k2")).await;
    new.task_open(asked(2, &json!("new"))).await.unwrap();
    for _ in 0..5 {
        let taken = new.task_claim(claim()).await.unwrap();
        assert!(taken.iter().all(|task| task.run == RunId::from_bytes([2; 16])), "{taken:?}");
        file.pass_time(LEASE).await;
    }
    let lost = found(&new, 1).await.unwrap_err();
    let StoreError::Corrupt { run, what } = &lost else { panic!("{lost}") };
    assert_eq!(*run, RunId::from_bytes([1; 16]));
    assert!(
        what.starts_with("its task_request cannot be decoded: it needs the key `k1`"),
        "{what}"
    );
    assert_eq!(
        new.inner()
            .task_find(&APP.into(), &asked(1, &Value::Null).key())
            .await
            .unwrap()
            .unwrap()
            .failures,
        0
    );

    let both = with(&file, keys(&[("k1", 1), ("k2", 2)], "k2")).await;
    let taken = both.task_claim(claim()).await.unwrap();
    let task = taken.iter().find(|task| task.run == *run).unwrap();
    assert_eq!((task.request.value(), task.failures), (&json!("old"), 1));
}

//! The file that all processes share, as the parent looks at it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use surefoot_kernel_core::{
    Attention, Commit, EventFilter, Fact, Ids, LoadRequest, OperatorStore, Phase, PlanStore,
    Publish, RowInput, Run, RunFilter, RunId, RunState, RunStore, Verdict, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use surefoot_store_sqlite::sqlx::{self, Connection, Row, SqliteConnection};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};
use surefoot_testkit::suite::check_invariants;
use surefoot_worker::{Kernel, SystemIds, Worker};
use tempfile::TempDir;

use crate::app::{APP, LEASE, Place, SCOPE, SLOW, SLOW_SOURCE, SOURCE, WORKFLOW, module, table};

pub(crate) struct File {
    pub(crate) place: Place,
    pub(crate) store: SqliteStore,
    _folder: TempDir,
    /// Everything that any child was told is done.
    acknowledged: Acknowledged,
}

#[derive(Default)]
struct Acknowledged {
    runs: BTreeSet<RunId>,
    ended: BTreeMap<RunId, RunState>,
    rows: BTreeSet<String>,
}

impl File {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path());
        let store = SqliteStore::open_with(SqliteOptions::new(place.store())).await.unwrap();
        let mut conn = SqliteConnection::connect(place.store().to_str().unwrap()).await.unwrap();
        sqlx::query(table()).execute(&mut conn).await.unwrap();
        let file = Self { place, store, _folder: folder, acknowledged: Acknowledged::default() };
        file.publish(WORKFLOW, SOURCE).await;
        file.publish(SLOW, SLOW_SOURCE).await;
        file
    }

    async fn publish(&self, workflow: &str, source: &str) {
        let module = module(&self.place);
        let publish = Publish {
            app: APP.into(),
            scope: SCOPE.into(),
            workflow: workflow.into(),
            version: SystemIds.version(),
            plan: compile_and_bind(source, module.manifest(), &Bindings::new()).unwrap(),
            source: source.to_owned(),
            budget: Default::default(),
            activate: true,
            authorization: None,
            author: "ann".to_owned(),
        };
        self.store.version_publish(publish).await.unwrap();
    }

    /// A process that nobody kills: the parent itself.
    pub(crate) fn kernel(&self) -> Kernel<SqliteStore> {
        Kernel::new(APP, self.store.clone())
    }

    pub(crate) fn worker(&self) -> Worker {
        let builder = self.kernel().worker(module(&self.place));
        builder.lease(LEASE).scan_every(Duration::from_millis(20)).build().unwrap()
    }

    /// Whether nobody holds the file's write lock.
    pub(crate) async fn is_free(&self) -> bool {
        let options = SqliteConnectOptions::new().filename(self.place.store());
        let options = options.busy_timeout(Duration::ZERO);
        let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut conn).await.is_ok()
    }

    pub(crate) async fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut cursor = None;
        loop {
            let filter = RunFilter { limit: 1_000, cursor, ..RunFilter::default() };
            let page = self.store.run_list(filter).await.unwrap();
            runs.extend(page.rows.into_iter().map(|row| row.run));
            cursor = page.next;
            if cursor.is_none() {
                return runs;
            }
        }
    }

    pub(crate) async fn run(&self, run: RunId) -> Run {
        let request = LoadRequest { run, after: None };
        self.store.run_load(request).await.unwrap().unwrap().run
    }

    pub(crate) async fn facts(&self, run: RunId) -> Vec<Fact> {
        let request = LoadRequest { run, after: None };
        let stored = self.store.run_load(request).await.unwrap().unwrap();
        stored.journal.unwrap().into_iter().flat_map(|entry| entry.facts).collect()
    }

    /// Takes in what a child was told before its end.
    pub(crate) fn heard(&mut self, said: &[String]) {
        for line in said {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("run"), Some(run), None) => {
                    self.acknowledged.runs.insert(run.parse().unwrap());
                }
                (Some("ended"), Some(run), Some(state)) => {
                    self.acknowledged.ended.insert(run.parse().unwrap(), state.parse().unwrap());
                }
                (Some("row"), Some(row), None) => {
                    self.acknowledged.rows.insert(row.to_owned());
                }
                // What the test runner says.
                _ => {}
            }
        }
    }

    /// What must hold after every kill.
    pub(crate) async fn check(&self) {
        check_invariants(&self.store).await;
        let runs: BTreeMap<RunId, Run> =
            self.runs().await.into_iter().map(|run| (run.id, run)).collect();
        for run in &self.acknowledged.runs {
            assert!(runs.contains_key(run), "{run} was acknowledged and is gone");
        }
        for (run, state) in &self.acknowledged.ended {
            let now = runs[run].state();
            assert!(now == *state || *state == RunState::NeedsAttention, "{run} {state}: {now}");
        }
        self.check_rows(&runs).await;
        self.check_payments();
    }

    /// A row of a transaction is there once, and only with what committed in the same transaction.
    async fn check_rows(&self, runs: &BTreeMap<RunId, Run>) {
        let mut conn =
            SqliteConnection::connect(self.place.store().to_str().unwrap()).await.unwrap();
        let rows =
            sqlx::query("SELECT run, step, count(*) AS count FROM booked GROUP BY run, step");
        let rows = rows.fetch_all(&mut conn).await.unwrap();
        let mut orders = BTreeSet::new();
        let mut booked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let (run, step, count): (String, String, i64) =
                (row.get("run"), row.get("step"), row.get("count"));
            assert_eq!(count, 1, "{run} {step} is there {count} times");
            if step == "order" {
                orders.insert(run);
            } else {
                booked.entry(run).or_default().insert(step);
            }
        }
        for row in &self.acknowledged.rows {
            assert!(orders.contains(row), "row {row} was acknowledged and is gone");
        }
        let is_in_transaction = |key: &String| {
            key.split_once('-').is_some_and(|(_, nth)| nth.parse::<u64>().unwrap() % 2 == 1)
        };
        let events: BTreeSet<String> =
            self.dedupe_keys().await.into_iter().filter(is_in_transaction).collect();
        assert_eq!(orders, events, "an event and its row are there together or not at all");
        for run in runs.keys() {
            let facts = self.facts(*run).await;
            let recorded = facts.iter().filter_map(booked_step).collect();
            let there = booked.remove(&run.to_string()).unwrap_or_default();
            assert_eq!(there, recorded, "rows and outcomes of {run} differ");
        }
        assert!(booked.is_empty(), "rows of no run: {booked:?}");
    }

    async fn dedupe_keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let filter = EventFilter { limit: 1_000, cursor, ..EventFilter::default() };
            let page = self.store.event_list(filter).await.unwrap();
            keys.extend(page.rows.into_iter().filter_map(|row| row.dedupe_key));
            cursor = page.next;
            if cursor.is_none() {
                return keys;
            }
        }
    }

    /// Nobody pays twice under one key.
    fn check_payments(&self) {
        let payments = self.place.lines("payments");
        let keys: BTreeSet<&String> = payments.iter().collect();
        assert_eq!(keys.len(), payments.len(), "paid twice: {payments:?}");
    }

    /// A last life ends everything. What nobody can know is said by a person, and only what nobody can know.
    pub(crate) async fn drain(&self) {
        let running = self.worker().start().await.unwrap();
        let began = Instant::now();
        loop {
            let open: Vec<Run> =
                self.runs().await.into_iter().filter(|run| !run.state().is_terminal()).collect();
            if open.is_empty() {
                break;
            }
            for run in open {
                if run.state() == RunState::NeedsAttention {
                    self.say_that_nothing_happened(run.id).await;
                }
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "not drained: {:?}",
                self.runs().await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        running.stop(Duration::from_secs(5)).await;
        self.check().await;
        let payments = self.place.lines("payments");
        for run in self.runs().await {
            assert_eq!(run.state(), RunState::Succeeded, "{run:?}");
            if run.origin.workflow.as_str() == WORKFLOW {
                let key = run.effect_key(&"steps.2".into());
                assert!(payments.iter().any(|paid| paid == key.as_str()), "{run:?} is not paid");
            }
        }
        for mail in self.place.lines("mails") {
            let (run, key) = mail.split_once(' ').unwrap();
            let run: RunId = run.parse().unwrap();
            let expected = surefoot_kernel_core::EffectKey::of(run, &"steps.1".into());
            assert_eq!(expected.as_str(), key);
        }
    }

    async fn say_that_nothing_happened(&self, run: RunId) {
        let run = self.run(run).await;
        let Phase::NeedsAttention(Attention { effect: Some(effect), .. }) = &run.phase else {
            panic!("a person is asked, and no effect is open: {run:?}");
        };
        let key = run.effect_key(&effect.step);
        let is_paid = self.place.lines("payments").iter().any(|paid| paid == key.as_str());
        assert!(!is_paid, "a person is asked what the provider knows: {run:?}");
        let input = RowInput::Resolve { step: effect.step.clone(), verdict: Verdict::NotPerformed };
        let now = self.store.store_now().await.unwrap();
        let facts = decide_row(&run, input, now).unwrap();
        self.store.run_commit(Commit::new(&run, &facts)).await.unwrap();
    }
}

/// The step of a booking's outcome.
fn booked_step(fact: &Fact) -> Option<String> {
    let Fact::StepCompleted { step, output, .. } = fact else { return None };
    (*output == serde_json::json!("booked")).then(|| step.to_string())
}

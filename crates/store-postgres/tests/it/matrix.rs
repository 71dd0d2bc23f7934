//! The crash matrix, on a real server: at each call to the store, and on the line below it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use surefoot_kernel_core::{Micros, StoreError};
use surefoot_store_postgres::{PostgresStore, PostgresTx, sqlx};
use surefoot_testkit::matrix::{
    Attended, Canceled, EveryClass, Report, Scenario, WithChildren, crash_matrix,
    crash_matrix_in_steps, disturbed_matrix,
};
use surefoot_testkit::servers::{Fate, PostgresProxy, Trap};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};

use crate::database::Database;
use crate::suite::{NEWEST, OwnDatabase};

type Newest = OwnDatabase<{ NEWEST }>;

const AT_ONCE: usize = 4;

/// Without failures, and of the same points as in memory.
fn check(report: &Report, points_and_cases: (usize, usize)) {
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    assert_eq!((report.points.len(), report.cases), points_and_cases);
}

/// Some of the cases; the others are `soak`.
async fn some<S: Scenario<Newest>>(scenario: S, step: usize, points_and_cases: (usize, usize)) {
    check(&crash_matrix_in_steps::<Newest, S>(scenario, AT_ONCE, step).await, points_and_cases);
}

/// All of them, with the table that is in the documentation.
async fn all<S: Scenario<Newest>>(scenario: S, cases: (usize, usize), documented: &str) {
    let report = crash_matrix::<Newest, S>(scenario, AT_ONCE).await;
    check(&report, cases);
    let table = report.table.to_string();
    assert!(documented.ends_with(&table), "not what is documented:\n{table}");
}

/// Covers field fault 1.
/// Covers field fault 5.
/// Covers field fault 11.
/// Covers field fault 24.
/// Covers field fault 26.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_points_keep_the_contract() {
    some(EveryClass::new(), 17, (34, 21)).await;
}

/// Covers field fault 140.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_points_of_a_tree_keep_the_contract() {
    some(WithChildren::new(), 31, (49, 15)).await;
}

/// Covers behaviours 139, 140.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_points_with_people_keep_the_contract() {
    some(Attended::new(), 79, (139, 17)).await;
}

/// Covers behaviour 108.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_points_of_a_cancel_keep_the_contract() {
    some(Canceled::new(), 27, (46, 17)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn every_crash_point_keeps_the_contract() {
    let documented = include_str!("../../../../docs/crash-points.md");
    all(EveryClass::new(), (34, 352), documented).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn every_crash_point_of_a_tree_keeps_the_contract() {
    let documented = include_str!("../../../../docs/crash-points-children.md");
    all(WithChildren::new(), (49, 452), documented).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn every_crash_point_with_people_keeps_the_contract() {
    let documented = include_str!("../../../../docs/crash-points-attention.md");
    all(Attended::new(), (139, 1_323), documented).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn every_crash_point_of_a_cancel_keeps_the_contract() {
    let documented = include_str!("../../../../docs/crash-points-cancel.md");
    all(Canceled::new(), (46, 442), documented).await;
}

/// The plan of the tests below: each data set has one statement more go through before it loses one.
static CASES: AtomicU64 = AtomicU64::new(0);
static STEP: AtomicU64 = AtomicU64::new(1);
/// The traps of all data sets.
static TRAPS: Mutex<Vec<Trap>> = Mutex::new(Vec::new());

/// A database whose processes talk to it through a proxy, which loses one of their statements, its answer, or both ends
/// of the line while the server works, or has the server refuse it.
struct Disturbed {
    database: Database,
    offset: Arc<AtomicI64>,
    proxy: PostgresProxy,
    opened: AtomicU64,
}

/// The last one is a full disk.
const FATES: [Fate; 4] = [Fate::LoseRequest, Fate::LoseAnswer, Fate::ComeLate, Fate::Fail("53100")];

impl StoreFactory for Disturbed {
    type Store = PostgresStore;

    async fn fresh() -> Self {
        let database = Database::new().await;
        let mut conn = database.raw().await;
        let table = "CREATE TABLE app_table (key text PRIMARY KEY, value text NOT NULL)";
        sqlx::query(table).execute(&mut conn).await.unwrap();
        let proxy = database.proxy();
        let case = CASES.fetch_add(1, Ordering::SeqCst);
        // The first one is undisturbed.
        if let Some(disturbed) = case.checked_sub(1) {
            let nth = disturbed * STEP.load(Ordering::SeqCst) + 1;
            let fate = FATES[usize::try_from(disturbed).unwrap() % FATES.len()];
            let trap = proxy.trap_nth(nth, "", fate);
            // What comes late races with whoever looks.
            trap.release();
            TRAPS.lock().unwrap().push(trap);
        }
        let offset = Arc::new(AtomicI64::new(0));
        Self { database, offset, proxy, opened: AtomicU64::new(0) }
    }

    /// The first two handles are the test's own.
    async fn open(&self) -> PostgresStore {
        let options = match self.opened.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => self.database.options(),
            _ => self.database.through(&self.proxy),
        };
        let options = options.clock_offset(self.offset.clone());
        loop {
            match PostgresStore::open_with(options.clone()).await {
                Ok(store) => return store,
                // A process that cannot start is started again.
                Err(error) => println!("it does not start: {error}"),
            }
        }
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut PostgresTx, key: &str, value: &str) -> Result<(), StoreError> {
        Newest::write_row(tx, key, value).await
    }

    async fn read_row(store: &PostgresStore, key: &str) -> Option<String> {
        Newest::read_row(store, key).await
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}

/// Loses every `step`th statement of a scenario, one a case, and almost all of them are reached.
async fn disturb<S: Scenario<Disturbed>>(scenario: S, step: u64, cases: usize) {
    STEP.store(step, Ordering::SeqCst);
    CASES.store(0, Ordering::SeqCst);
    TRAPS.lock().unwrap().clear();
    let report = disturbed_matrix::<Disturbed, S>(scenario, AT_ONCE, cases).await;
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    let caught: u64 = TRAPS.lock().unwrap().iter().map(Trap::caught).sum();
    println!("{caught} of {cases} statements were lost");
    assert!(caught * 10 >= cases as u64 * 8, "{caught} of {cases} statements were lost");
}

/// Covers field fault 26.
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_statement_is_lost_the_contract_is_kept() {
    disturb(EveryClass::new(), 6, 20).await;
}

/// Covers field fault 38.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_statement_of_a_tree_is_lost_the_contract_is_kept() {
    disturb(WithChildren::new(), 12, 18).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn every_statement_that_is_lost_leaves_the_contract_kept() {
    disturb(EveryClass::new(), 1, 120).await;
}

//! What the processes run. What happens outside of the store is written to tables beside it, each row in a transaction of
//! its own: it outlives every kill.

use std::time::Duration;

use sqlx::{PgConnection, Row};
use surefoot_kernel_core::plan::RetryPolicy;
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Idempotent, IdempotentCx, Module, On,
    PlanResult, Planned, ReconcileResult, Reconciled, StepCx, Transactional, TransactionalCx,
};
use surefoot_store_postgres::{PostgresTx, sqlx};

use crate::database::raw_of;

pub(crate) const APP: &str = "shop";
pub(crate) const SCOPE: &str = "north";
pub(crate) const ORDER: &str = "order";
pub(crate) const SLOW: &str = "slow";
pub(crate) const HELD: &str = "held";

pub(crate) const WORKFLOWS: [(&str, &str); 3] = [
    (ORDER, "steps:\n  - book: {}\n  - mail: {}\n  - pay: {}\n  - book: {}\n"),
    (SLOW, "steps:\n  - wait: {}\n"),
    (HELD, "steps:\n  - hold: {}\n"),
];

/// Of a worker, by the clock of all processes, which the test moves.
pub(crate) const LEASE: Duration = Duration::from_secs(120);

/// The clock of record reads what the test has added, in every process.
pub(crate) const TABLES: &str = "
CREATE TABLE gained (micros bigint NOT NULL);
INSERT INTO gained VALUES (0);
CREATE TABLE booked (run text NOT NULL, step text NOT NULL);
CREATE TABLE did (what text NOT NULL, key text NOT NULL, process bigint NOT NULL);
CREATE OR REPLACE FUNCTION surefoot.clock() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        + (SELECT micros FROM public.gained)';
";

/// The world outside, by the database that it is in.
#[derive(Debug, Clone)]
pub(crate) struct Outside(pub(crate) String);

impl Outside {
    /// Writes a line that survives.
    pub(crate) async fn did(&self, what: &str, key: &str) -> Result<(), sqlx::Error> {
        let me = i64::from(std::process::id());
        let query = sqlx::query("INSERT INTO did VALUES ($1, $2, $3)").bind(what).bind(key);
        query.bind(me).execute(&mut raw_of(&self.0).await).await.map(drop)
    }

    /// Who did it, with which key.
    pub(crate) async fn who(&self, what: &str) -> Vec<(String, i64)> {
        let mut conn = raw_of(&self.0).await;
        who(&mut conn, what).await
    }

    /// Until somebody has done it.
    pub(crate) async fn until(&self, what: &str) {
        let mut conn = raw_of(&self.0).await;
        for _ in 0..60_000 {
            if !who(&mut conn, what).await.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("nobody did this: {what}");
    }
}

async fn who(conn: &mut PgConnection, what: &str) -> Vec<(String, i64)> {
    let query = sqlx::query("SELECT key, process FROM did WHERE what = $1").bind(what);
    let rows = query.fetch_all(conn).await.unwrap();
    rows.iter().map(|row| (row.get("key"), row.get("process"))).collect()
}

pub(crate) fn module(outside: &Outside) -> Module<On<PostgresTx>> {
    Module::builder("shop", 1)
        .transactional(Book)
        .transactional(Hold(outside.clone()))
        .idempotent(Mail(outside.clone()))
        .idempotent(Wait(outside.clone()))
        .ambiguous(Pay(outside.clone()))
        .build()
        .unwrap()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A kill counts as a failure of the run, and there are many.
fn patient() -> RetryPolicy {
    RetryPolicy { attempts: 100, ..RetryPolicy::default() }
}

async fn book(cx: &mut TransactionalCx<'_, PostgresTx>) -> Result<(), sqlx::Error> {
    let (run, step) = (cx.run_id().to_string(), cx.step_key().to_string());
    let insert = sqlx::query("INSERT INTO booked (run, step) VALUES ($1, $2)").bind(run).bind(step);
    insert.execute(cx.tx()).await.map(drop)
}

/// Nothing in the table keeps a second row of the same step out.
struct Book;

impl Transactional<PostgresTx> for Book {
    const NAME: &'static str = "book";
    type Input = Nothing;
    type Output = String;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, PostgresTx>,
        _: Nothing,
    ) -> ActionResult<String> {
        book(cx).await?;
        Ok("booked".to_owned())
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Book"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

/// Books, and keeps the transaction open until the test has seen it; the first one only.
struct Hold(Outside);

impl Transactional<PostgresTx> for Hold {
    const NAME: &'static str = "hold";
    type Input = Nothing;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, PostgresTx>, _: Nothing) -> ActionResult<i64> {
        book(cx).await?;
        let is_first = self.0.who("hold").await.is_empty();
        self.0.did("hold", cx.step_key().as_str()).await?;
        if is_first {
            self.0.until("go on").await;
        }
        Ok(i64::from(std::process::id()))
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<i64> {
        Ok(Planned::new("Hold"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

struct Mail(Outside);

impl Idempotent for Mail {
    const NAME: &'static str = "mail";
    type Input = Nothing;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<String> {
        self.0.did("mail", cx.effect_key().as_str()).await?;
        Ok("sent".to_owned())
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Write"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

/// Takes as long as the test says, the first time; does not listen to its token.
struct Wait(Outside);

impl Idempotent for Wait {
    const NAME: &'static str = "wait";
    type Input = Nothing;
    type Output = i64;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<i64> {
        let is_first = self.0.who("wait").await.is_empty();
        self.0.did("wait", cx.effect_key().as_str()).await?;
        if is_first {
            self.0.until("go on").await;
        }
        Ok(i64::from(std::process::id()))
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<i64> {
        Ok(Planned::new("Wait"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

/// Each call is carried out, also a second one under the same key.
struct Pay(Outside);

impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(300);
    type Input = Nothing;
    type Output = String;

    async fn run(&self, cx: &AmbiguousCx, _: Nothing) -> AmbiguousResult<String> {
        self.0.did("pay", cx.effect_key().as_str()).await?;
        Ok("paid".to_owned())
    }

    async fn reconcile(&self, cx: &AmbiguousCx, _: Nothing) -> ReconcileResult<String> {
        let is_paid =
            self.0.who("pay").await.iter().any(|(key, _)| key == cx.effect_key().as_str());
        Ok(if is_paid { Reconciled::Succeeded("paid".to_owned()) } else { Reconciled::NotFound })
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Pay"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

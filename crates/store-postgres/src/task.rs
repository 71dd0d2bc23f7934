//! Tasks: work that a process of its own does for a waiting step.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{
    App, ClaimTasks, EffectKey, Micros, NewTask, RunId, Scope, SignalError, StepKey, StoreError,
    Task, TaskEnd, TaskEnded, TaskHold, TaskState, TaskStore, Timestamp,
};

use crate::error::{Fault, Said};
use crate::event::signal;
use crate::keys::Key as _;
use crate::plan::list::read_key;
use crate::sql;
use crate::store::PostgresStore;
use crate::writer::{Cx, Lane, Op};

#[async_trait]
impl TaskStore for PostgresStore {
    async fn task_open(&self, new: NewTask) -> Result<Task, StoreError> {
        // Most are there already: a step asks again whenever it is woken.
        let (app, key) = (new.app.clone(), new.key());
        let known = self.read(move |conn| {
            Box::pin(async move { one(conn, sql::TASK_KNOWN, &app, &key).await })
        });
        match known.await? {
            Some(known) => Ok(known),
            None => self.writer().ask(Open(new)).await,
        }
    }

    async fn task_find(&self, app: &App, key: &EffectKey) -> Result<Option<Task>, StoreError> {
        let (app, key) = (app.clone(), key.clone());
        let found = self.read(move |conn| Box::pin(async move { find(conn, &app, &key).await }));
        found.await
    }

    async fn task_claim(&self, claim: ClaimTasks) -> Result<Vec<Task>, StoreError> {
        let asked = claim.clone();
        let any = self
            .read_now(move |conn, now| Box::pin(async move { is_due(conn, &asked, now).await }));
        if any.await? { self.writer().ask(Claim(claim)).await } else { Ok(Vec::new()) }
    }

    async fn task_keep(
        &self,
        held: Vec<TaskHold>,
        lease: Micros,
    ) -> Result<Vec<TaskHold>, StoreError> {
        if held.is_empty() {
            return Ok(held);
        }
        self.writer().ask(Keep { held, lease }).await
    }

    async fn task_end(&self, hold: TaskHold, end: TaskEnd) -> Result<TaskEnded, StoreError> {
        self.writer().ask(End { hold, end }).await
    }

    async fn task_sweep(&self, app: &App, limit: u32) -> Result<u32, StoreError> {
        let asked = app.clone();
        let unwanted =
            self.read(move |conn| Box::pin(async move { unwanted(conn, &asked, limit).await }));
        // Looked for without a lock: a run that has ended stays so.
        let unwanted = unwanted.await?;
        if unwanted.is_empty() {
            return Ok(0);
        }
        self.writer().ask(Cancel { app: app.clone(), unwanted }).await
    }
}

struct Open(NewTask);

impl Op for Open {
    type Out = Task;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(&'a self, conn: &'a mut PgConnection, cx: Cx) -> Result<Task, StoreError> {
        Ok(open(conn, &self.0, cx.now).await?)
    }
}

async fn open(conn: &mut PgConnection, new: &NewTask, now: Timestamp) -> Result<Task, Fault> {
    let key = new.key();
    sqlx::query(sql::TASK_OPEN)
        .bind(new.app.as_str())
        .bind(key.as_str())
        .bind(new.scope.as_str())
        .bind(new.run.key())
        .bind(new.step.as_str())
        .bind(&new.kind)
        .bind(new.request.text())
        .bind(now.micros())
        .execute(&mut *conn)
        .await?;
    find(conn, &new.app, &key).await?.ok_or_else(unreadable)
}

async fn find(conn: &mut PgConnection, app: &App, key: &EffectKey) -> Result<Option<Task>, Fault> {
    one(conn, sql::TASK_BY_KEY, app, key).await
}

async fn one(
    conn: &mut PgConnection,
    statement: &'static str,
    app: &App,
    key: &EffectKey,
) -> Result<Option<Task>, Fault> {
    let query = sqlx::query(statement).bind(app.as_str()).bind(key.as_str());
    query.fetch_optional(conn).await?.as_ref().map(read).transpose()
}

async fn is_due(
    conn: &mut PgConnection,
    claim: &ClaimTasks,
    now: Timestamp,
) -> Result<bool, Fault> {
    let query = sqlx::query(sql::TASK_DUE).bind(claim.app.as_str()).bind(now.micros());
    Ok(query.bind(&claim.kind).fetch_optional(conn).await?.is_some())
}

struct Claim(ClaimTasks);

impl Op for Claim {
    type Out = Vec<Task>;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Vec<Task>, StoreError> {
        Ok(claim(conn, &self.0, cx.now).await?)
    }
}

async fn claim(
    conn: &mut PgConnection,
    claim: &ClaimTasks,
    now: Timestamp,
) -> Result<Vec<Task>, Fault> {
    let rows = sqlx::query(sql::TASK_CLAIM)
        .bind(now.plus(claim.lease).micros())
        .bind(claim.app.as_str())
        .bind(now.micros())
        .bind(&claim.kind)
        .bind(i64::from(claim.limit))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

struct Keep {
    held: Vec<TaskHold>,
    lease: Micros,
}

impl Op for Keep {
    type Out = Vec<TaskHold>;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Vec<TaskHold>, StoreError> {
        Ok(keep(conn, self, cx.now).await?)
    }
}

async fn keep(
    conn: &mut PgConnection,
    Keep { held, lease }: &Keep,
    now: Timestamp,
) -> Result<Vec<TaskHold>, Fault> {
    let mut kept = Vec::with_capacity(held.len());
    for hold in held {
        let query = sqlx::query(sql::TASK_KEEP).bind(now.plus(*lease).micros());
        let query = query.bind(hold.app.as_str()).bind(hold.key.as_str());
        let done = query.bind(i64::from(hold.attempt)).execute(&mut *conn).await?;
        if done.rows_affected() == 1 {
            kept.push(hold.clone());
        }
    }
    Ok(kept)
}

struct End {
    hold: TaskHold,
    end: TaskEnd,
}

impl Op for End {
    type Out = TaskEnded;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<TaskEnded, StoreError> {
        let recorded = record(conn, self, cx.now).await?;
        let ended = if recorded {
            TaskEnded::Recorded
        } else if is_known(conn, self).await? {
            TaskEnded::Known
        } else {
            return Ok(TaskEnded::Lost);
        };
        wake(conn, self, cx.now).await?;
        Ok(ended)
    }
}

async fn record(
    conn: &mut PgConnection,
    End { hold, end }: &End,
    now: Timestamp,
) -> Result<bool, Fault> {
    let (state, output, failure) = match end {
        TaskEnd::Succeeded { output } => ("succeeded", Some(output.text()), None),
        TaskEnd::Failed { code, message } => ("failed", None, Some((code, message))),
        TaskEnd::Again { after } => return requeue(conn, hold, now.plus(*after), 0).await,
        TaskEnd::GivenBack { after } => return requeue(conn, hold, now.plus(*after), 1).await,
    };
    let done = sqlx::query(sql::TASK_END)
        .bind(state)
        .bind(output)
        .bind(failure.map(|(code, _)| code.as_str()))
        .bind(failure.map(|(_, message)| message.as_str()))
        .bind(now.micros())
        .bind(hold.app.as_str())
        .bind(hold.key.as_str())
        .bind(i64::from(hold.attempt))
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

async fn requeue(
    conn: &mut PgConnection,
    hold: &TaskHold,
    due_at: Timestamp,
    forgiven: i64,
) -> Result<bool, Fault> {
    let query = sqlx::query(sql::TASK_AGAIN).bind(due_at.micros()).bind(hold.app.as_str());
    let query = query.bind(hold.key.as_str()).bind(i64::from(hold.attempt)).bind(forgiven);
    Ok(query.execute(conn).await?.rows_affected() == 1)
}

/// Whether the same attempt ended so before.
async fn is_known(conn: &mut PgConnection, End { hold, end }: &End) -> Result<bool, Fault> {
    let task = find(conn, &hold.app, &hold.key).await?;
    Ok(task.is_some_and(|task| task.has_ended_so(hold, end)))
}

async fn wake(
    conn: &mut PgConnection,
    End { hold, end }: &End,
    now: Timestamp,
) -> Result<(), StoreError> {
    let refused = |error: SignalError| {
        let SignalError::Store(error) = error else {
            return StoreError::Refused(Box::new(error));
        };
        error
    };
    let Some(send) = end.signal(hold).map_err(refused)? else { return Ok(()) };
    signal::send(conn, &send, now).await.map(drop).map_err(refused)
}

struct Cancel {
    app: App,
    unwanted: Vec<String>,
}

impl Op for Cancel {
    type Out = u32;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(&'a self, conn: &'a mut PgConnection, cx: Cx) -> Result<u32, StoreError> {
        Ok(cancel(conn, self, cx.now).await?)
    }
}

async fn unwanted(conn: &mut PgConnection, app: &App, limit: u32) -> Result<Vec<String>, Fault> {
    let query = sqlx::query(sql::TASK_UNWANTED).bind(app.as_str()).bind(i64::from(limit));
    let rows = query.fetch_all(conn).await?;
    rows.iter().map(|row| Ok(row.try_get("key")?)).collect()
}

async fn cancel(
    conn: &mut PgConnection,
    Cancel { app, unwanted }: &Cancel,
    now: Timestamp,
) -> Result<u32, Fault> {
    let query = sqlx::query(sql::TASK_CANCEL).bind(now.micros()).bind(app.as_str());
    let done = query.bind(unwanted).execute(conn).await?;
    Ok(u32::try_from(done.rows_affected()).unwrap_or(u32::MAX))
}

fn unreadable() -> Fault {
    Fault(StoreError::Unavailable(Box::new(Said("a stored task is not what the kernel wrote"))))
}

fn payload(text: &str) -> Result<Payload, Fault> {
    Payload::parse(text).map_err(|_| unreadable())
}

fn read(row: &PgRow) -> Result<Task, Fault> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let opt = |column: &str| row.try_get::<Option<String>, _>(column);
    let count =
        |column: &str| u32::try_from(row.try_get::<i64, _>(column)?).map_err(|_| unreadable());
    let output = opt("output")?.as_deref().map(payload).transpose()?;
    let failure = (opt("code")?.unwrap_or_default(), opt("message")?.unwrap_or_default());
    let state = TaskState::of(&text("state")?, output, failure).ok_or_else(unreadable)?;
    Ok(Task {
        app: App::from(text("app")?),
        scope: Scope::from(text("scope")?),
        run: read_key::<RunId>(row, "run")?,
        step: StepKey::from(text("step")?),
        kind: text("kind")?,
        request: payload(&text("request")?)?,
        attempts: count("attempts")?,
        failures: count("failures")?,
        state,
    })
}

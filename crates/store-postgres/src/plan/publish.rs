//! Publishing and activating.
//!
//! Whoever changes what is live holds the row of the workflow, and reads what it decides on after it has it.

use serde_json::Value;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activate, Activation, App, Audit, Publish, PublishError, Published, Scope, Timestamp,
    VersionId, WorkflowKey,
};

use super::list::{read_count, read_json, read_key};
use crate::budget::caps_text;
use crate::error::{Fault, store_error, unreadable};
use crate::keys::Key;
use crate::retention::place::being_deleted;
use crate::run::row::{int, json, json_opt};
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct WriteVersion(pub(crate) Publish);

impl Op for WriteVersion {
    type Out = Published;
    type Err = PublishError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Published, PublishError> {
        publish(conn, &self.0, cx.now).await
    }
}

/// The caller has a transaction.
pub(crate) async fn publish(
    conn: &mut PgConnection,
    publish: &Publish,
    now: Timestamp,
) -> Result<Published, PublishError> {
    let got = publish.workflow.as_str().chars().count();
    if !(1..=200).contains(&got) {
        return Err(PublishError::KeyLength { got });
    }
    if let Some(published) = published_before(conn, publish.version).await? {
        return Ok(published);
    }
    check_stays(conn, (&publish.app, &publish.scope, &publish.workflow)).await?;
    let workflow = ensure_workflow(conn, publish, now).await?;
    // The same call may have been at work twice; the row of the workflow keeps one of them waiting.
    if let Some(published) = published_before(conn, publish.version).await? {
        return Ok(published);
    }
    Ok(write(conn, publish, workflow, now).await?)
}

/// Nothing is published into what is being deleted, or switched there.
pub(super) async fn check_stays(
    conn: &mut PgConnection,
    (app, scope, workflow): (&App, &Scope, &WorkflowKey),
) -> Result<(), PublishError> {
    let place = being_deleted(conn, app.as_str(), scope.as_str(), Some(workflow.as_str()));
    match place.await? {
        Some(place) => Err(PublishError::BeingDeleted { place }),
        None => Ok(()),
    }
}

/// The same version again: its first answer was lost.
async fn published_before(
    conn: &mut PgConnection,
    version: VersionId,
) -> Result<Option<Published>, Fault> {
    let revision = revision_of(conn, version.key()).await?;
    Ok(revision.map(|revision| Published::of(version, revision)))
}

async fn revision_of(conn: &mut PgConnection, version: Uuid) -> Result<Option<u64>, Fault> {
    let query = sqlx::query(sql::VERSION_REVISION).bind(version);
    let row = query.fetch_optional(conn).await?;
    row.map(|row| read_count(&row, "revision")).transpose()
}

async fn ensure_workflow(
    conn: &mut PgConnection,
    publish: &Publish,
    now: Timestamp,
) -> Result<i64, Fault> {
    let row = sqlx::query(sql::WORKFLOW_ENSURE)
        .bind(publish.app.as_str())
        .bind(publish.scope.as_str())
        .bind(publish.workflow.as_str())
        .bind(now.micros())
        .fetch_one(conn)
        .await?;
    Ok(row.try_get("no")?)
}

async fn write(
    conn: &mut PgConnection,
    publish: &Publish,
    workflow: i64,
    now: Timestamp,
) -> Result<Published, Fault> {
    let (app, scope) = (publish.app.as_str(), publish.scope.as_str());
    let row = sqlx::query(sql::VERSION_INSERT)
        .bind(publish.version.key())
        .bind(workflow)
        .bind(publish.plan.hash())
        .bind(publish.plan.footprint.hash())
        .bind(now.micros())
        .bind(&*publish.author)
        .bind(json_opt(publish.authorization.as_ref())?)
        .bind(json(&publish.plan.footprint)?)
        .bind(caps_text(&publish.budget)?)
        .bind(json(&publish.plan)?)
        .bind(&*publish.source)
        .fetch_one(&mut *conn)
        .await?;
    let revision = read_count(&row, "revision")?;
    if publish.activate {
        let live = Live { workflow, version: publish.version, app, scope, now };
        let authorization = publish.authorization.as_ref();
        make_live(conn, live, &publish.activations(), authorization).await?;
    }
    let audit = Audit {
        actor: publish.author.clone(),
        verb: if publish.activate { "publish" } else { "draft" }.to_owned(),
        reason: String::new(),
        details: "{}".to_owned(),
    };
    let version = Some(publish.version);
    audit_write(conn, About { app, scope }, &audit, (None, version), now).await?;
    Ok(Published::of(publish.version, revision))
}

/// Which version of which workflow becomes live.
#[derive(Debug, Clone, Copy)]
struct Live<'a> {
    workflow: i64,
    version: VersionId,
    app: &'a str,
    scope: &'a str,
    now: Timestamp,
}

/// Replaces the activations by key: what an operator disabled stays disabled, what the version does not have no
/// longer matches.
async fn make_live(
    conn: &mut PgConnection,
    live: Live<'_>,
    activations: &[Activation],
    authorization: Option<&Value>,
) -> Result<(), Fault> {
    sqlx::query(sql::WORKFLOW_SET_ACTIVE)
        .bind(live.workflow)
        .bind(live.version.key())
        .execute(&mut *conn)
        .await?;
    sqlx::query(sql::WORKFLOW_CLEAR_ACTIVATIONS).bind(live.workflow).execute(&mut *conn).await?;
    for (position, activation) in (0_i64..).zip(activations) {
        sqlx::query(sql::WORKFLOW_WRITE_ACTIVATION)
            .bind(live.workflow)
            .bind(&*activation.key)
            .bind(position)
            .bind(live.app)
            .bind(live.scope)
            .bind(&*activation.event)
            .bind(activation.trigger.as_deref())
            .bind(json_opt(authorization)?)
            .bind(activation.schedule.as_ref().map(json).transpose()?)
            .bind(live.now.micros())
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query(sql::WORKFLOW_FORGET_SCHEDULES).bind(live.workflow).execute(conn).await?;
    Ok(())
}

/// A workflow that this transaction has locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workflow {
    pub(super) no: i64,
    active: Option<Uuid>,
}

pub(super) async fn lock_workflow(
    conn: &mut PgConnection,
    (app, scope, workflow): (&App, &Scope, &WorkflowKey),
) -> Result<Workflow, PublishError> {
    let query = sqlx::query(sql::WORKFLOW_BY_KEY).bind(app.as_str()).bind(scope.as_str());
    let row = query.bind(workflow.as_str()).fetch_optional(conn).await.map_err(store_error)?;
    let missing = || PublishError::NotFound { what: format!("workflow `{workflow}`") };
    let row = row.ok_or_else(missing)?;
    Ok(Workflow {
        no: row.try_get("no").map_err(store_error)?,
        active: row.try_get("active").map_err(store_error)?,
    })
}

pub(crate) struct MakeLive(pub(crate) Activate);

impl Op for MakeLive {
    type Out = Published;
    type Err = PublishError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Published, PublishError> {
        activate(conn, &self.0, cx.now).await
    }
}

async fn activate(
    conn: &mut PgConnection,
    activate: &Activate,
    now: Timestamp,
) -> Result<Published, PublishError> {
    let of = (&activate.app, &activate.scope, &activate.workflow);
    check_stays(conn, of).await?;
    let workflow = lock_workflow(conn, of).await?;
    let version = sqlx::query(sql::VERSION_BY_REVISION)
        .bind(workflow.no)
        .bind(int(activate.revision))
        .fetch_optional(&mut *conn)
        .await
        .map_err(store_error)?;
    let what = || format!("version {} of workflow `{}`", activate.revision, activate.workflow);
    let missing = || PublishError::NotFound { what: what() };
    let version = version.ok_or_else(missing)?;
    let active = match workflow.active {
        Some(active) => revision_of(conn, active).await?,
        None => None,
    };
    if activate.expected.is_some() && activate.expected != active {
        return Err(PublishError::NotExpected { expected: activate.expected, active });
    }
    if active == Some(activate.revision) {
        return Ok(Published::of(read_key(&version, "id")?, activate.revision));
    }
    Ok(activate_stored(conn, workflow.no, &version, activate, now).await?)
}

async fn activate_stored(
    conn: &mut PgConnection,
    workflow: i64,
    version: &sqlx::postgres::PgRow,
    activate: &Activate,
    now: Timestamp,
) -> Result<Published, Fault> {
    let (app, scope) = (activate.app.as_str(), activate.scope.as_str());
    let id: VersionId = read_key(version, "id")?;
    let plan: Plan = read_json(version, "plan")?.ok_or_else(unreadable)?;
    let authorization = read_json(version, "authorization")?;
    let live = Live { workflow, version: id, app, scope, now };
    make_live(conn, live, &Activation::of_plan(&plan), authorization.as_ref()).await?;
    let audit = Audit {
        actor: activate.actor.clone(),
        verb: "activate".to_owned(),
        reason: activate.reason.clone(),
        details: "{}".to_owned(),
    };
    audit_write(conn, About { app, scope }, &audit, (None, Some(id)), now).await?;
    Ok(Published::of(id, activate.revision))
}

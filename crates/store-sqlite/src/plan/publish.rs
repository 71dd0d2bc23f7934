//! Publishing and activating.

use serde_json::Value;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activate, Activation, App, Audit, Publish, PublishError, Published, Scope, Timestamp,
    VersionId, WorkflowKey,
};

use super::list::read_count;
use crate::budget::caps_text;
use crate::error::{Fault, store_error};
use crate::event::emit::{read_json, sixteen, unreadable};
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
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Published, PublishError> {
        publish(conn, &self.0, cx.now).await
    }
}

/// The caller holds a write transaction.
pub(crate) async fn publish(
    conn: &mut SqliteConnection,
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
    Ok(write(conn, publish, now).await?)
}

/// Nothing is published into what is being deleted, or switched there.
pub(super) async fn check_stays(
    conn: &mut SqliteConnection,
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
    conn: &mut SqliteConnection,
    version: VersionId,
) -> Result<Option<Published>, Fault> {
    let query = sqlx::query(sql::VERSION_BY_ID).bind(version.to_bytes().to_vec());
    let row = query.fetch_optional(conn).await?;
    row.map(|row| Ok(Published::of(version, read_count(&row, "revision")?))).transpose()
}

async fn write(
    conn: &mut SqliteConnection,
    publish: &Publish,
    now: Timestamp,
) -> Result<Published, Fault> {
    let (app, scope) = (publish.app.as_str(), publish.scope.as_str());
    let row = sqlx::query(sql::WORKFLOW_ENSURE)
        .bind(app)
        .bind(scope)
        .bind(publish.workflow.as_str())
        .bind(now.micros())
        .fetch_one(&mut *conn)
        .await?;
    let workflow: i64 = row.try_get("no")?;
    let row = sqlx::query(sql::VERSION_INSERT)
        .bind(publish.version.to_bytes().to_vec())
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
    let no: i64 = row.try_get("no")?;
    let revision = read_count(&row, "revision")?;
    if publish.activate {
        let live = Live { workflow, version: no, app, scope, now };
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
    version: i64,
    app: &'a str,
    scope: &'a str,
    now: Timestamp,
}

/// Replaces the activations by key: what an operator disabled stays disabled, what the version does not have no
/// longer matches.
async fn make_live(
    conn: &mut SqliteConnection,
    live: Live<'_>,
    activations: &[Activation],
    authorization: Option<&Value>,
) -> Result<(), Fault> {
    sqlx::query(sql::WORKFLOW_SET_ACTIVE)
        .bind(live.workflow)
        .bind(live.version)
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

pub(crate) struct MakeLive(pub(crate) Activate);

impl Op for MakeLive {
    type Out = Published;
    type Err = PublishError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Published, PublishError> {
        activate(conn, &self.0, cx.now).await
    }
}

async fn activate(
    conn: &mut SqliteConnection,
    activate: &Activate,
    now: Timestamp,
) -> Result<Published, PublishError> {
    let (app, scope) = (activate.app.as_str(), activate.scope.as_str());
    let missing = |what: String| PublishError::NotFound { what };
    check_stays(conn, (&activate.app, &activate.scope, &activate.workflow)).await?;
    let workflow = sqlx::query(sql::WORKFLOW_BY_KEY)
        .bind(app)
        .bind(scope)
        .bind(activate.workflow.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(store_error)?
        .ok_or_else(|| missing(format!("workflow `{}`", activate.workflow)))?;
    let no: i64 = workflow.try_get("no").map_err(store_error)?;
    let version = sqlx::query(sql::VERSION_BY_REVISION)
        .bind(no)
        .bind(int(activate.revision))
        .fetch_optional(&mut *conn)
        .await
        .map_err(store_error)?;
    let what = || format!("version {} of workflow `{}`", activate.revision, activate.workflow);
    let version = version.ok_or_else(|| missing(what()))?;
    let active: Option<i64> = workflow.try_get("active").map_err(store_error)?;
    let active = active.map(i64::cast_unsigned);
    if activate.expected.is_some() && activate.expected != active {
        return Err(PublishError::NotExpected { expected: activate.expected, active });
    }
    if active == Some(activate.revision) {
        let id = VersionId::from_bytes(sixteen(&version, "id")?);
        return Ok(Published::of(id, activate.revision));
    }
    let live = Live {
        workflow: no,
        version: version.try_get("no").map_err(store_error)?,
        app,
        scope,
        now,
    };
    Ok(activate_stored(conn, live, &version, activate, now).await?)
}

async fn activate_stored(
    conn: &mut SqliteConnection,
    live: Live<'_>,
    version: &sqlx::sqlite::SqliteRow,
    activate: &Activate,
    now: Timestamp,
) -> Result<Published, Fault> {
    let id = VersionId::from_bytes(sixteen(version, "id")?);
    let plan: &str = version.try_get("plan")?;
    let plan: Plan = from_stored(plan).map_err(|_| unreadable())?;
    let authorization = read_json(version, "authorization")?;
    make_live(conn, live, &Activation::of_plan(&plan), authorization.as_ref()).await?;
    let audit = Audit {
        actor: activate.actor.clone(),
        verb: "activate".to_owned(),
        reason: activate.reason.clone(),
        details: "{}".to_owned(),
    };
    let about = About { app: live.app, scope: live.scope };
    audit_write(conn, about, &audit, (None, Some(id)), now).await?;
    Ok(Published::of(id, activate.revision))
}

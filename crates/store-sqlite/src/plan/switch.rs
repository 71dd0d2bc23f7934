//! Switching activations on and off.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{ActivationSet, PublishError, SetActivation, Timestamp};

use super::publish::check_stays;
use crate::error::{Fault, store_error};
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Switch(pub(crate) SetActivation);

impl Op for Switch {
    type Out = ActivationSet;
    type Err = PublishError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<ActivationSet, PublishError> {
        let set = &self.0;
        let missing = |what: String| PublishError::NotFound { what };
        check_stays(conn, (&set.app, &set.scope, &set.workflow)).await?;
        let workflow = sqlx::query(sql::WORKFLOW_BY_KEY)
            .bind(set.app.as_str())
            .bind(set.scope.as_str())
            .bind(set.workflow.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(store_error)?
            .ok_or_else(|| missing(format!("workflow `{}`", set.workflow)))?;
        let no: i64 = workflow.try_get("no").map_err(store_error)?;
        if let Some(key) = &set.activation {
            let query = sqlx::query(sql::WORKFLOW_HAS_ACTIVATION).bind(no).bind(&**key);
            let found = query.fetch_optional(&mut *conn).await.map_err(store_error)?;
            let what = || missing(format!("activation `{key}` of workflow `{}`", set.workflow));
            found.ok_or_else(what)?;
        }
        Ok(switch(conn, set, no, cx.now).await?)
    }
}

async fn switch(
    conn: &mut SqliteConnection,
    set: &SetActivation,
    workflow: i64,
    now: Timestamp,
) -> Result<ActivationSet, Fault> {
    let rows = sqlx::query(sql::WORKFLOW_SET_ENABLED)
        .bind(workflow)
        .bind(set.activation.as_deref())
        .bind(set.enabled)
        .bind(now.micros())
        .fetch_all(&mut *conn)
        .await?;
    let changed = rows.iter().map(|row| Ok(row.try_get("key")?));
    let mut changed: Vec<String> = changed.collect::<Result<_, Fault>>()?;
    changed.sort_unstable();
    if !changed.is_empty() {
        let about = About { app: set.app.as_str(), scope: set.scope.as_str() };
        audit_write(conn, about, &set.audit(&changed), (None, None), now).await?;
    }
    Ok(ActivationSet { changed })
}

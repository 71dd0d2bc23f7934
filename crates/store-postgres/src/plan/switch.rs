//! Switching activations on and off.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{ActivationSet, PublishError, SetActivation, Timestamp};

use super::publish::{Workflow, check_stays, lock_workflow};
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
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<ActivationSet, PublishError> {
        let set = &self.0;
        let of = (&set.app, &set.scope, &set.workflow);
        check_stays(conn, of).await?;
        let Workflow { no, .. } = lock_workflow(conn, of).await?;
        if let Some(key) = &set.activation {
            let query = sqlx::query(sql::WORKFLOW_HAS_ACTIVATION).bind(no).bind(&**key);
            let found = query.fetch_optional(&mut *conn).await.map_err(store_error)?;
            found.ok_or_else(|| PublishError::NotFound {
                what: format!("activation `{key}` of workflow `{}`", set.workflow),
            })?;
        }
        Ok(switch(conn, set, no, cx.now).await?)
    }
}

async fn switch(
    conn: &mut PgConnection,
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

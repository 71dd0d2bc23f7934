//! Dry runs: created directly from a version.

use sqlx::SqliteConnection;

use surefoot_kernel_core::{CreateDryRun, EmitError, Run};

use super::insert::{StartedWith, insert};
use super::read::run_by_id;
use crate::retention::place::being_deleted;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Create(pub(crate) CreateDryRun);

impl Op for Create {
    type Out = Run;
    type Err = EmitError;
    const LANE: Lane = Lane::Rest;

    fn bytes(&self) -> usize {
        self.0.event.data.text().len().saturating_add(self.0.event.context.text().len())
    }

    async fn run<'a>(&'a self, conn: &'a mut SqliteConnection, cx: Cx) -> Result<Run, EmitError> {
        create(conn, &self.0, cx).await
    }
}

async fn create(
    conn: &mut SqliteConnection,
    create: &CreateDryRun,
    cx: Cx,
) -> Result<Run, EmitError> {
    // The same run again: its first answer was lost.
    if let Some((_, run)) = run_by_id(conn, create.id).await? {
        return Ok(run);
    }
    let (app, scope) = (create.app.as_str(), create.scope.as_str());
    if let Some(place) = being_deleted(conn, app, scope, Some(create.workflow.as_str())).await? {
        return Err(EmitError::BeingDeleted { place });
    }
    let run = create.run(cx.now);
    let event = &create.event;
    let with = StartedWith {
        data: event.data.text(),
        context: Some(event.context.text()),
        authorization: event.authorization.as_ref(),
        trace: event.trace.as_ref(),
        journal: None,
    };
    insert(conn, &run, with).await?;
    Ok(run)
}

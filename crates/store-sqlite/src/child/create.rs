//! New children.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sqlx::{Connection, Row, SqliteConnection};

use surefoot_kernel_core::{
    BoxFuture, CheckedChild, ChildGroup, ChildVersion, ChildrenCreated, ChildrenError, ChildrenOn,
    CreateChildren, Run, RunId, RunState, StoreError, Timestamp, VersionId, WorkflowKey,
};

use super::{group, write_group};
use crate::error::{Fault, store_error};
use crate::event::emit::sixteen;
use crate::retention::place::being_deleted;
use crate::run::insert::{StartedWith, insert_all};
use crate::run::read::run_by_id;
use crate::sql;
use crate::store::SqliteStore;
use crate::transaction::SqliteTx;
use crate::writer::{Cx, Lane, Op};

/// Children that are made ready at once, so that memory is bounded by what the caller holds already.
const AT_ONCE: usize = 1_024;

pub(crate) struct Create(pub(crate) CreateChildren);

impl Op for Create {
    type Out = ChildrenCreated;
    type Err = ChildrenError;
    const LANE: Lane = Lane::Rest;

    fn bytes(&self) -> usize {
        self.0.children.bytes()
    }

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<ChildrenCreated, ChildrenError> {
        create(conn, &self.0, cx.now).await
    }
}

/// Creates children on transactions of the application.
pub(crate) struct OnTransaction(pub(crate) SqliteStore);

impl ChildrenOn<SqliteTx> for OnTransaction {
    fn create<'a>(
        &'a self,
        tx: &'a mut SqliteTx,
        request: CreateChildren,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(async move {
            if !tx.is_in_transaction() {
                return Err(StoreError::NotInTransaction.into());
            }
            create(tx, &request, self.0.now()).await
        })
    }
}

/// The caller holds a write transaction, and with it the parent's row.
async fn create(
    conn: &mut SqliteConnection,
    create: &CreateChildren,
    now: Timestamp,
) -> Result<ChildrenCreated, ChildrenError> {
    let parent = parent_of(conn, create).await?;
    parent.may_have_children()?;
    let known = group(conn, parent.id, &create.step).await?;
    let mut group = known.unwrap_or_else(|| ChildGroup::new(create.parallel.unwrap_or(u32::MAX)));
    let exist = match known {
        Some(_) => ids(conn, create).await?,
        None => HashSet::new(),
    };
    let id = |child: &CheckedChild| RunId::of_child(&parent, &create.step, &child.key);
    let new: Vec<(RunId, &CheckedChild)> = create
        .children
        .iter()
        .map(|child| (id(child), child))
        .filter(|(id, _)| !exist.contains(id))
        .collect();
    let versions = versions(conn, &parent, &new).await?;
    for some in new.chunks(AT_ONCE) {
        let runs: Vec<(Run, &CheckedChild)> = some
            .iter()
            .filter_map(|(id, child)| {
                let version = versions.get(&child.workflow)?;
                let place = (*id, &create.step, group.total);
                let run = Run::child(&parent, place, child, version, now);
                Some((if group.add() { run.held() } else { run }, *child))
            })
            .collect();
        let rows: Vec<(&Run, StartedWith<'_>)> = runs
            .iter()
            .map(|(run, child)| {
                let data = child.inputs.as_str();
                (
                    run,
                    StartedWith {
                        data,
                        context: None,
                        authorization: None,
                        trace: None,
                        journal: None,
                    },
                )
            })
            .collect();
        insert_all(conn, &rows).await?;
    }
    if !new.is_empty() {
        write_group(conn, &parent.origin.app, (parent.id, &create.step), &group).await?;
    }
    let new = u32::try_from(new.len()).unwrap_or(u32::MAX);
    Ok(ChildrenCreated { new, total: group.total })
}

/// The parent, if whoever asks still holds it.
async fn parent_of(
    conn: &mut SqliteConnection,
    create: &CreateChildren,
) -> Result<Run, ChildrenError> {
    let found = run_by_id(conn, create.before.run).await.map_err(StoreError::from)?;
    let (_, parent) = found.ok_or(StoreError::LeaseLost)?;
    if parent.generation != create.before.generation || parent.state() != RunState::Running {
        return Err(StoreError::LeaseLost.into());
    }
    if parent.cancel.is_some() {
        return Err(StoreError::Canceled.into());
    }
    Ok(parent)
}

async fn ids(
    conn: &mut SqliteConnection,
    create: &CreateChildren,
) -> Result<HashSet<RunId>, Fault> {
    let rows = sqlx::query(sql::CHILD_IDS)
        .bind(create.before.run.to_bytes().to_vec())
        .bind(create.step.as_str())
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| Ok(RunId::from_bytes(sixteen(row, "id")?))).collect()
}

/// The live versions of the workflows that new children need.
async fn versions(
    conn: &mut SqliteConnection,
    parent: &Run,
    new: &[(RunId, &CheckedChild)],
) -> Result<BTreeMap<WorkflowKey, ChildVersion>, ChildrenError> {
    let wanted: BTreeSet<&WorkflowKey> = new.iter().map(|(_, child)| &child.workflow).collect();
    let (app, scope) = (parent.origin.app.as_str(), parent.origin.scope.as_str());
    let mut versions = BTreeMap::new();
    for workflow in wanted {
        if being_deleted(conn, app, scope, Some(workflow.as_str())).await?.is_some() {
            return Err(ChildrenError::NoWorkflow { workflow: workflow.clone() });
        }
        let row = sqlx::query(sql::CHILD_VERSION)
            .bind(app)
            .bind(scope)
            .bind(workflow.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(store_error)?;
        let Some(row) = row else {
            return Err(ChildrenError::NoWorkflow { workflow: workflow.clone() });
        };
        let version = VersionId::from_bytes(sixteen(&row, "version")?);
        let footprint = row.try_get("footprint").map_err(store_error)?;
        versions.insert(workflow.clone(), ChildVersion { version, footprint });
    }
    Ok(versions)
}

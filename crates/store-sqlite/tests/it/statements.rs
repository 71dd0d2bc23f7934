//! Every statement is prepared; those that run all the time are explained.

use sqlx::{Executor, Row, SqlSafeStr};
use surefoot_store_sqlite::{sqlx, statements};

use crate::schema::raw;
use crate::support::World;

#[tokio::test]
async fn every_statement_is_prepared_and_bears_its_name() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    let statements = statements();
    assert!(statements.len() > 60, "{}", statements.len());
    for (name, text) in statements {
        assert!(text.starts_with(&format!("-- {name}\n")), "{name} does not begin with its name");
        let text: String = text.to_owned();
        let prepared = conn.prepare(sqlx::AssertSqlSafe(text).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What SQLite says about how it runs a statement.
async fn plan_of(conn: &mut sqlx::SqliteConnection, name: &str) -> Vec<String> {
    let found = statements().into_iter().rev().find(|(of, _)| *of == name);
    let (_, text) = found.unwrap();
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
    let rows = sqlx::query(explain).fetch_all(conn).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail")).collect()
}

#[tokio::test]
async fn what_runs_all_the_time_uses_its_index() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    for (name, index) in [
        ("run/claimable", "run_claim (app=? AND mode=? AND footprint=? AND claimable_at<?)"),
        ("run/claimed", "run_owner (lease_owner=? AND claim_nonce=?)"),
        ("run/overdue", "run_wake (app=? AND wake_at<?)"),
        ("run/gone", "run_gone (app=? AND claimable_at<?)"),
        (
            "run/signaled",
            "run_wait (app=? AND wait_app_wide=? AND wait_scope=? AND wait_kind=? AND wait_key=?)",
        ),
        ("run/signaled", "signal_more (app=?)"),
        ("signal/settle", "signal_more (app=?)"),
        (
            "run/waiting_on",
            "run_wait (app=? AND wait_app_wide=? AND wait_scope=? AND wait_kind=? AND wait_key=?)",
        ),
        ("run/footprints", "run_live (app=? AND footprint>?)"),
        ("run/heads", "run_id (id=?)"),
        ("run/by_id", "run_id (id=?)"),
        ("run/move", "INTEGER PRIMARY KEY (rowid=?)"),
        ("run/step", "INTEGER PRIMARY KEY (rowid=?)"),
        ("run/plain", "run_id (id=?)"),
        ("run/plain_step", "run_id (id=?)"),
        ("run/plain_journal", "run_id (id=?)"),
        ("run/renew", "INTEGER PRIMARY KEY (rowid=?)"),
        ("run/journal", "journal_seq (run=? AND seq>? AND seq<?)"),
        ("budget/open", "version_id (id=?)"),
        ("budget/read", "root_budget_dimension (root=?)"),
        ("run/fence", "run_id (id=?)"),
        ("event/due", "event_due (app=? AND due_at<?)"),
        ("event/match", "activation_match (app=? AND scope=? AND event=?)"),
        ("event/new", "event_id (id=?)"),
        ("event/new", "event_dedupe (app=? AND scope=? AND kind=? AND dedupe_key=?)"),
        ("event/new", "deletion_place (app=? AND scope=? AND workflow=?)"),
        ("event/payload_write", "event_id (id=?)"),
        ("event/delivery_write", "event_id (id=?)"),
        ("event/original", "event_id (id=?)"),
        ("event/original", "event_dedupe (app=? AND scope=? AND kind=? AND dedupe_key=?)"),
        ("signal/by_key", "signal_key (app=? AND app_wide=? AND scope=? AND kind=? AND key=?)"),
        ("operator/runs", "run_newest (app=? AND (created_at,id)<(?,?))"),
        ("operator/runs_in_state", "run_state (app=? AND state=? AND (created_at,id)<(?,?))"),
        ("operator/children", "run_parent (parent_run=? AND (created_at,id)<(?,?))"),
        ("operator/events", "event_full (app=? AND status=? AND (recorded_at,id)<(?,?))"),
        (
            "operator/events_emptied",
            "event_emptied (app=? AND status=? AND (recorded_at,id)<(?,?))",
        ),
        (
            "operator/events_of_type",
            "event_kind (app=? AND kind=? AND status=? AND (recorded_at,id)<(?,?))",
        ),
        ("operator/count_events", "event_full (app=? AND status=?)"),
        ("operator/effects", "run_effect (app=?)"),
        ("operator/unsettled", "run_effect (app=?)"),
        ("operator/signals", "signal_unspent (app=?)"),
        ("operator/count_runs", "run_state (app=? AND state=?)"),
        ("operator/audit", "audit_app (app=?)"),
        (
            "retention/events_old",
            "event_full (app=? AND status=? AND recorded_at>? AND recorded_at<?)",
        ),
        ("retention/events_unmatched", "event_full (app=? AND status=? AND recorded_at<?)"),
        ("retention/tree_in_state", "run_tree (root=?)"),
        ("retention/tree_held", "run_tree (root=?)"),
        ("retention/tree_children", "run_tree (root=?)"),
        ("retention/prunable_roots", "run_state (app=? AND state=? AND created_at<?)"),
        ("retention/prunable_roots", "run_tree (root=?)"),
        ("retention/bare_audit", "audit_run (run=?)"),
        ("retention/place_audit", "audit_detailed (app=? AND scope=?)"),
        ("retention/deleting", "deletion_place (app=? AND scope=? AND workflow=?)"),
        ("retention/prune_signals", "signal_spent (app=? AND spent_at<?)"),
        ("retention/place_unexplained", "run_effect (app=?)"),
        ("retention/place_roots", "run_version (version=?)"),
        ("retention/place_left", "run_version (version=?)"),
        ("retention/place_uncanceled", "run_live (app=?)"),
        ("retention/place_signals", "signal_key (app=? AND app_wide=? AND scope=?)"),
        ("retention/place_events", "INTEGER PRIMARY KEY (rowid>?)"),
        ("task/due", "task_due (app=? AND due_at<?)"),
        ("task/claim", "task_due (app=? AND due_at<?)"),
        ("task/unwanted", "task_due (app=? AND due_at>?)"),
        ("task/by_key", "task_key (app=? AND key=?)"),
        ("task/end", "task_key (app=? AND key=?)"),
        ("retention/drop_tasks", "task_run (run=?)"),
        ("child/group", "child_group_step (parent=? AND step=?)"),
        ("child/held", "run_held (parent_run=? AND parent_step=?)"),
        ("child/read", "run_child (parent_run=? AND parent_step=? AND parent_index>?)"),
        ("child/cancel_batch", "run_child (parent_run=? AND parent_step=? AND parent_index>?)"),
        ("child/cancel_next", "child_group_cancel (app=?)"),
        ("child/over", "child_group_over (app=?)"),
        ("child/states", "run_child (parent_run=?"),
        ("run/payload", "run_id (id=?)"),
    ] {
        let plan = plan_of(&mut conn, name).await;
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: no {index} in {plan:#?}");
        let scans: Vec<_> = plan
            .iter()
            .filter(|line| line.starts_with("SCAN run") || line.starts_with("SCAN surefoot_run"))
            .collect();
        assert!(scans.is_empty(), "{name}: {scans:?}");
    }
}

#[tokio::test]
async fn lists_in_order_are_not_sorted() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    for name in [
        "run/claimable",
        "run/overdue",
        "run/gone",
        "run/journal",
        "event/due",
        "operator/runs",
        "operator/runs_in_state",
        "operator/children",
        "operator/events",
        "operator/events_emptied",
        "operator/events_of_type",
        "operator/signals",
        "operator/audit",
        "child/held",
        "child/read",
        "child/cancel_batch",
    ] {
        let plan = plan_of(&mut conn, name).await;
        let sorts: Vec<_> = plan.iter().filter(|line| line.contains("TEMP B-TREE")).collect();
        assert!(sorts.is_empty(), "{name}: {plan:#?}");
    }
}

#[tokio::test]
async fn a_step_touches_no_index() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    let found = statements().into_iter().rev().find(|(of, _)| *of == "run/step").unwrap();
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN {}", found.1));
    let rows = sqlx::query(explain).fetch_all(&mut conn).await.unwrap();
    let deletes = rows.iter().filter(|row| row.get::<&str, _>("opcode") == "IdxDelete").count();
    assert_eq!(deletes, 0, "a column that steps write is in an index");
}

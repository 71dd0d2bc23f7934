//! Every statement is prepared; those that run all the time are explained.

use sqlx::{AssertSqlSafe, Executor, PgConnection, Row, SqlSafeStr};
use surefoot_store_postgres::{sqlx, statements};

use crate::database::{Database, Server};

#[tokio::test]
async fn every_statement_is_prepared_and_bears_its_name() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        let statements = statements();
        assert!(statements.len() > 50, "{}", statements.len());
        for (name, text) in statements {
            assert!(
                text.starts_with(&format!("-- {name}\n")),
                "{name} does not begin with its name"
            );
            let prepared = conn.prepare(AssertSqlSafe(text.to_owned()).into_sql_str()).await;
            prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// The plan of a statement as it is made on empty tables, and kept, under the settings of the kernel's connections.
async fn plan_of(conn: &mut PgConnection, name: &str) -> String {
    let settings =
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off";
    sqlx::raw_sql(settings).execute(&mut *conn).await.unwrap();
    plan_as_it_is(conn, name).await
}

/// The same under the settings that the connection has.
async fn plan_as_it_is(conn: &mut PgConnection, name: &str) -> String {
    let (_, text) = statements().into_iter().find(|(of, _)| *of == name).unwrap();
    let prepare = format!("PREPARE explained AS {text}");
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *conn).await.unwrap();
    let counted = "SELECT cardinality(parameter_types) AS count FROM pg_prepared_statements
        WHERE name = 'explained'";
    let row = sqlx::query(counted).fetch_one(&mut *conn).await.unwrap();
    let count = usize::try_from(row.get::<i32, _>("count")).unwrap();
    let nulls =
        if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE explained{nulls}");
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut *conn).await.unwrap();
    sqlx::raw_sql("DEALLOCATE explained").execute(&mut *conn).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

/// The batch of commits finds its rows by their key, one by one, whatever the planner believes of a table that was empty
/// when the plan was made.
#[tokio::test]
async fn a_batch_of_commits_goes_by_the_key_of_the_run() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        for name in ["run/commit_steps", "run/commit_moves"] {
            let plan = plan_of(&mut conn, name).await;
            assert_eq!(plan.matches(" run_pkey").count(), 2, "{name}: {plan}");
            assert!(plan.contains("Index Cond: (id = ANY ($1))"), "{name}: {plan}");
            assert!(plan.contains("Index Cond: (id = x.id)"), "{name}: {plan}");
            assert!(!plan.contains("Seq Scan"), "{name}: {plan}");
            assert!(!plan.contains("Hash Join") && !plan.contains("Merge Join"), "{name}: {plan}");
            assert!(plan.contains("hashed SubPlan"), "{name}: {plan}");
        }
    }
}

#[tokio::test]
async fn what_runs_under_the_settings_of_an_application_goes_by_its_key() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        // Beside that a parameter stands for any value, as it does once a plan is kept.
        sqlx::raw_sql("SET plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
        for name in ["run/commit_one", "run/hold"] {
            let plan = plan_as_it_is(&mut conn, name).await;
            assert!(plan.contains("Scan using run_pkey on run"), "{name}: {plan}");
            assert!(!plan.contains("Seq Scan"), "{name}: {plan}");
        }
    }
}

#[tokio::test]
async fn what_runs_all_the_time_uses_its_index() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        for (name, index) in [
            ("run/step", "run_pkey"),
            ("run/move", "run_pkey"),
            ("run/renew", "run_pkey"),
            ("run/held", "run_pkey"),
            ("run/hold", "run_pkey"),
            ("run/canceled", "run_pkey"),
            ("run/lock", "run_pkey"),
            ("run/lock_if_free", "run_pkey"),
            ("run/heads", "run_pkey"),
            ("run/by_id", "run_pkey"),
            ("run/fence", "run_pkey"),
            ("run/claimable", "run_claim"),
            ("run/claimable", "run_owner"),
            ("run/due", "run_wake"),
            ("run/due", "run_gone"),
            ("run/due", "run_wait"),
            ("run/due", "signal_more"),
            ("run/due", "child_group_over"),
            ("run/due", "child_group_room"),
            ("run/due", "child_group_cancel"),
            ("run/waiting_on", "run_wait"),
            ("run/due", "run_live"),
            ("run/due", "run_claim"),
            ("run/due", "event_due"),
            ("run/due", "version_footprint"),
            ("run/journal", "journal_pkey"),
            ("run/payload", "run_payload_pkey"),
            ("signal/by_key", "signal_key"),
            ("signal/settle", "signal_more"),
            ("budget/lock", "root_budget_pkey"),
            ("budget/open", "version_pkey"),
            ("task/due", "task_due"),
            ("task/claim", "task_due"),
            ("task/unwanted", "task_due"),
            ("task/by_key", "task_pkey"),
            ("task/end", "task_pkey"),
            ("retention/drop_tasks", "task_run"),
            ("child/group", "child_group_pkey"),
            ("child/held", "run_held"),
            ("child/read", "run_child"),
            ("child/cancel_batch", "run_child"),
            ("child/cancel_next", "child_group_cancel"),
            ("event/due", "event_due"),
            ("event/take_due", "event_due"),
            ("event/match", "activation_match"),
            ("event/match", "version_pkey"),
            ("event/original", "event_pkey"),
            ("event/original", "event_dedupe"),
            ("event/deliveries", "delivery_pkey"),
            ("event/deliveries", "version_pkey"),
            ("event/to_dispatch", "event_payload_pkey"),
            ("event/dispatched", "event_pkey"),
            ("event/emit", "version_pkey"),
            ("event/emit", "meta_pkey"),
            ("signal/more", "signal_key"),
            ("workflow/schedules", "activation_schedule"),
            ("operator/runs", "run_newest"),
            ("operator/dry_runs", "run_dry"),
            ("operator/runs_in_state", "run_state"),
            ("operator/children", "run_parent"),
            ("operator/events", "event_full"),
            ("operator/events", "event_emptied"),
            ("operator/events_of_type", "event_kind"),
            ("operator/events_placed", "event_place"),
            ("operator/count_placed_events", "event_place"),
            ("operator/count_events", "event_full"),
            ("operator/effects", "run_effect"),
            ("operator/unsettled", "run_effect"),
            ("operator/signals", "signal_unspent"),
            ("operator/sessions", "worker_session_live"),
            ("operator/count_runs", "run_state"),
            ("operator/count_ended", "run_ended"),
            ("operator/exhausted", "run_exhausted"),
            ("operator/timeline", "run_told"),
            ("operator/count_placed", "run_version"),
            ("operator/placed", "run_version"),
            ("operator/count_tagged", "event_tags"),
            ("operator/tagged", "event_tags"),
            ("operator/tagged", "run_pkey"),
            ("operator/runs_among", "run_pkey"),
            ("operator/runs", "event_pkey"),
            ("operator/runs_in_state", "event_pkey"),
            ("run/journal_page", "journal_pkey"),
            ("operator/due", "run_claim"),
            ("operator/audit", "audit_app"),
            ("operator/apps", "event_place"),
            ("retention/events_old", "event_full"),
            ("retention/events_unmatched", "event_full"),
            ("retention/events_held", "run_pkey"),
            ("retention/events_held", "run_tree"),
            ("retention/keep_runs", "run_pkey"),
            ("retention/lock_events", "event_pkey"),
            ("retention/mark_emptied", "event_pkey"),
            ("retention/tree_held", "run_tree"),
            ("retention/tree_children", "run_tree"),
            ("retention/tree_root", "run_pkey"),
            ("retention/prunable_roots", "run_state"),
            ("retention/prunable_roots", "run_tree"),
            ("retention/bare_audit", "audit_run"),
            ("retention/place_audit", "audit_detailed"),
            ("retention/prune_audit", "audit_old"),
            ("retention/prune_signals", "signal_spent"),
            ("retention/place_unexplained", "run_effect"),
            ("retention/place_roots", "run_version"),
            ("retention/place_roots", "run_tree"),
            ("retention/place_left", "run_version"),
            ("retention/place_shared", "run_version"),
            ("retention/place_uncanceled", "run_live"),
            ("retention/place_ending", "run_live"),
            ("retention/place_signals", "signal_key"),
            ("retention/place_events", "event_place"),
            ("retention/place_doomed", "doomed_app"),
        ] {
            let plan = plan_of(&mut conn, name).await;
            assert!(plan.contains(index), "{name}: no {index} in\n{plan}");
            assert!(!plan.contains("Seq Scan on run"), "{name}:\n{plan}");
        }
    }
}

/// What a step, a mark or a renewal writes stands in no index of the run, not even in its condition: else each of them
/// would write a new entry into every index.
#[tokio::test]
async fn what_each_step_writes_stands_in_no_index() {
    let named = "SELECT DISTINCT pg_attribute.attname::text AS name FROM pg_depend
        JOIN pg_class ON pg_class.oid = pg_depend.objid AND pg_class.relkind = 'i'
        JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
        WHERE refobjid = 'surefoot.run'::regclass";
    let database = Database::on(Server::BOTH[0]).await;
    let rows = sqlx::query(named).fetch_all(&mut database.raw().await).await.unwrap();
    let named: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
    assert!(named.contains(&"effectful".to_owned()), "{named:?}");
    for column in [
        "revision",
        "seq",
        "journal_bytes",
        "failures",
        "step_attempt",
        "deadline",
        "charged",
        "last_failure",
        "lease_until",
        "lease_length",
        "effect_step",
        "effect_action",
        "effect_state",
        "effect_since",
        "effect_evidence",
    ] {
        assert!(!named.contains(&column.to_owned()), "an index of `run` names {column}");
    }
}

#[tokio::test]
async fn lists_in_order_are_not_sorted() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        for name in [
            "run/claimable",
            "run/due",
            "run/journal",
            "child/held",
            "child/read",
            "event/due",
            "event/take_due",
            "operator/runs",
            "operator/runs_in_state",
            "operator/children",
            "operator/signals",
            "operator/audit",
            "retention/events_old",
            "retention/events_unmatched",
            "retention/prunable_roots",
            "retention/prune_signals",
            "retention/prune_audit",
            "retention/place_events",
        ] {
            let plan = plan_of(&mut conn, name).await;
            assert!(!plan.contains("Sort"), "{name}:\n{plan}");
        }
    }
}

/// Pages of several statuses are sorted together; each of them comes in order.
#[tokio::test]
async fn events_of_one_status_are_not_sorted() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        for (name, parts) in [("operator/events", 2), ("operator/events_of_type", 1)] {
            let plan = plan_of(&mut conn, name).await;
            assert_eq!(plan.matches("Sort Key").count(), 1, "{name}:\n{plan}");
            assert_eq!(plan.matches("Index Scan Backward").count(), parts, "{name}:\n{plan}");
            assert!(!plan.contains("Seq Scan"), "{name}:\n{plan}");
        }
    }
}

/// What has ended is counted in its index alone, slice by slice; what is live, by the index of the live.
#[tokio::test]
async fn a_timeline_reads_no_row_that_has_ended() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        let plan = plan_of(&mut conn, "operator/timeline").await;
        assert!(plan.contains("Index Only Scan using run_told"), "{plan}");
        assert!(plan.contains("(state = of.state) AND (created_at >="), "{plan}");
        assert!(plan.contains("Index Scan using run_live"), "{plan}");
    }
}

/// An index that is read without a condition is read whole: so is a table that a hashed sub-select is made of.
#[tokio::test]
async fn nothing_of_retention_reads_all_runs() {
    for server in Server::BOTH {
        let database = Database::on(server).await;
        let mut conn = database.raw().await;
        for (name, _) in statements() {
            if !name.starts_with("retention/") && !name.starts_with("event/") {
                continue;
            }
            let plan = plan_of(&mut conn, name).await;
            for (line, next) in plan.lines().zip(plan.lines().skip(1)) {
                let is_scan = ["on run", "on version", "run_", "version_", "on event", "event_"];
                let is_scan = line.contains("Index") && is_scan.iter().any(|it| line.contains(it));
                let is_conditional = line.contains("Cond") || next.contains("Index Cond");
                assert!(!is_scan || is_conditional, "{name}: {line}\n{plan}");
            }
        }
    }
}

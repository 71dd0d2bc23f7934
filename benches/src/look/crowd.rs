//! What is looked at: runs that the kernel made and ended in each way, and so many copies of them, spread over a week.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use surefoot::postgres::sqlx::{self, AssertSqlSafe, PgConnection};
use surefoot::prelude::*;

use crate::Failed;
use crate::fill;
use crate::load::Begin;

/// Five scopes of which each has more runs than the next, and one that has few.
const SCOPES: [&str; 5] = ["scope-0", "scope-1", "scope-2", "scope-3", "scope-4"];
const CORNER: &str = "corner";
const FLOWS: [&str; 4] = ["flow-0", "flow-1", "flow-2", "flow-3"];
/// Of twenty copies in a row, the scope of each.
const SHARES: [usize; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4];
/// Of twelve copies in a row, one is of a run that failed, and one of a run that was canceled.
const ENDS: [Begin; 12] =
    [FAIL, WELL, WELL, WELL, WELL, WELL, CANCELED, WELL, WELL, WELL, WELL, WELL];
const WELL: Begin = Begin { start: 1 };
const FAIL: Begin = Begin { start: 2 };
const CANCELED: Begin = Begin { start: 3 };

/// Runs beside those that have ended.
const WAITING: usize = 2_000;
const IN_CORNER: usize = 40;
/// Of how many runs there is one event that nobody listens to.
const UNHEARD_EACH: usize = 50;

/// What the kernel tells by the number that a run begins with: it ends well, fails, or waits.
const FLOW: &str = r#"
inputs:
  start: { type: integer, required: true }
triggers:
  begin:
    with: { start: "${{ trigger.start }}" }
steps:
  - addOnce: { value: "${{ inputs.start }}", by: 1 }
  - if: "${{ inputs.start == 2 }}"
    then:
      - fail: { message: "Two is too many", code: TWO }
  - if: "${{ inputs.start == 3 }}"
    then:
      - delay: { for: 90d }
"#;

/// A hundred times a hundred steps.
const LONG: &str = r#"
inputs:
  start: { type: integer, required: true }
triggers:
  begin:
    with: { start: "${{ trigger.start }}" }
steps:
  - setVariable: { name: items, value: [ITEMS] }
  - forEach: "${{ items }}"
    as: outer
    do:
      - forEach: "${{ items }}"
        as: inner
        do:
          - addOnce: { value: "${{ outer }}", by: 1 }
"#;

/// How long a run may take to come to where it is copied.
const PATIENCE: Duration = Duration::from_secs(300);

/// A run that is copied, with its event.
#[derive(Debug, Clone, Copy)]
struct Template {
    event: EventId,
    run: RunId,
}

/// Fills the database, and names the run of ten thousand steps.
pub(super) async fn fill(
    kernel: &Kernel<PostgresStore>,
    module: Module<On<PostgresTx>>,
    conn: &mut PgConnection,
    count: usize,
) -> Result<RunId, Failed> {
    publish(kernel, &module).await?;
    let worker = kernel.worker(module).concurrency(50).start().await?;
    let mut mix = Vec::new();
    for (turn, scope) in SHARES.iter().enumerate() {
        let scope = SCOPES.get(*scope).copied().unwrap_or(CORNER);
        let flow = FLOWS.get(turn % FLOWS.len()).copied().unwrap_or_default();
        for begin in &ENDS {
            mix.push(made(kernel, (scope, flow), begin).await?);
        }
    }
    let waiting = begun(kernel, (SCOPES[0], FLOWS[0]), &CANCELED).await?;
    let corner = made(kernel, (CORNER, FLOWS[0]), &WELL).await?;
    let long = made(kernel, (SCOPES[0], "long"), &WELL).await?;
    let unheard = kernel.scope(SCOPES[0]).emit(Event::new("bench.unheard", WELL)).await?;
    worker.stop(Duration::from_secs(5)).await;
    eprintln!("== {} runs are made; {count} copies of them follow", mix.len() + 3);
    copies(conn, &mix, 1..=count).await?;
    copies(conn, &[waiting], count + 1..=count + WAITING).await?;
    let corners = count + WAITING + 1..=count + WAITING + IN_CORNER;
    copies(conn, &[corner], corners).await?;
    let (events, from) = (count / UNHEARD_EACH, 2 * count + WAITING + IN_CORNER);
    let unheard = Template { event: unheard.event, run: long.run };
    templates(conn, &[unheard]).await?;
    copy(conn, "event", from..=from + events, 1, UNHEARD).await?;
    settle(conn).await?;
    Ok(long.run)
}

async fn publish(
    kernel: &Kernel<PostgresStore>,
    module: &Module<On<PostgresTx>>,
) -> Result<(), Failed> {
    for scope in SCOPES.into_iter().chain([CORNER]) {
        for flow in FLOWS {
            let publication = Publication::new(flow, FLOW);
            kernel.scope(scope).publish(module.manifest(), publication).await?;
        }
    }
    let items: Vec<String> = (1..=100).map(|item| item.to_string()).collect();
    let publication = Publication::new("long", LONG.replace("ITEMS", &items.join(", ")));
    kernel.scope(SCOPES[0]).publish(module.manifest(), publication).await?;
    Ok(())
}

async fn begun(
    kernel: &Kernel<PostgresStore>,
    (scope, flow): (&str, &str),
    begin: &Begin,
) -> Result<Template, Failed> {
    let emitted = kernel.scope(scope).emit(begin.event().target(flow)).await?;
    let run = *emitted.runs.first().ok_or("the event started no run")?;
    if begin.start == CANCELED.start {
        let until = tokio::time::Instant::now() + PATIENCE;
        while state_of(kernel, run).await? != RunState::Waiting {
            if tokio::time::Instant::now() > until {
                return Err(format!("run {run} does not come to its wait").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(Template { event: emitted.event, run })
}

/// A run that has ended.
async fn made(
    kernel: &Kernel<PostgresStore>,
    place: (&str, &str),
    begin: &Begin,
) -> Result<Template, Failed> {
    let template = begun(kernel, place, begin).await?;
    if begin.start == CANCELED.start {
        kernel.cancel(template.run, "enough are waiting").await?;
    }
    tokio::time::timeout(PATIENCE, kernel.await_run(template.run)).await??;
    Ok(template)
}

async fn state_of(kernel: &Kernel<PostgresStore>, run: RunId) -> Result<RunState, Failed> {
    let request = LoadRequest { run, after: Some(0) };
    let stored = kernel.store().run_load(request).await?;
    Ok(stored.ok_or("a run is gone")?.run.state())
}

/// Keys by the number of the copy: in order, like those that the kernel makes.
const RUN: &str = "('00000000-0000-7000-8000-' || lpad(to_hex(copy), 12, '0'))::uuid";
const EVENT: &str = "('00000000-0000-7000-8001-' || lpad(to_hex(copy), 12, '0'))::uuid";
/// Evenly over the week that ends when the copies are made.
const AT: &str = "(1000000 * extract(epoch FROM statement_timestamp())::bigint \
                  - 604800000000 + (copy - {first}) * (604800000000 / {count}))";
/// Of all, of every tenth, of five thousand of a million, of twenty, and of the six thousand oldest.
const TAGS: &str = "to_jsonb(array_remove(ARRAY['all', CASE WHEN copy % 50000 = 1 THEN 'few' END, \
                    CASE WHEN copy % 10 = 1 THEN 'many' END, CASE WHEN copy <= 6000 THEN 'old' END, \
                    CASE WHEN copy % 200 = 1 THEN 'some' END], NULL))";
const KINDS: &str = "CASE WHEN copy % 30000 = 2 THEN 'bench.rare' WHEN copy % 3 = 0 THEN 'bench.other' ELSE kind END";

const UNHEARD: &[(&str, &str)] = &[
    ("id", EVENT),
    ("recorded_at", "{at}"),
    ("occurred_at", "{at}"),
    ("ended_at", "ended_at - recorded_at + {at}"),
];

/// Copies of runs that take turns, with their events and all that belongs to them.
async fn copies(
    conn: &mut PgConnection,
    of: &[Template],
    range: RangeInclusive<usize>,
) -> Result<(), sqlx::Error> {
    templates(conn, of).await?;
    let run = [
        ("id", RUN),
        ("root", RUN),
        ("event", EVENT),
        ("created_at", "{at}"),
        ("occurred_at", "{at}"),
        ("started_at", "started_at - created_at + {at}"),
        ("ended_at", "ended_at - created_at + {at}"),
        ("wake_at", "wake_at - created_at + {at}"),
    ];
    let (key, runs) = (("dedupe_key", "'key-' || copy"), format!("ARRAY[{RUN}]"));
    let event = [UNHEARD, &[key, ("runs", &runs), ("kind", KINDS), ("tags", TAGS)]].concat();
    copy(conn, "event", range.clone(), of.len(), &event).await?;
    copy(conn, "event_payload", range.clone(), of.len(), &[("event", EVENT)]).await?;
    copy(conn, "run", range.clone(), of.len(), &run).await?;
    for table in ["run_payload", "run_result", "journal"] {
        copy(conn, table, range.clone(), of.len(), &[("run", RUN)]).await?;
    }
    Ok(())
}

/// Who is copied, by turns.
async fn templates(conn: &mut PgConnection, of: &[Template]) -> Result<(), sqlx::Error> {
    let made =
        "CREATE TEMP TABLE IF NOT EXISTS template (place bigint, of_run uuid, of_event uuid)";
    sqlx::raw_sql(made).execute(&mut *conn).await?;
    sqlx::raw_sql("TRUNCATE template").execute(&mut *conn).await?;
    for (place, template) in (0_i64..).zip(of) {
        let sql =
            "INSERT INTO template VALUES ($1, encode($2, 'hex')::uuid, encode($3, 'hex')::uuid)";
        let (run, event) = (template.run.to_bytes().to_vec(), template.event.to_bytes().to_vec());
        sqlx::query(sql).bind(place).bind(run).bind(event).execute(&mut *conn).await?;
    }
    sqlx::raw_sql("ANALYZE template").execute(conn).await.map(drop)
}

async fn copy(
    conn: &mut PgConnection,
    table: &str,
    range: RangeInclusive<usize>,
    turns: usize,
    set: &[(&str, &str)],
) -> Result<(), sqlx::Error> {
    let (first, last) = (range.start(), range.end());
    let count = (last + 1).saturating_sub(*first).max(1);
    let at = AT.replace("{first}", &first.to_string()).replace("{count}", &count.to_string());
    let set: Vec<(&str, String)> =
        set.iter().map(|(column, text)| (*column, text.replace("{at}", &at))).collect();
    let set: Vec<(&str, &str)> = set.iter().map(|it| (it.0, it.1.as_str())).collect();
    let (key, of) = match table {
        "run" => ("id", "of_run"),
        "event" => ("id", "of_event"),
        "event_payload" => ("event", "of_event"),
        _ => ("run", "of_run"),
    };
    let mut from = format!("generate_series({first}, {last}) AS copy ");
    let _ = write!(
        from,
        "JOIN template ON place = copy % {turns} JOIN surefoot.{table} ON {table}.{key} = {of}"
    );
    let statement = fill::copying(conn, table, &set, &from).await?;
    sqlx::query(AssertSqlSafe(statement)).execute(conn).await.map(drop)
}

/// As a database is that autovacuum has seen.
async fn settle(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("VACUUM (ANALYZE)").execute(&mut *conn).await?;
    sqlx::raw_sql("CHECKPOINT").execute(conn).await.map(drop)
}

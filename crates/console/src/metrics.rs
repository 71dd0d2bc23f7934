//! Health as gauges, in the text format of Prometheus. Labels are apps, states and statuses: never a run, a scope or a
//! workflow, of which there is no end.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use surefoot_operator::{AppHealthView, HealthView, WorkerHealthView};

use crate::access::Caller;
use crate::problem::Problem;
use crate::shared::Shared;

const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the application adds.
#[derive(Clone, Default)]
pub(crate) struct More(Option<Arc<dyn Fn() -> String + Send + Sync>>);

impl More {
    pub(crate) fn of(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(text)))
    }
}

pub(crate) async fn page(
    caller: Caller,
    State(shared): State<Shared>,
    Extension(More(more)): Extension<More>,
) -> Result<Response, Problem> {
    let health = caller.operator.health(None, Some(shared.clock().wall())).await?;
    let text = text(&health) + &more.map_or_else(String::new, |more| more());
    Ok(([(CONTENT_TYPE, FORMAT)], text).into_response())
}

/// One metric: its name, what it tells, and its values for an app, each with a label besides `app` if there is one.
struct Gauge {
    name: &'static str,
    about: &'static str,
    values: fn(&AppHealthView) -> Vec<Value>,
}

type Label = (&'static str, &'static str);
type Value = (Option<Label>, f64);

const GAUGES: &[Gauge] = &[
    Gauge {
        name: "surefoot_healthy",
        about: "1 where nothing is red.",
        values: |app| one(f64::from(u8::from(app.ok))),
    },
    Gauge {
        name: "surefoot_runs",
        about: "Runs by state.",
        values: |app| {
            let each = app.runs.iter();
            each.map(|(state, count)| (Some(("state", *state)), number(*count))).collect()
        },
    },
    Gauge {
        name: "surefoot_start_lag_seconds",
        about: "How long the oldest run that a worker may take has been due.",
        values: |app| one(seconds(app.start_lag_ms)),
    },
    Gauge {
        name: "surefoot_exhausted_runs",
        about: "Runs that failed with RETRY_EXHAUSTED.",
        values: |app| one(number(app.exhausted)),
    },
    Gauge {
        name: "surefoot_unsettled_effects",
        about: "Effects that nobody can explain yet.",
        values: |app| one(number(app.unsettled_effects)),
    },
    Gauge {
        name: "surefoot_oldest_unsettled_effect_seconds",
        about: "The age of the oldest effect that nobody can explain yet.",
        values: |app| one(seconds(app.oldest_unsettled_ms.unwrap_or_default())),
    },
    Gauge {
        name: "surefoot_effect_outputs_missing",
        about: "Effects that happened and lack an output that can be used.",
        values: |app| one(number(app.outputs_missing)),
    },
    Gauge {
        name: "surefoot_events",
        about: "Events that have no runs, by status.",
        values: |app| {
            let of = |status, count| (Some(("status", status)), number(count));
            let events = &app.events;
            vec![
                of("pending", events.pending),
                of("dead_lettered", events.dead_lettered),
                of("unmatched", events.unmatched),
            ]
        },
    },
    Gauge {
        name: "surefoot_oldest_pending_event_seconds",
        about: "The age of the oldest event whose runs are not created yet.",
        values: |app| one(seconds(app.events.oldest_pending_ms.unwrap_or_default())),
    },
    Gauge {
        name: "surefoot_workers",
        about: "Worker sessions that reported within the last minute.",
        values: |app| of_workers(app, |_| 1),
    },
    Gauge {
        name: "surefoot_worker_slots",
        about: "Their slots.",
        values: |app| of_workers(app, |worker| worker.slots),
    },
    Gauge {
        name: "surefoot_worker_slots_busy",
        about: "Their slots in use.",
        values: |app| of_workers(app, |worker| worker.busy),
    },
    Gauge {
        name: "surefoot_worker_slots_stuck",
        about: "Their slots whose hook does not return though its time is over.",
        values: |app| of_workers(app, |worker| worker.stuck),
    },
    Gauge {
        name: "surefoot_clock_skew_seconds",
        about: "How far this server's clock is ahead of the store's.",
        values: |app| one(seconds(app.clock_skew_ms.unwrap_or_default())),
    },
];

fn one(value: f64) -> Vec<Value> {
    vec![(None, value)]
}

#[expect(clippy::cast_precision_loss, reason = "the format knows floats only")]
const fn number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "the format knows floats only")]
const fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}

fn of_workers(app: &AppHealthView, count: fn(&WorkerHealthView) -> u32) -> Vec<Value> {
    let live = app.workers.iter().filter(|worker| worker.live);
    one(live.map(|worker| f64::from(count(worker))).sum())
}

fn text(health: &HealthView) -> String {
    let mut text = String::new();
    for Gauge { name, about, values } in GAUGES {
        let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} gauge");
        for app in &health.apps {
            for (label, value) in values(app) {
                let label = label.map_or_else(String::new, |(key, of)| format!(",{key}=\"{of}\""));
                let _ = writeln!(text, "{name}{{app=\"{}\"{label}}} {value}", escaped(&app.app));
            }
        }
    }
    text
}

fn escaped(name: &impl Display) -> String {
    name.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_label() {
        assert_eq!(escaped(&"a\"} 1\n\\"), "a\\\"} 1\\n\\\\");
    }
}

//! `audit`

use serde_json::Value;
use surefoot_operator::AuditRowView;

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, age, at, or_dash};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// At most so many, the newest ones.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run(cx: &Context<'_>, args: &AuditArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let view = operator.audit(&app, cx.named_scope().as_ref(), args.limit).await?;
    cx.print(&view, |page| {
        let mut table =
            Table::new(&["AT", "WHO", "VERB", "WHAT", "WORKFLOW", "SCOPE", "RUN", "WHY"]);
        for row in &view.audit {
            table.row(&[
                at(row.at),
                row.actor.clone(),
                row.verb.clone(),
                what(row),
                or_dash(row.workflow.as_ref()),
                row.scope.to_string(),
                or_dash(row.run.as_ref()),
                row.reason.clone(),
            ]);
        }
        table.print(page);
    })
}

/// To what, and what was said of it: the details, but for what has a column of its own.
fn what(row: &AuditRowView) -> String {
    let mut parts = Vec::new();
    if let (None, Some(revision)) = (row.run, row.revision) {
        parts.push(format!("version {revision}"));
    }
    if let Some(step) = &row.step {
        parts.push(step.to_string());
    }
    if let Some(verdict) = &row.verdict {
        parts.push(verdict.clone());
    }
    let columns = ["step", "verdict", "workflow", "output"];
    let rest = row.details.as_object().into_iter().flatten();
    for (name, value) in rest.filter(|(name, _)| !columns.contains(&name.as_str())) {
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => parts.push(name.replace('_', " ")),
            Value::String(text) if name == "what" => parts.push(text.clone()),
            Value::String(text) => parts.push(format!("{name} {text}")),
            Value::Number(seconds) if name == "older_than_s" => {
                parts.push(format!(
                    "older than {}",
                    age(seconds.as_i64().unwrap_or(0).saturating_mul(1_000))
                ));
            }
            Value::Object(of) => parts.extend(of.iter().map(|(name, value)| named(name, value))),
            Value::Number(_) | Value::Array(_) => parts.push(named(name, value)),
        }
    }
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ").chars().take(120).collect() }
}

/// A detail for people: a list without the marks of its notation.
fn named(name: &str, value: &Value) -> String {
    let Value::Array(items) = value else { return format!("{name} {value}") };
    let items =
        items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
    format!("{name} {}", items.collect::<Vec<_>>().join(", "))
}

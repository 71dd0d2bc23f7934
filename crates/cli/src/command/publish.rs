//! `publish`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use surefoot_kernel_core::{Amounts, BadName, WorkflowKey};
use surefoot_language::{Bindings, Findings};
use surefoot_operator::PublishSource;
use surefoot_worker::SystemIds;

use super::check::manifest_of;
use super::{Context, Printed};
use crate::Exit;
use crate::builtin;
use crate::error::CliError;
use crate::input::text_of;

/// Arguments of `publish`.
#[derive(Debug, clap::Args)]
pub(crate) struct PublishArgs {
    /// The workflow; `-` is standard input.
    file: PathBuf,
    /// The workflow's key; by default, the file's name without its ending.
    #[arg(long, value_name = "KEY", value_parser = WorkflowKey::from_str)]
    workflow: Option<WorkflowKey>,
    /// What the application's module offers, as its `manifest().to_json()` writes it.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// It uses ready-made actions and built-in steps alone, and is run by `surefoot run`, as a part of another one.
    #[arg(long, conflicts_with = "manifest")]
    ready_made: bool,
    /// The application's names and the ids behind them: JSON, kind to name to id.
    #[arg(long, value_name = "FILE")]
    bindings: Option<PathBuf>,
    /// Cap what each of its runs may charge of a dimension: `payments=3`. Can be given several times.
    #[arg(long, value_name = "DIMENSION=CAP")]
    budget: Vec<String>,
    /// Store it without making it live.
    #[arg(long)]
    draft: bool,
}

pub(crate) async fn run(cx: &Context<'_>, args: PublishArgs) -> Result<Printed, CliError> {
    let workflow = key_of(&args)?;
    let source = text_of(&args.file)?;
    let manifest = if args.ready_made {
        builtin::manifest().await?
    } else {
        manifest_of(cx, args.manifest.as_ref())?.ok_or_else(|| {
            let why = "no module is built into this program: name one with `--manifest`, or say `--ready-made`";
            CliError::Usage(why.to_owned())
        })?
    };
    let bindings = bindings_of(cx, args.bindings.as_ref())?;
    let scope = cx.scope()?;
    let budget = budget_of(&args.budget)?;
    // Nothing is opened, let alone created, for a source that cannot be published.
    let findings = match builtin::compile_and_bind(&source, &manifest, &bindings).await? {
        Ok((_, findings)) => findings,
        Err(findings) => return refused(cx, &args.file, &findings),
    };
    let (operator, app) = cx.operator_creating().await?;
    let publish = PublishSource {
        app,
        scope,
        workflow,
        source: &source,
        manifest: &manifest,
        bindings: &bindings,
        budget,
        activate: !args.draft,
    };
    let mut published = operator.publish(&SystemIds, publish).await?;
    published.findings = findings.into_vec();
    cx.print(&published, |page| {
        let live = if published.active { "live" } else { "a draft" };
        let (workflow, revision) = (&published.workflow, published.revision);
        page.line(format!("published {workflow} version {revision} ({}), {live}", published.id));
        for finding in &published.findings {
            page.line(finding.to_string());
        }
    })
}

/// Findings are data: the same ones, in the same form, as `check` prints.
pub(super) fn refused(
    cx: &Context<'_>,
    file: &Path,
    findings: &Findings,
) -> Result<Printed, CliError> {
    let file = file.display().to_string();
    let printed = cx.print(&findings.to_json(), |page| {
        page.block(&findings.render(&file, page.has_colour()));
    })?;
    Ok(printed.exiting(Exit::Finding))
}

fn key_of(args: &PublishArgs) -> Result<WorkflowKey, CliError> {
    if let Some(key) = &args.workflow {
        return Ok(key.clone());
    }
    let of_file = args.file.file_stem().and_then(|stem| stem.to_str()).filter(|it| *it != "-");
    let missing = || CliError::Usage("the workflow needs a key: add `--workflow`".to_owned());
    let odd = |bad: BadName| CliError::Usage(format!("{bad}: name it with `--workflow`"));
    of_file.ok_or_else(missing)?.parse().map_err(odd)
}

fn budget_of(caps: &[String]) -> Result<Amounts, CliError> {
    let numbers = caps.iter().map(|text| {
        let (dimension, cap) = text.split_once('=')?;
        Some((dimension, cap.parse::<f64>().ok()?))
    });
    let numbers: Option<Vec<_>> = numbers.collect();
    let numbers = numbers.ok_or_else(|| {
        CliError::Usage("`--budget` takes a dimension and its cap, such as `payments=3`".to_owned())
    })?;
    let mut seen = std::collections::BTreeSet::new();
    for (dimension, cap) in &numbers {
        if is_too_fine(*cap) {
            return Err(CliError::Usage(format!(
                "`--budget` counts in millionths: the cap {cap} of `{dimension}` is finer, and would not be kept as it is"
            )));
        }
        if dimension.trim().is_empty() || dimension.trim() != *dimension || !seen.insert(*dimension)
        {
            return Err(CliError::Usage(format!(
                "`--budget` takes each dimension once, by its name: `{dimension}` is none, or stands twice"
            )));
        }
    }
    Amounts::of(numbers).map_err(|odd| CliError::Usage(format!("`--budget`: {odd}")))
}

/// Whether a cap is no whole number of millionths, as far as a floating-point number can tell.
fn is_too_fine(cap: f64) -> bool {
    let millionths = cap * 1e6;
    (millionths - millionths.round()).abs() > millionths.abs().mul_add(1e-15, 1e-6)
}

fn bindings_of(cx: &Context<'_>, path: Option<&PathBuf>) -> Result<Bindings, CliError> {
    let Some(path) = path else { return Ok(cx.built_in.bindings.clone()) };
    let read: Result<BTreeMap<String, BTreeMap<String, String>>, _> =
        serde_json::from_str(&text_of(path)?);
    read.map(Bindings::from).map_err(|error| CliError::Input {
        what: format!("`{}`", path.display()),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_kept_as_it_is_or_refused() {
        for cap in [0.0, 1e-6, 0.1, 0.3, 3.0, 12_345.678_901, 123_456_789.123_457, 1e9, -1.0] {
            assert!(!is_too_fine(cap), "{cap}");
        }
        for cap in [1e-9, 0.000_001_5, 2.000_000_4] {
            assert!(is_too_fine(cap), "{cap}");
        }
    }
}

//! `check`

use std::path::PathBuf;

use surefoot_language::{Manifest, Severity, check_beside, compile_judged};

use super::{Context, Printed};
use crate::Exit;
use crate::builtin;
use crate::error::CliError;
use crate::input::text_of;
use crate::page::{Page, to_stderr};
use crate::render::counted;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The workflow; `-` is standard input.
    file: PathBuf,
    /// What the application's module offers, as its `manifest().to_json()` writes it; without it, the ready-made actions
    /// and built-in steps are checked, and a warning says what was not.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

pub(crate) async fn run(cx: &Context<'_>, args: &CheckArgs) -> Result<Printed, CliError> {
    let source = text_of(&args.file)?;
    let own = builtin::manifest().await?;
    let judge = builtin::judging(&own);
    let findings = match manifest_of(cx, args.manifest.as_ref())? {
        Some(manifest) => compile_judged(&source, &manifest, &judge).findings,
        None => check_beside(&source, &own, &judge).findings,
    };
    let file = args.file.display().to_string();
    let printed = cx.print(&findings.to_json(), |page: &mut Page| {
        if !findings.is_empty() {
            page.block(&findings.render(&file, page.has_colour()));
        }
    })?;
    if !cx.is_json() {
        let count = |wanted| findings.iter().filter(|it| it.severity == wanted).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let some = |count: usize, of| counted(u64::try_from(count).unwrap_or(u64::MAX), of);
        to_stderr(&format!("{file}: {}, {}\n", some(errors, "error"), some(warnings, "warning")));
    }
    Ok(printed.exiting(if findings.is_ok() { Exit::Done } else { Exit::Finding }))
}

/// The manifest that was given, or the one that is built in.
pub(super) fn manifest_of(
    cx: &Context<'_>,
    path: Option<&PathBuf>,
) -> Result<Option<Manifest>, CliError> {
    let Some(path) = path else { return Ok(cx.built_in.manifest.clone()) };
    let manifest = Manifest::from_json(&text_of(path)?).map_err(|error| CliError::Input {
        what: format!("manifest `{}`", path.display()),
        why: error.to_string(),
    })?;
    if let Some(warning) = other_module(cx.built_in.manifest.as_ref(), &manifest) {
        to_stderr(&format!("warning: `{}`: {warning}\n", path.display()));
    }
    Ok(Some(manifest))
}

/// A worker with this program's module could never run what is checked against another one.
fn other_module(built_in: Option<&Manifest>, given: &Manifest) -> Option<String> {
    let own = built_in.filter(|own| own.id != given.id)?;
    let (own, given) = (&own.id, &given.id);
    Some(format!("it is the manifest of module `{given}`, and this program has module `{own}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_another_module_is_warned_of() {
        let of =
            |id: &str| Manifest::from_json(&format!(r#"{{"id": "{id}", "version": 1}}"#)).unwrap();
        let (own, other) = (of("inventory"), of("warehouse"));
        assert_eq!(
            other_module(Some(&own), &other).unwrap(),
            "it is the manifest of module `warehouse`, and this program has module `inventory`"
        );
        assert!(other_module(Some(&own), &own).is_none() && other_module(None, &other).is_none());
    }
}

//! Manifests: lints and dependencies come from the workspace, so that a version or a lint is decided once.

use toml::{Table, Value};

use super::Finding;
use crate::failure::Failure;
use crate::workspace::Workspace;

const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for package in workspace.metadata.workspace_packages() {
        let path = package.manifest_path.as_std_path();
        let path = path.strip_prefix(&workspace.root).unwrap_or(path).display().to_string();
        let text = workspace.read(&path)?;
        findings.extend(judge(&path, &text)?);
    }
    Ok(findings)
}

fn judge(path: &str, text: &str) -> Result<Vec<Finding>, Failure> {
    let manifest: Table =
        text.parse().map_err(|error| Failure::new(format!("{path} is no TOML: {error}")))?;
    let mut findings = Vec::new();
    if !manifest.get("lints").is_some_and(from_workspace) {
        findings.push(Finding::new(path, "lacks `[lints] workspace = true`"));
    }
    let targets = manifest.get("target").and_then(Value::as_table);
    let conditional = targets.into_iter().flatten().filter_map(|(_, table)| table.as_table());
    for table in std::iter::once(&manifest).chain(conditional) {
        for kind in KINDS {
            for (name, value) in table.get(*kind).and_then(Value::as_table).into_iter().flatten() {
                if !from_workspace(value) {
                    let problem =
                        format!("takes `{name}` in [{kind}] from elsewhere than the workspace");
                    findings.push(Finding::new(path, problem));
                }
            }
        }
    }
    Ok(findings)
}

fn from_workspace(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        judge("Cargo.toml", text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_comes_from_the_workspace_is_fine() {
        let text = "[dependencies]\nserde.workspace = true\n\
                    uuid = { workspace = true, features = [\"v7\"] }\n[lints]\nworkspace = true\n";
        assert!(check(text).is_empty());
    }

    #[test]
    fn a_crate_without_our_lints_is_found() {
        assert_eq!(check(""), ["Cargo.toml: lacks `[lints] workspace = true`"]);
        assert_eq!(check("[lints]\nworkspace = false").len(), 1);
        assert_eq!(check("[lints.rust]\nunsafe_code = 'allow'").len(), 1);
    }

    #[test]
    fn a_version_of_ones_own_is_found_in_every_table() {
        let text = "[lints]\nworkspace = true\n[dependencies]\na = '1'\n\
                    [dev-dependencies]\nb = { path = '../b' }\n\
                    [build-dependencies]\nc = { version = '1' }\n\
                    [target.'cfg(unix)'.dependencies]\nd = { git = 'x' }\n";
        let found = check(text);
        assert_eq!(found.len(), 4, "{found:?}");
        let expected = "Cargo.toml: takes `a` in [dependencies] from elsewhere than the workspace";
        assert_eq!(found[0], expected);
    }
}

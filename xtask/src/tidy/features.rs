//! Features that would change what JSON means. Cargo switches a feature on for everybody as soon as one crate
//! asks for it, so a dependency could do it unseen.

use super::Finding;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Canonical JSON sorts keys, and a number is what our types say it is.
const BANNED: &[(&str, &[&str])] = &[("serde_json", &["preserve_order", "arbitrary_precision"])];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let resolve = workspace.metadata.resolve.as_ref();
    let resolve = resolve.ok_or_else(|| Failure::new("cargo resolved no dependencies"))?;
    let mut seen = Vec::new();
    for node in &resolve.nodes {
        let name = workspace.metadata[&node.id].name.to_string();
        seen.push((name, node.features.iter().map(ToString::to_string).collect()));
    }
    judge(&seen)
}

fn judge(resolved: &[(String, Vec<String>)]) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for (package, banned) in BANNED {
        let mut versions = resolved.iter().filter(|(name, _)| name == package).peekable();
        if versions.peek().is_none() {
            return Err(Failure::new(format!("{package} is not among the resolved packages")));
        }
        for feature in versions.flat_map(|(_, features)| features) {
            if banned.contains(&feature.as_str()) {
                let why = format!(
                    "has its feature `{feature}` on; `cargo tree -e features -i {package}` tells who asks"
                );
                findings.push(Finding::new(*package, why));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(features: &[&str]) -> Vec<Finding> {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        judge(&[("serde_json".to_owned(), features)]).unwrap()
    }

    #[test]
    fn a_harmless_feature_may_be_on_and_a_banned_one_may_not() {
        assert!(check(&["std", "default"]).is_empty());
        assert_eq!(check(&["std", "preserve_order"]).len(), 1);
        assert_eq!(check(&["arbitrary_precision"])[0].place, "serde_json");
    }

    #[test]
    fn a_package_that_is_not_there_is_a_failure_and_not_a_pass() {
        assert!(judge(&[]).is_err());
    }
}

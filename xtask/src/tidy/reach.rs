//! What a crate pulls in through others: pure crates no IO, clock or chance; the rest no adapter.

use super::Finding;
use crate::failure::Failure;
use crate::process;
use crate::workspace::Workspace;

/// Families of crates: a name stands for itself and for what begins with it and a dash or underscore.
const IO: &[&str] = &[
    "async-io",
    "async-nats",
    "async-std",
    "hyper",
    "libsqlite3-sys",
    "mio",
    "redis",
    "reqwest",
    "rusqlite",
    "socket2",
    "sqlx",
    "tokio",
    "ureq",
];
const CLOCKS_AND_CHANCE: &[&str] =
    &["chrono", "fastrand", "getrandom", "instant", "jiff", "rand", "time"];
const ADAPTERS: &[&str] = &["async-nats", "libsqlite3-sys", "redis", "rusqlite", "sqlx"];

/// Crates with their default features, and what must not be in reach of their normal dependencies.
const RULES: &[(&str, &[&[&str]])] = &[
    ("surefoot-kernel-core", &[IO, CLOCKS_AND_CHANCE]),
    ("surefoot-language", &[IO]),
    // Its zones come with `jiff`, which reads no clock here.
    ("surefoot-sync-core", &[IO]),
    ("surefoot-worker", &[ADAPTERS]),
    ("surefoot-operator", &[ADAPTERS]),
    ("surefoot-console", &[ADAPTERS]),
];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for (package, families) in RULES {
        // Cargo's own answer: it knows features, targets and what only a build or a test needs.
        let tree = process::capture(
            process::cargo()
                .current_dir(&workspace.root)
                .args(["tree", "--locked", "--package", package, "--edges", "normal"])
                .args(["--prefix", "none", "--format", "{p}"]),
        )?;
        findings.extend(judge(package, &families.concat(), &tree)?);
    }
    Ok(findings)
}

fn judge(package: &str, banned: &[&str], tree: &str) -> Result<Vec<Finding>, Failure> {
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    if names.first() != Some(&package) {
        return Err(Failure::new(format!("`cargo tree` does not begin with {package}:\n{tree}")));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names
        .iter()
        .filter_map(|name| banned.iter().find(|family| belongs(name, family)).map(|_| name))
        .map(|name| {
            let why =
                format!("pulls in {name}; `cargo tree -p {package} -i {name}` tells through what");
            Finding::new(package, why)
        })
        .collect())
}

fn belongs(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "pure v0.1.0 (/somewhere/pure)\nserde v1.0.229\nserde_core v1.0.229\n\
                        rand_core v0.10.0\nserde v1.0.229 (*)\ntimeless v1.0.0\n";

    #[test]
    fn a_family_is_found_by_its_members_and_a_mere_likeness_is_none() {
        let findings = judge("pure", &["rand", "time"], TREE).unwrap();
        assert_eq!(
            findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["pure: pulls in rand_core; `cargo tree -p pure -i rand_core` tells through what"]
        );
        assert_eq!(judge("pure", &["tokio"], TREE), Ok(vec![]));
    }

    #[test]
    fn a_tree_that_is_none_is_a_failure_and_not_a_pass() {
        assert!(judge("pure", &["rand"], "").is_err());
    }

    #[test]
    fn a_crate_that_does_io_would_be_found() {
        let workspace = Workspace::load().unwrap();
        let tree = process::capture(
            process::cargo()
                .current_dir(&workspace.root)
                .args(["tree", "--locked", "--package", "surefoot-store-sqlite"])
                .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]),
        )
        .unwrap();
        let findings = judge("surefoot-store-sqlite", ADAPTERS, &tree).unwrap();
        assert!(findings.iter().any(|finding| finding.problem.starts_with("pulls in sqlx;")));
    }
}

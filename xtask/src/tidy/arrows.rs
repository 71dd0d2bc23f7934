//! Arrows between our crates: exactly those of the architecture.

use cargo_metadata::{DependencyKind, Package};

use super::Finding;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// What a crate of ours may depend on among our own.
struct Row {
    name: &'static str,
    /// In normal and build dependencies.
    uses: &'static [&'static str],
    /// In the dependencies of its tests, besides.
    tests: &'static [&'static str],
}

const CORE: &str = "surefoot-kernel-core";
const ACTIONS: &str = "surefoot-actions";
const CODEC: &str = "surefoot-codec";
const LANGUAGE: &str = "surefoot-language";
const SYNC_CORE: &str = "surefoot-sync-core";
const SYNC_NATS: &str = "surefoot-sync-nats";
const RATELIMIT_VALKEY: &str = "surefoot-ratelimit-valkey";
const STORE_SQLITE: &str = "surefoot-store-sqlite";
const STORE_POSTGRES: &str = "surefoot-store-postgres";
const WORKER: &str = "surefoot-worker";
const OPERATOR: &str = "surefoot-operator";
const CONSOLE: &str = "surefoot-console";
const OTLP: &str = "surefoot-otlp";
const TEST_SERVERS: &str = "surefoot-test-servers";
const TESTKIT: &str = "surefoot-testkit";
const FACADE: &str = "surefoot";
const INVENTORY: &str = "surefoot-inventory";
const INVENTORY_POSTGRES: &str = "surefoot-inventory-postgres";

/// Every crate has a row. A new crate, or a new arrow, is a decision about the architecture: it is made here
/// and in `docs/architecture.md`.
const ROWS: &[Row] = &[
    // Its own tests turn on its feature `proptest`.
    Row { name: CORE, uses: &[], tests: &[CORE] },
    Row { name: SYNC_CORE, uses: &[CORE], tests: &[] },
    Row { name: SYNC_NATS, uses: &[CORE, SYNC_CORE], tests: &[TESTKIT, WORKER, LANGUAGE] },
    Row { name: RATELIMIT_VALKEY, uses: &[SYNC_CORE], tests: &[TESTKIT] },
    Row { name: LANGUAGE, uses: &[CORE, SYNC_CORE], tests: &[] },
    // A decorator of any store: its tests put it around stores, below a worker and an operator.
    Row { name: CODEC, uses: &[CORE], tests: &[LANGUAGE, STORE_SQLITE, WORKER, OPERATOR, TESTKIT] },
    Row { name: STORE_SQLITE, uses: &[CORE], tests: &[TESTKIT] },
    // Its tests kill whole workers.
    Row { name: STORE_POSTGRES, uses: &[CORE], tests: &[LANGUAGE, WORKER, TESTKIT] },
    Row { name: WORKER, uses: &[CORE, LANGUAGE, SYNC_CORE], tests: &[TESTKIT] },
    // It has the worker carry traces.
    Row { name: OTLP, uses: &[WORKER], tests: &[CORE, LANGUAGE, TESTKIT] },
    Row { name: OPERATOR, uses: &[CORE, LANGUAGE], tests: &[TESTKIT] },
    Row {
        name: CONSOLE,
        uses: &[CORE, LANGUAGE, OPERATOR],
        // Whose counters it shows.
        tests: &[TESTKIT, TEST_SERVERS, WORKER],
    },
    Row {
        name: ACTIONS,
        uses: &[CORE, LANGUAGE, SYNC_CORE],
        // Its tests turn on all of its features, and publish to a real broker.
        tests: &[ACTIONS, STORE_SQLITE, STORE_POSTGRES, SYNC_NATS, TESTKIT, WORKER],
    },
    Row { name: TEST_SERVERS, uses: &[], tests: &[] },
    Row {
        name: TESTKIT,
        // The scripted provider implements the port of the AI tasks.
        uses: &[ACTIONS, CORE, LANGUAGE, SYNC_CORE, WORKER, TEST_SERVERS],
        tests: &[STORE_SQLITE],
    },
    Row {
        name: "surefoot-cli",
        uses: &[
            ACTIONS,
            CORE,
            LANGUAGE,
            STORE_SQLITE,
            STORE_POSTGRES,
            SYNC_CORE,
            SYNC_NATS,
            WORKER,
            OPERATOR,
            CONSOLE,
            OTLP,
            TESTKIT,
            FACADE,
            INVENTORY,
            INVENTORY_POSTGRES,
        ],
        tests: &[],
    },
    Row {
        name: FACADE,
        uses: &[
            ACTIONS,
            CORE,
            CODEC,
            LANGUAGE,
            STORE_SQLITE,
            STORE_POSTGRES,
            SYNC_CORE,
            SYNC_NATS,
            RATELIMIT_VALKEY,
            WORKER,
            OPERATOR,
            CONSOLE,
            OTLP,
            TESTKIT,
        ],
        // Its examples turn on its feature `testkit`.
        tests: &[FACADE],
    },
    // The load programs are users, as the example is.
    Row { name: "surefoot-bench", uses: &[CORE, FACADE], tests: &[] },
    Row { name: INVENTORY, uses: &[FACADE], tests: &[TESTKIT] },
    // The same files on another store.
    Row { name: INVENTORY_POSTGRES, uses: &[FACADE, INVENTORY], tests: &[TESTKIT] },
    Row { name: "xtask", uses: &[TEST_SERVERS], tests: &[] },
];

/// What the core may name in its manifest besides our own crates: values and derives, nothing that acts.
/// `proptest` is behind the feature of that name.
const CORE_MAY_USE: &[&str] = &[
    "async-trait",
    "proptest",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "unicode-normalization",
    "uuid",
];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let packages = workspace.metadata.workspace_packages();
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let arrows: Vec<Arrow> = packages.iter().flat_map(|package| arrows_of(package)).collect();
    Ok(judge(&ours, &arrows))
}

/// One dependency in a manifest of ours.
struct Arrow {
    from: String,
    to: String,
    kind: DependencyKind,
}

fn arrows_of(package: &Package) -> impl Iterator<Item = Arrow> {
    package.dependencies.iter().map(|dependency| Arrow {
        from: package.name.to_string(),
        to: dependency.name.clone(),
        kind: dependency.kind,
    })
}

fn judge(ours: &[&str], arrows: &[Arrow]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ours.iter().filter(|name| !ROWS.iter().any(|row| row.name == **name)) {
        findings.push(Finding::new(*name, "has no row in xtask/src/tidy/arrows.rs"));
    }
    for row in ROWS.iter().filter(|row| !ours.contains(&row.name)) {
        findings.push(Finding::new(row.name, "has a row in arrows.rs, but there is no such crate"));
    }
    for arrow in arrows {
        let Some(row) = ROWS.iter().find(|row| row.name == arrow.from) else { continue };
        let to = arrow.to.as_str();
        let in_tests = arrow.kind == DependencyKind::Development;
        let internal = ours.contains(&to);
        if internal && !row.uses.contains(&to) && !(in_tests && row.tests.contains(&to)) {
            let place = if in_tests { "even in its tests" } else { "outside its tests" };
            findings.push(Finding::new(row.name, format!("may not depend on {to}, {place}")));
        }
        if !internal && !in_tests && row.name == CORE && !CORE_MAY_USE.contains(&to) {
            findings.push(Finding::new(CORE, format!("may not depend on {to}: it is pure")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, kind: DependencyKind, to: &str) -> Vec<String> {
        let ours: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        let arrow = Arrow { from: from.to_owned(), to: to.to_owned(), kind };
        judge(&ours, &[arrow]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_that_is_drawn_may_be() {
        assert!(check(LANGUAGE, DependencyKind::Normal, CORE).is_empty());
        assert!(check(CORE, DependencyKind::Normal, "serde").is_empty());
        assert!(check(CORE, DependencyKind::Development, "expect-test").is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found_in_each_kind_of_dependency() {
        for kind in [DependencyKind::Normal, DependencyKind::Build] {
            assert_eq!(
                check(WORKER, kind, STORE_SQLITE),
                ["surefoot-worker: may not depend on surefoot-store-sqlite, outside its tests"]
            );
        }
        assert_eq!(
            check(STORE_SQLITE, DependencyKind::Development, LANGUAGE),
            ["surefoot-store-sqlite: may not depend on surefoot-language, even in its tests"]
        );
    }

    #[test]
    fn a_store_uses_the_testkit_in_its_tests_only() {
        assert!(check(STORE_SQLITE, DependencyKind::Development, TESTKIT).is_empty());
        assert_eq!(check(STORE_SQLITE, DependencyKind::Normal, TESTKIT).len(), 1);
    }

    #[test]
    fn the_core_names_no_crate_that_acts() {
        assert_eq!(
            check(CORE, DependencyKind::Normal, "tokio"),
            ["surefoot-kernel-core: may not depend on tokio: it is pure"]
        );
    }

    #[test]
    fn crates_and_rows_agree() {
        let mut ours: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        ours.retain(|name| *name != "xtask");
        ours.push("surefoot-new");
        let found: Vec<String> = judge(&ours, &[]).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "surefoot-new: has no row in xtask/src/tidy/arrows.rs",
                "xtask: has a row in arrows.rs, but there is no such crate"
            ]
        );
    }
}

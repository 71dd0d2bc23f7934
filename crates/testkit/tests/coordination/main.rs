//! The coordination primitives in memory keep the rules, in paused time.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

use std::collections::BTreeSet;
use std::path::Path;

use surefoot_sync_core::Rate;
use surefoot_testkit::coordination::{CoordinationFactory, RateLimitFactory};
use surefoot_testkit::{MemoryBroker, MemoryRateLimit};

fn in_paused_time(rule: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(rule);
}

struct Memory(MemoryBroker);

impl CoordinationFactory for Memory {
    type Coordinator = MemoryBroker;

    fn run(rule: impl Future<Output = ()>) {
        in_paused_time(rule);
    }

    async fn fresh() -> Self {
        Self(MemoryBroker::default())
    }

    async fn handle(&self) -> MemoryBroker {
        self.0.handle()
    }
}

struct MemoryLimit(MemoryRateLimit);

impl RateLimitFactory for MemoryLimit {
    type Limit = MemoryRateLimit;

    fn run(rule: impl Future<Output = ()>) {
        in_paused_time(rule);
    }

    async fn fresh(rate: Rate) -> Self {
        Self(MemoryRateLimit::new(rate))
    }

    async fn handle(&self) -> Self::Limit {
        self.0.clone()
    }
}

surefoot_testkit::coordination_suite!(memory, crate::Memory);
surefoot_testkit::rate_limit_suite!(memory_limit, crate::MemoryLimit);

/// Each rule that is written; each says what it is for.
fn written() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/coordination");
    let mut rules = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let family = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["mod", "list"].contains(&family.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name = rest.split('<').next().unwrap();
                assert!(lines[number - 1].starts_with("///"), "{family}::{name} says nothing");
                rules.insert(name.to_owned());
            }
        }
    }
    rules
}

#[test]
fn every_rule_that_is_written_is_run() {
    let list = include_str!("../../src/coordination/list.rs");
    let listed: BTreeSet<String> = list.split_whitespace().map(str::to_owned).collect();
    let left_out: Vec<String> = written().difference(&listed).cloned().collect();
    assert_eq!(left_out, Vec::<String>::new());
}

//! The coordination primitives in memory keep the rules, in paused time.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

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

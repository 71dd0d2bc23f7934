//! The coordination primitives on a real server: the rules, and what happens when it dies.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod chaos;
mod dying;
mod fake;
mod gate;
mod idle;
mod kills;
mod latency;
mod locks;
mod slots;
mod stranded;
mod successors;
mod triggers;
mod wake;

use surefoot_sync_core::Namespace;
use surefoot_sync_nats::Nats;
use surefoot_testkit::coordination::CoordinationFactory;
use surefoot_testkit::servers::{NATS_URL, given};

/// A namespace that nobody else uses.
fn namespace() -> Namespace {
    Namespace::new(nuid::next().to_string()).unwrap()
}

/// The server that all tests share.
async fn connect(namespace: &Namespace) -> Nats {
    Nats::connect(&given(NATS_URL).unwrap(), namespace.clone()).await.unwrap()
}

struct Shared(Namespace);

impl CoordinationFactory for Shared {
    type Coordinator = Nats;

    fn run(rule: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(rule);
    }

    async fn fresh() -> Self {
        Self(namespace())
    }

    async fn handle(&self) -> Nats {
        connect(&self.0).await
    }
}

surefoot_testkit::coordination_suite!(nats, crate::Shared);

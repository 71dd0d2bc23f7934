//! The same script in memory and on a real server. (The testkit's own tests play it on SQLite.)

use proptest::prelude::*;
use surefoot_testkit::MemoryFactory;
use surefoot_testkit::differential::differ;

use crate::suite::{NEWEST, OLDEST, OwnDatabase};

/// So many scripts: each builds a database.
const SCRIPTS: u32 = 6;

fn scripts(times: u32) -> ProptestConfig {
    let asked = std::env::var("SUREFOOT_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.map_or(SCRIPTS, |asked: u32| asked.min(100)) * times;
    ProptestConfig { cases, max_shrink_iters: 20, ..ProptestConfig::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn any_script() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 1..60)
}

proptest! {
    #![proptest_config(scripts(1))]

    #[test]
    fn memory_and_postgres_show_the_same(script in any_script()) {
        let played = runtime()
            .block_on(differ::<MemoryFactory, OwnDatabase<{ NEWEST }>>(&script));
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

proptest! {
    #![proptest_config(scripts(20))]

    #[test]
    #[ignore = "soak"]
    fn memory_and_the_oldest_postgres_show_the_same(script in any_script()) {
        let played = runtime()
            .block_on(differ::<MemoryFactory, OwnDatabase<{ OLDEST }>>(&script));
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }

    #[test]
    #[ignore = "soak"]
    fn memory_and_postgres_show_the_same_for_long(script in any_script()) {
        let played = runtime()
            .block_on(differ::<MemoryFactory, OwnDatabase<{ NEWEST }>>(&script));
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

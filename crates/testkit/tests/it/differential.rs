//! The same script in memory and on SQLite. (PostgreSQL's own tests play it there.)

use proptest::prelude::*;
use surefoot_testkit::MemoryFactory;
use surefoot_testkit::differential::differ;

use crate::sqlite::TempFile;
use crate::wrong::{FLAWS, Flaw, WrongFactory};

/// At most so many scripts, whatever else is asked for: each builds a file.
const SCRIPTS: u32 = 24;

fn scripts(cases: u32) -> ProptestConfig {
    let asked = std::env::var("SUREFOOT_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.map_or(cases, |asked: u32| asked.min(2_000));
    ProptestConfig { cases, max_shrink_iters: 60, ..ProptestConfig::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(scripts(SCRIPTS))]

    #[test]
    fn memory_and_sqlite_show_the_same(script in prop::collection::vec(any::<u64>(), 1..60)) {
        let played = runtime().block_on(differ::<MemoryFactory, TempFile>(&script));
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

/// A script that is long enough, of one seed.
fn script(seed: u64) -> Vec<u64> {
    (0..80).map(|nth: u64| seed.wrapping_mul(0x9e37_79b9).wrapping_add(nth * 7_919)).collect()
}

fn finds<const FLAW: u8>(flaw: Flaw) {
    assert_eq!(FLAWS[usize::from(FLAW)], flaw);
    let found = (0..20).any(|seed| {
        let played = std::panic::catch_unwind(|| {
            runtime().block_on(differ::<MemoryFactory, WrongFactory<FLAW>>(&script(seed)))
        });
        // A broken store breaks invariants too, which is said by a panic.
        !matches!(played, Ok(Ok(())))
    });
    assert!(found, "no script finds a store that {flaw:?}");
}

#[test]
fn a_store_without_flaw_shows_the_same() {
    for seed in 0..5 {
        let played = runtime().block_on(differ::<MemoryFactory, WrongFactory<0>>(&script(seed)));
        assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

#[test]
fn a_store_that_differs_is_found() {
    finds::<1>(Flaw::CommitsBlindly);
    finds::<2>(Flaw::RenewsInWordsOnly);
    finds::<3>(Flaw::ForgetsEarlySignals);
}

//! Kills at calls and at random: nothing that was acknowledged is lost, and no effect happens twice.

use std::time::Duration;

use rustix::process::Signal;

use crate::child::DIES;
use crate::file::File;
use crate::parent::Child;

/// One kill of each of the two tests for so many of the cases that `SUREFOOT_CASES` asks for: 200 by default.
const CASES_PER_KILL: u64 = 100;
const CASES: u64 = 10_000;
/// Kills that one file sees.
const KILLS_PER_FILE: usize = 25;

fn kills() -> u64 {
    let cases = std::env::var("SUREFOOT_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    cases.unwrap_or(CASES).div_ceil(CASES_PER_KILL)
}

/// The finaliser of splitmix64: chance that is the same in every run.
fn chance(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Lives one after the other on a few files, each ended by `live`.
async fn lives(kind: u64, live: impl Fn(&File, u64) -> Vec<String>) {
    let kills = kills();
    let mut acknowledged = 0;
    for first in (0..kills).step_by(KILLS_PER_FILE) {
        let mut file = File::new().await;
        for nth in first..(first + KILLS_PER_FILE as u64).min(kills) {
            let said = live(&file, chance(nth * 2 + kind));
            acknowledged += said.len();
            file.heard(&said);
            file.check().await;
        }
        file.drain().await;
    }
    println!("{kills} kills, {acknowledged} lines said before them");
    assert!(acknowledged as u64 > kills, "the children come to nothing before they are killed");
}

/// Covers field fault 5.
/// Covers field fault 11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_kills_itself_at_any_call_loses_nothing_that_it_acknowledged() {
    lives(0, |file, chance| {
        let side = if chance.is_multiple_of(2) { "before" } else { "after" };
        let dies = format!("{} {side}", 1 + (chance >> 1) % 120);
        let child = Child::start(&file.place, "load", Some(&dies));
        let said = child.join_killed();
        assert!(said.len() < 1_000, "{DIES} is {dies}, and it lived on");
        said
    })
    .await;
}

/// Covers field fault 5.
/// Covers field fault 11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_is_killed_at_any_moment_loses_nothing_that_it_acknowledged() {
    lives(1, |file, chance| {
        let child = Child::start(&file.place, "load", None);
        if !chance.is_multiple_of(8) {
            child.wait_for("ready");
        }
        // The moment is the point: there is no condition to wait for.
        std::thread::sleep(Duration::from_micros((chance >> 3) % 250_000));
        child.signal(Signal::KILL);
        child.join_killed()
    })
    .await;
}

//! Several processes against one key.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use surefoot_sync_core::{Rate, RateLimit as _};
use surefoot_testkit::servers::{VALKEY_URL, given};

use crate::{key, limit};

const PROCESSES: usize = 8;
const LIMIT: u32 = 40;
const PERIOD: Duration = Duration::from_millis(400);
/// Each process asks for so long: several periods.
const ASK_FOR: Duration = Duration::from_millis(2_400);
const ID: &str = "SUREFOOT_TEST_LIMIT_ID";

/// One clock for all processes of a machine, in microseconds; it cannot be set.
fn now_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// What the processes run: between which instants each request went on, one a line. Without its environment it is no
/// test.
#[tokio::test]
async fn a_process_that_asks() {
    let Ok(id) = std::env::var(ID) else { return };
    let rate = Rate::new(LIMIT, PERIOD).unwrap();
    let url = given(VALKEY_URL).unwrap();
    let limit = limit(&url, &id, rate).time_limit(Duration::from_secs(30)).unwrap();
    let until = now_us() + i64::try_from(ASK_FOR.as_micros()).unwrap();
    let mut passed = Vec::new();
    while now_us() < until {
        let before = now_us();
        let check = limit.check(&key("ada")).await.unwrap();
        if check.limited {
            // Often enough to catch every gap, and not so often that nobody else gets to ask.
            tokio::time::sleep(Duration::from_millis(2)).await;
        } else {
            passed.push((before, now_us()));
        }
    }
    let mut out = std::io::stdout().lock();
    for (before, after) in passed {
        writeln!(out, "\npassed {before} {after}").unwrap();
    }
}

/// Covers field fault 157.
#[test]
fn eight_processes_never_exceed_the_limit_over_any_window() {
    let id = format!("processes-{}", std::process::id());
    let program = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut command = Command::new(&program);
            command.args(["--exact", "processes::a_process_that_asks", "--nocapture"]);
            command.env(ID, &id).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut passed: Vec<(i64, i64)> = Vec::new();
    for mut child in children {
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some((before, after)) =
                line.strip_prefix("passed ").and_then(|it| it.split_once(' '))
            else {
                continue;
            };
            passed.push((before.parse().unwrap(), after.parse().unwrap()));
        }
        assert!(child.wait().unwrap().success());
    }
    passed.sort_unstable();
    let period = i64::try_from(PERIOD.as_micros()).unwrap();
    // A request went on at some instant between being asked and being answered. Those that lie in a window as a whole
    // were counted in it, however slow the machine is.
    for (from, _) in &passed {
        let inside =
            passed.iter().filter(|(before, after)| before >= from && *after < from + period);
        let inside = inside.count();
        assert!(inside <= usize::try_from(LIMIT).unwrap(), "{inside} within {PERIOD:?}");
    }
    // It is a limit and no wall: the first period was used up, and later ones were used.
    let (first, last) = (passed.first().unwrap().0, passed.last().unwrap().0);
    assert!(passed.len() > usize::try_from(LIMIT).unwrap(), "{} passed", passed.len());
    assert!(last - first > period);
}

//! A fleet under a bad sky: what the provider did is what was promised, for any seed; and the simulation bites.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use surefoot_testkit::MemoryFactory;
use surefoot_testkit::simulation::{Played, Script, simulate};
use surefoot_testkit::suite::StoreFactory;

use crate::wrong::{FLAWS, Flaw, WrongFactory};

const WORKERS: usize = 5;
/// Seeds of the whole, in four parts that run beside each other.
const SEEDS: u64 = 1_000;

fn seeds() -> u64 {
    let cases = std::env::var("SUREFOOT_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(SEEDS, |cases| cases.clamp(8, 1_000_000))
}

/// Where scripts that fail are kept.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulation")
}

/// Plays a script from the start, in a time of its own.
fn play<F: StoreFactory>(script: &Script) -> Played {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(simulate::<F>(script))
}

/// Plays one part of the seeds.
fn holds(part: u64) {
    hold((0..seeds()).filter(|seed| seed % 4 == part));
}

/// Plays seeds, and keeps what fails.
fn hold(seeds_of_it: impl Iterator<Item = u64>) {
    let (mut verdicts, mut carried_out) = (0, 0);
    let (mut eager, mut canceled, mut declined) = (0, 0, 0);
    for seed in seeds_of_it {
        let script = Script::of(seed, WORKERS);
        let played = play::<MemoryFactory>(&script);
        if !played.failures.is_empty() {
            let kept = script.save(&folder()).unwrap();
            panic!(
                "seed {seed}: {:#?}\nSUREFOOT_SCRIPT={} plays it again, in `a_kept_script_is_played`",
                played.failures,
                kept.display()
            );
        }
        verdicts += played.verdicts;
        carried_out += played.log.len();
        eager += played.eager;
        canceled += played.canceled;
        declined += played.declined;
    }
    println!("{carried_out} things were done, {verdicts} verdicts were given");
    println!("{eager} runs were started at once, {canceled} canceled, {declined} declined");
    assert!(carried_out > 0);
    // A few seeds need not reach everything.
    let reached = [verdicts, eager, canceled, declined];
    assert!(seeds() < SEEDS || reached.iter().all(|count| *count > 0), "{reached:?}");
}

/// Covers field faults 1, 8, 16, 20, 23, 24, 30.
#[test]
fn no_effect_is_done_twice_and_none_is_dropped_1() {
    holds(0);
}

/// Covers field faults 1, 8, 16, 20, 23, 24, 30.
#[test]
fn no_effect_is_done_twice_and_none_is_dropped_2() {
    holds(1);
}

/// Covers field faults 1, 8, 16, 20, 23, 24, 30.
#[test]
fn no_effect_is_done_twice_and_none_is_dropped_3() {
    holds(2);
}

/// Covers field faults 1, 8, 16, 20, 23, 24, 30.
#[test]
fn no_effect_is_done_twice_and_none_is_dropped_4() {
    holds(3);
}

/// An hour of chaos in which writes are fenced out, race and stay in doubt: none of that is a warning. What is said is that
/// a loop cannot reach the store.
/// Covers field fault 117.
#[test]
fn an_hour_of_chaos_warns_of_nothing_but_a_store_out_of_reach() {
    let loud = Loud::default();
    let _guard = tracing::subscriber::set_default(loud.clone());
    let (mut took_ms, mut seed) = (0, 0);
    while took_ms < 3_600_000 && seed < seeds() {
        took_ms += play::<MemoryFactory>(&Script::of(seed, WORKERS)).took_ms;
        seed += 1;
    }
    let told = loud.0.lock().unwrap();
    let is_expected = |text: &&String| text.starts_with("a pass of the loop failed");
    let others: Vec<&String> = told.iter().filter(|text| !is_expected(text)).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert!(!told.is_empty() || seeds() < SEEDS, "nothing was heard: does it listen at all?");
    println!("{seed} seeds, {took_ms} ms, {} warnings", told.len());
}

/// What is logged as a warning or worse.
#[derive(Clone, Default)]
struct Loud(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Loud {
    fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
        *of.level() <= tracing::Level::WARN && of.is_event()
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[derive(Default)]
struct Message(String);

impl tracing::field::Visit for Message {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}; ")),
            name => self.0.push_str(&format!("{name}={value:?} ")),
        }
    }
}

/// A script that failed can be looked at: `SUREFOOT_SCRIPT` names its file. Without one, a kept script of any seed.
#[test]
fn a_kept_script_is_played() {
    let kept = std::env::var_os("SUREFOOT_SCRIPT").map(PathBuf::from);
    let kept = kept.unwrap_or_else(|| Script::of(7, WORKERS).save(&folder()).unwrap());
    let script = Script::load(&kept).unwrap();
    let played = play::<MemoryFactory>(&script);
    assert!(played.failures.is_empty(), "{:#?}\n{:#?}", played.failures, played.log);
}

#[test]
#[ignore = "soak"]
fn twenty_thousand_seeds() {
    hold(SEEDS..20 * SEEDS);
}

#[test]
fn the_same_script_is_played_the_same_way() {
    for seed in 0..30 {
        let script = Script::of(seed, WORKERS);
        let (first, second) = (play::<MemoryFactory>(&script), play::<MemoryFactory>(&script));
        assert_eq!(first, second, "seed {seed}");
        assert!(first.failures.is_empty(), "{:#?}", first.failures);
    }
}

/// The first seed that finds a store with a flaw, whose script is kept and fails again when it is played.
fn finds<const FLAW: u8>(flaw: Flaw, within: u64) -> Vec<String> {
    assert_eq!(FLAWS[usize::from(FLAW)], flaw);
    for seed in 0..within {
        let script = Script::of(seed, WORKERS);
        // A broken store breaks invariants too, which is said by a panic.
        let played = std::panic::catch_unwind(|| play::<WrongFactory<FLAW>>(&script).failures);
        let failures = played.unwrap_or_else(|_| vec!["an invariant is broken".to_owned()]);
        if !failures.is_empty() {
            println!("seed {seed} finds that it {flaw:?}: {failures:#?}");
            let sound = play::<MemoryFactory>(&script);
            assert!(sound.failures.is_empty(), "without the flaw: {:#?}", sound.failures);
            let kept = script.save(&folder().join(format!("{flaw:?}"))).unwrap();
            assert_eq!(Script::load(&kept).unwrap(), script);
            return failures;
        }
    }
    panic!("no seed finds a store that {flaw:?}");
}

#[test]
fn a_store_whose_marks_are_not_durable_is_found_by_an_effect_done_twice() {
    let failures = finds::<17>(Flaw::DelaysMarks, 200);
    assert!(failures.iter().any(|one| one.contains("carried out 2 times")), "{failures:#?}");
}

#[test]
fn a_store_that_commits_for_stale_workers_is_found() {
    finds::<1>(Flaw::CommitsBlindly, 200);
}

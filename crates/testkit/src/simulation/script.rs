//! What happens in a simulation, as data: made of a seed, kept in a file, played again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use surefoot_kernel_core::EffectKey;

use crate::dice::{Dice, roll};

/// Milliseconds of trouble; after that all is calm.
const TROUBLE_MS: u64 = 120_000;

/// One course of events. The same script is played the same way each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Decides what the moves below do not: what becomes of each call to the store and to the provider.
    pub seed: u64,
    /// By how much the wall clock of each worker is wrong, in milliseconds, and its rate, in thousandths.
    pub clocks: Vec<(i64, i64)>,
    /// The workers that run their loops, and start events of their own process at once; the others work in passes.
    pub started: Vec<usize>,
    /// Of a thousand calls to the store, so many go wrong.
    pub store_faults: u64,
    /// Of a thousand calls to the store, so many take longer than a lease.
    pub store_slow: u64,
    /// Of a thousand requests to the provider, so many go wrong.
    pub provider_faults: u64,
    /// Of a thousand payments, so many are declined, however often they are asked for.
    pub declined: u64,
    /// After so many milliseconds nothing goes wrong any more.
    pub calm_after: u64,
    /// What is done, and at which millisecond, in order.
    pub moves: Vec<(u64, Move)>,
}

/// Something that is done to the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// The application emits the event of an order, again and again until it hears that it is recorded.
    Emit(u64),
    /// The same, in the process of a worker.
    EmitBeside(u64, usize),
    /// Somebody asks to cancel the run of an order, as insistently.
    Cancel(u64),
    /// An operator has an order tried again if it failed, and its provider asked again if that can be done.
    Meddle(u64),
    /// Somebody approves an order, as insistently.
    Approve(u64),
    /// A worker is killed. It is started again a while later.
    Kill(usize),
    /// A worker stands still for so many milliseconds.
    Pause(usize, u64),
    /// A worker cannot reach the store for so many milliseconds.
    Cut(usize, u64),
}

impl Script {
    /// The script of a seed.
    #[must_use]
    pub fn of(seed: u64, workers: usize) -> Self {
        let mut dice = Dice(roll(seed, &[0]));
        let clocks = (0..workers).map(|_| (dice.signed(7_200_000), dice.signed(2))).collect();
        let mut moves = Vec::new();
        let worker =
            |dice: &mut Dice| usize::try_from(dice.below(workers as u64)).unwrap_or_default();
        let started: Vec<usize> = (0..dice.below(3)).map(|_| worker(&mut dice)).collect();
        for order in 0..=dice.below(5) {
            let at = dice.below(TROUBLE_MS / 2);
            let beside = started.first().filter(|_| dice.below(2) > 0);
            let emit = beside.map_or(Move::Emit(order), |one| Move::EmitBeside(order, *one));
            moves.push((at, emit));
            if dice.below(3) > 0 {
                moves.push((dice.below(TROUBLE_MS), Move::Approve(order)));
            }
            if dice.below(5) == 0 {
                moves.push((dice.below(TROUBLE_MS), Move::Cancel(order)));
            }
            if dice.below(5) == 0 {
                moves.push((dice.below(TROUBLE_MS), Move::Meddle(order)));
            }
        }
        for _ in 0..dice.below(10) {
            let worker = worker(&mut dice);
            let trouble = match dice.below(3) {
                0 => Move::Kill(worker),
                1 => Move::Pause(worker, dice.below(60_000)),
                _ => Move::Cut(worker, dice.below(60_000)),
            };
            moves.push((dice.below(TROUBLE_MS), trouble));
        }
        moves.sort_by_key(|(at, _)| *at);
        Self {
            seed,
            clocks,
            started,
            store_faults: dice.below(60),
            store_slow: dice.below(10),
            provider_faults: dice.below(500),
            declined: dice.below(300),
            calm_after: TROUBLE_MS,
            moves,
        }
    }

    /// Writes it to a file of its own in a folder, which is made if need be.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let place = folder.join(format!("seed-{}.json", self.seed));
        fs::write(&place, serde_json::to_string_pretty(self)?)?;
        Ok(place)
    }

    /// Reads a file that [`Script::save`] wrote.
    ///
    /// # Errors
    /// The file cannot be read, or is no script.
    pub fn load(place: &Path) -> io::Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(place)?)?)
    }

    pub(super) fn orders(&self) -> Vec<u64> {
        let order = |(_, one): &(u64, Move)| match one {
            Move::Emit(order) | Move::EmitBeside(order, _) => Some(*order),
            Move::Cancel(_)
            | Move::Meddle(_)
            | Move::Approve(_)
            | Move::Kill(_)
            | Move::Pause(..)
            | Move::Cut(..) => None,
        };
        self.moves.iter().filter_map(order).collect()
    }

    /// Whether somebody asks to cancel an order.
    pub(super) fn cancels(&self, order: u64) -> bool {
        self.moves.iter().any(|(_, one)| *one == Move::Cancel(order))
    }

    /// Whether the provider declines the payment under this key, whoever asks and when.
    pub(super) fn declines(&self, key: &EffectKey) -> bool {
        let digits = key.as_str().get(..15).and_then(|text| u64::from_str_radix(text, 16).ok());
        Dice(roll(self.seed, &[2_000, digits.unwrap_or_default()])).below(1_000) < self.declined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_script_that_a_file_keeps() {
        let folder = std::env::temp_dir().join(format!("surefoot-script-{}", std::process::id()));
        for seed in 0..50 {
            let script = Script::of(seed, 5);
            assert_eq!(script, Script::of(seed, 5));
            assert_ne!(script, Script::of(seed + 1, 5));
            assert_eq!(Script::load(&script.save(&folder).unwrap()).unwrap(), script);
            assert!(!script.orders().is_empty());
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

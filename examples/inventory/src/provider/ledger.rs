//! What the provider carried out: a file that only grows, and the same in memory for questions.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use super::wire::{Charge, card};

/// What the provider can say about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// It was carried out.
    Charged(Charge),
    /// It was refused.
    Refused,
    /// It may have been carried out; the provider lost track.
    CannotTell,
    /// Nobody asked for it, or it was not acted on yet.
    Nothing,
}

/// All charges ever carried out.
#[derive(Debug)]
pub(super) struct Ledger {
    log: File,
    charges: HashMap<String, Charge>,
    refused: HashSet<String>,
    carried_out: u64,
}

impl Ledger {
    /// Opens the log and remembers what it says.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut charges = HashMap::new();
        let mut carried_out = 0;
        for line in BufReader::new(&log).lines() {
            let charge: Charge = serde_json::from_str(&line?)?;
            carried_out += 1;
            charges.insert(charge.effect_key.clone(), charge);
        }
        Ok(Self { log, charges, refused: HashSet::new(), carried_out })
    }

    /// Carries a charge out: the line is on the disk when this returns. A key that was charged before is charged
    /// AGAIN. This provider does not tell repeats, so that its log shows them.
    pub(super) fn carry_out(
        &mut self,
        charge: impl FnOnce(String) -> Charge,
    ) -> io::Result<Charge> {
        self.carried_out += 1;
        let charge = charge(format!("ch_{:06}", self.carried_out));
        let mut line = serde_json::to_vec(&charge)?;
        line.push(b'\n');
        self.log.write_all(&line)?;
        self.log.sync_data()?;
        self.charges.insert(charge.effect_key.clone(), charge.clone());
        Ok(charge)
    }

    /// Refuses a key, now and from now on.
    pub(super) fn refuse(&mut self, effect_key: String) {
        self.refused.insert(effect_key);
    }

    /// What became of a key.
    pub(super) fn find(&self, effect_key: &str) -> Known {
        match self.charges.get(effect_key) {
            Some(charge) if charge.card == card::FORGOTTEN => Known::CannotTell,
            Some(charge) => Known::Charged(charge.clone()),
            None if self.refused.contains(effect_key) => Known::Refused,
            None => Known::Nothing,
        }
    }
}

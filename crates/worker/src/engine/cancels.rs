//! Hears of cancel requests while a hook runs.

use surefoot_kernel_core::{LoadRequest, Micros, TxStore};

use super::Engine;
use super::hold::Pulse;
use super::shift::Shift;

/// Younger knowledge needs no question: each commit brings the flag along.
const FRESH: Micros = Micros::from_millis(500);

impl<S: TxStore> Engine<S> {
    /// Asks for the runs whose hook has run for a while, so that their token fires within about a second.
    pub(super) async fn ask_who_is_canceled(&self, shift: &Shift) {
        for hold in shift.holds() {
            if !matches!(hold.pulse(true), Pulse::Held(age) if age >= FRESH) {
                continue;
            }
            // The row is wanted, not the journal.
            let request = LoadRequest { run: hold.run(), after: Some(hold.seq()) };
            let Ok(Some(stored)) = self.kernel.store().run_load(request).await else { continue };
            if stored.run.generation == hold.generation() && stored.run.cancel.is_some() {
                hold.cancel();
            }
        }
    }
}

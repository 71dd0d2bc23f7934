//! The end of a show, for people and for programs.

use std::path::PathBuf;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use serde_json::json;
use surefoot_inventory::provider::wire::Charge;
use surefoot_kernel_core::{Phase, RunRow, RunState, TxStore};

use super::DemoError;
use super::folder::Folder;
use super::strike::Strike;
use super::tally::{Books, Journal, Tally, runs};

/// Runs whose command is shown; the rest is counted.
const SHOWN: usize = 3;

/// What came of a show; its JSON is a contract.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    runs: usize,
    succeeded: usize,
    failed: usize,
    needs_attention: usize,
    charges_provider: usize,
    charges_confirmed: usize,
    charges_open: usize,
    lost: usize,
    repeated: usize,
    workers_killed: usize,
    killed_in_call: usize,
    reconciled: usize,
    recovery_ms: u64,
    store: String,
    provider_log: PathBuf,
    #[serde(skip)]
    stranded: Vec<Stranded>,
    #[serde(skip)]
    folder: Folder,
}

/// A run that needs a person, and the command that helps.
#[derive(Debug)]
struct Stranded {
    run: String,
    why: String,
    command: String,
}

impl Report {
    pub(super) async fn write(
        store: &impl TxStore,
        folder: &Folder,
        strike: Option<Strike>,
    ) -> Result<Self, DemoError> {
        let rows = runs(store, Vec::new()).await?;
        let (books, journal) = (Books::read(folder)?, Journal::read(store).await?);
        let tally = Tally::of(&books, &journal);
        let count = |state| rows.iter().filter(|row| row.run.state() == state).count();
        let stranded = rows.iter().filter_map(|row| Stranded::of(row, &books, folder)).collect();
        let recovery = strike.map(|strike| strike.recovery.as_millis()).unwrap_or_default();
        Ok(Self {
            runs: rows.len(),
            succeeded: count(RunState::Succeeded),
            failed: count(RunState::Failed),
            needs_attention: count(RunState::NeedsAttention),
            charges_provider: tally.provider,
            charges_confirmed: tally.confirmed,
            charges_open: tally.open,
            lost: tally.lost,
            repeated: tally.repeated,
            workers_killed: usize::from(strike.is_some()),
            killed_in_call: strike.map(|strike| strike.killed_in_call).unwrap_or_default(),
            reconciled: tally.reconciled,
            recovery_ms: u64::try_from(recovery).unwrap_or(u64::MAX),
            store: folder.store(),
            provider_log: folder.charges(),
            stranded,
            folder: folder.clone(),
        })
    }

    /// Whether the provider's log and the journal tell the same.
    pub(super) const fn agrees(&self) -> bool {
        self.lost == 0 && self.repeated == 0
    }

    /// Whether what was to be shown was shown.
    pub(super) const fn is_complete(&self) -> bool {
        self.killed_in_call > 0 && self.reconciled > 0
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.table(), self.verdict());
        if !self.stranded.is_empty() {
            text += &self.attention();
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        let states = [
            ("succeeded", self.succeeded),
            ("failed", self.failed),
            ("needs attention", self.needs_attention),
        ];
        for (state, count) in states {
            table.add_row(vec![format!("runs {state}"), count.to_string()]);
        }
        let charges = [
            ("charges in the provider's log", self.charges_provider),
            ("charges confirmed in the journal", self.charges_confirmed),
            ("  of these by asking the provider afterwards", self.reconciled),
            ("charges that nobody can explain yet", self.charges_open),
        ];
        for (what, count) in charges {
            table.add_row(vec![what.to_owned(), count.to_string()]);
        }
        if let Some(numbers) = table.column_mut(1) {
            numbers.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    fn verdict(&self) -> String {
        let mut text = format!("lost {}, repeated {}\n", self.lost, self.repeated);
        if self.workers_killed > 0 {
            text += &format!(
                "killed {} worker in the middle of {} charge{}; recovery took {} ms\n",
                self.workers_killed,
                self.killed_in_call,
                if self.killed_in_call == 1 { "" } else { "s" },
                self.recovery_ms
            );
        }
        let (begin, store) = if self.folder.is_on_server() {
            (format!("the store is {}, and the rest is in", self.store), "")
        } else {
            ("all of it is in".to_owned(), "the store, ")
        };
        text + &format!(
            "{begin} {}: {store}the workflows with the manifest to check them against, and the logs\n",
            self.folder.path().display()
        )
    }

    fn attention(&self) -> String {
        let mut text = String::from(
            "\nThese runs need a person. The provider cannot tell what it did, so nothing is repeated:\n",
        );
        for stranded in self.stranded.iter().take(SHOWN) {
            let Stranded { run, why, command } = stranded;
            text += &format!("\n  {run}\n    {why}\n    {command}\n");
        }
        if let Some(first) = self.stranded.first() {
            let explain = format!("{} --store {} explain {}", program(), self.url(), first.run);
            text += &format!("\n  the whole story of the first one: {explain}\n");
        }
        if let Some(more @ 1..) = self.stranded.len().checked_sub(SHOWN) {
            text += &format!("\n  and {more} more: {} --store {} effects\n", program(), self.url());
        }
        let folder = quoted(&self.folder.path().display().to_string());
        let mut finish = format!("{} demo --finish {folder}", program());
        if self.folder.is_on_server() {
            finish += &format!(" --store {}", self.url());
        }
        text + &format!("\nA worker then goes on with them: {finish}\n")
    }

    /// The store, as `--store` takes it.
    fn url(&self) -> String {
        quoted(&self.folder.store_argument())
    }
}

impl Stranded {
    fn of(row: &RunRow, books: &Books, folder: &Folder) -> Option<Self> {
        let Phase::NeedsAttention(attention) = &row.run.phase else { return None };
        let effect = attention.effect.as_ref()?;
        let charge = books.find(row.run.effect_key(&effect.step).as_str());
        let command = format!(
            "{} --store {} resolve {} {} {} --reason {} --revision {} --yes",
            program(),
            quoted(&folder.store_argument()),
            row.run.id,
            effect.step,
            verdict(charge),
            quoted("looked it up at the provider"),
            row.run.revision,
        );
        Some(Self { run: row.run.id.to_string(), why: attention.error.message.clone(), command })
    }
}

/// What a person finds who goes through the provider's books.
fn verdict(charge: Option<&Charge>) -> String {
    match charge {
        Some(Charge { id, cents, .. }) => {
            format!("--succeeded {}", quoted(&json!({ "id": id, "cents": cents }).to_string()))
        }
        None => "--not-performed".to_owned(),
    }
}

/// This program as it can be typed here.
fn program() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("surefoot"));
    let short = program.strip_prefix(&here).map_or(program.as_path(), |short| short);
    quoted(&short.display().to_string())
}

/// One word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(quoted("sqlite:/tmp/a-b/c.db"), "sqlite:/tmp/a-b/c.db");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(r#"{"id":"ch_1"}"#), r#"'{"id":"ch_1"}'"#);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}

//! Which event does what. Decided by its number alone, so that each show is the same show.

use surefoot_inventory::catalog::NewItem;
use surefoot_inventory::events::{ItemListed, StockLow};
use surefoot_inventory::provider::wire::card;
use surefoot_kernel_core::Event;
use surefoot_language::Trigger;

/// With fewer there would be nobody to kill, or nothing to decide afterwards.
pub(super) const EVENTS_MIN: u32 = 4;
/// More would not show more.
pub(super) const EVENTS_MAX: u32 = 100_000;

/// What becomes of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A supplier is asked; the answer is another process's work.
    Quote,
    /// Nothing is ordered.
    Idle { discontinued: bool },
    /// Something is ordered and paid.
    Order { card: &'static str, approval: Approval },
}

/// Whether a person is asked before the card is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    /// The order is small.
    NotNeeded,
    /// A person says yes.
    Given,
    /// A person says no.
    Refused,
}

/// The events of one show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cast {
    events: u32,
}

impl Cast {
    pub(super) const fn new(events: u32) -> Self {
        Self { events }
    }

    pub(super) fn items(self) -> Vec<NewItem> {
        (0..self.events).map(|index| self.item(index)).collect()
    }

    pub(super) fn event(self, index: u32) -> Event {
        let item = item_id(index);
        let event = match self.role(index) {
            Role::Quote => ItemListed { item, pieces: 12 }.event(),
            Role::Idle { .. } => StockLow { item, card: card::GOOD.to_owned() }.event(),
            Role::Order { card, .. } => StockLow { item, card: card.to_owned() }.event(),
        };
        // Whoever emits it twice starts one run.
        event.dedupe_key(format!("demo:{index}"))
    }

    /// What a person says about the order of this event.
    pub(super) fn approval(self, index: u32) -> Approval {
        match self.role(index) {
            Role::Order { approval, .. } => approval,
            Role::Quote | Role::Idle { .. } => Approval::NotNeeded,
        }
    }

    /// Whether a worker may be killed while it waits for the answer to this event's charge: one that never comes, and
    /// not before half of the show.
    pub(super) fn is_cue(self, index: u32) -> bool {
        let silent = matches!(self.role(index), Role::Order { card: card::NO_ANSWER, .. });
        silent && index >= self.events / 2
    }

    fn item(self, index: u32) -> NewItem {
        let role = self.role(index);
        let idle = matches!(role, Role::Idle { discontinued: false });
        let large = self.approval(index) != Approval::NotNeeded;
        NewItem {
            id: item_id(index),
            price_cents: if large { 20_000 } else { 250 },
            discontinued: role == Role::Idle { discontinued: true },
            stock: vec![
                ("berlin", if idle { 10 } else { 3 }, 10),
                ("hamburg", 5, 5),
                ("munich", if idle { 10 } else { 5 }, 10),
            ],
        }
    }

    fn role(self, index: u32) -> Role {
        let order = |card| Role::Order { card, approval: Approval::NotNeeded };
        // Two cues in every show: on a machine that is very busy the first one may be missed.
        if index == self.events / 2 || index == self.events * 3 / 4 {
            return order(card::NO_ANSWER);
        }
        match index % 60 {
            1 => return order(card::FORGOTTEN),
            3 => return order(card::LATE),
            7 => return order(card::NO_ANSWER),
            17 | 37 | 57 => return order(card::DECLINED),
            _ => {}
        }
        match index % 20 {
            0 | 10 => Role::Quote,
            5 => Role::Idle { discontinued: true },
            15 => Role::Idle { discontinued: false },
            12 if index % 40 == 12 => Role::Order { card: card::GOOD, approval: Approval::Refused },
            2 | 12 => Role::Order { card: card::GOOD, approval: Approval::Given },
            _ => order(card::GOOD),
        }
    }
}

fn item_id(index: u32) -> String {
    format!("item-{index:05}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(events: u32) -> Vec<Role> {
        (0..events).map(|index| Cast::new(events).role(index)).collect()
    }

    fn has_card(roles: &[Role], wanted: &str) -> bool {
        roles.iter().any(|role| matches!(role, Role::Order { card, .. } if *card == wanted))
    }

    #[test]
    fn every_show_has_a_cue_a_charge_that_is_forgotten_and_enough_charges() {
        for events in (EVENTS_MIN..300).chain([2_000]) {
            let (cast, roles) = (Cast::new(events), roles(events));
            assert!((0..events).any(|index| cast.is_cue(index)), "{events}");
            assert!(has_card(&roles, card::FORGOTTEN), "{events}");
            let pays = |role: &&Role| {
                matches!(role, Role::Order { card, approval }
                    if *card != card::DECLINED && *approval != Approval::Refused)
            };
            let charges = roles.iter().filter(pays).count();
            assert!(charges * 4 >= roles.len(), "{charges} of {events}");
        }
    }

    #[test]
    fn twenty_events_are_enough_for_every_role() {
        let (cast, roles) = (Cast::new(20), roles(20));
        for wanted in [card::GOOD, card::NO_ANSWER, card::LATE, card::DECLINED] {
            assert!(has_card(&roles, wanted), "{wanted}");
        }
        for wanted in [Approval::Given, Approval::Refused] {
            assert!((0..20).any(|index| cast.approval(index) == wanted), "{wanted:?}");
        }
        for wanted in [Role::Quote, Role::Idle { discontinued: true }] {
            assert!(roles.contains(&wanted), "{wanted:?}");
        }
    }
}

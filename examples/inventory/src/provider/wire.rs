//! What travels between an application and the payment provider.

use serde::{Deserialize, Serialize};

/// The header that names the charge: the same in every attempt.
pub const EFFECT_KEY: &str = "effect-key";
/// The header that names the process that asks. No provider needs it; the demo shows by it whom it kills when.
pub const WORKER: &str = "worker";

/// What the provider does depends on the card, as it does with the test cards of real ones.
pub mod card {
    /// Charged and answered.
    pub const GOOD: &str = "card-good";
    /// Refused, for good.
    pub const DECLINED: &str = "card-declined";
    /// Charged, and the answer never leaves.
    pub const NO_ANSWER: &str = "card-no-answer";
    /// Charged, answered with an error, and the provider cannot tell afterwards what it did.
    pub const FORGOTTEN: &str = "card-forgotten";
    /// Answered with an error at once and charged a while later; until then the key is not known.
    pub const LATE: &str = "card-late";
}

/// `POST /charges`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRequest {
    /// How much.
    pub cents: i64,
    /// Of what, as in `EUR`.
    pub currency: String,
    /// Which card; see [`card`].
    pub card: String,
    /// What the application calls it: its run.
    pub reference: String,
}

/// The answer 200.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The provider's own name of the charge.
    pub id: String,
    /// How much was charged.
    pub cents: i64,
}

/// The answer 402, and with other words every answer that is no receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For people.
    pub message: String,
}

/// One line of the provider's log: a charge that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The key it was asked for under.
    pub effect_key: String,
    /// The provider's own name of it.
    pub id: String,
    /// How much.
    pub cents: i64,
    /// Of what.
    pub currency: String,
    /// Which card.
    pub card: String,
    /// What the application calls it.
    pub reference: String,
}

/// `GET /control/calls`: a request that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The key it was asked for under.
    pub effect_key: String,
    /// What the application calls it.
    pub reference: String,
    /// The process that asks and waits.
    pub worker: u32,
    /// Whether the charge is in the log already.
    pub carried_out: bool,
    /// Since the request came.
    pub age_ms: u64,
}

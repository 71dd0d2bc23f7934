//! Effect budgets: caps of a publication, counters of a root run, and the one function that charges them.
//!
//! Amounts are counted in millionths, so that sums are exact and do not depend on the order of charges.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, json};

use crate::{Code, Failure, StepKey};

/// Millionths of one.
const UNIT: i64 = 1_000_000;
/// The largest single amount: up to it every decimal with six digits behind the point is exact in JSON.
pub const AMOUNT_MAX: f64 = 1_000_000_000.0;

/// A decimal from 0 on, exact to the millionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

/// A number that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{dimension}` is {found}; it must be a number from 0 to 1,000,000,000")]
pub struct NotAnAmount {
    /// Of which dimension.
    pub dimension: String,
    /// What was given: `NaN`, `inf`, `-1`.
    pub found: String,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// What a counter can hold.
    const MOST: Self = Self(i64::MAX);

    /// Rounds to the millionth; what is more than nothing stays more than nothing. `None` where the number is negative,
    /// not finite or over [`AMOUNT_MAX`].
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        if !(0.0..=AMOUNT_MAX).contains(&number) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        let millionths = (number * UNIT as f64).round() as i64;
        Some(Self(if number > 0.0 { millionths.max(1) } else { millionths }))
    }

    /// As a store keeps it; below 0 is 0.
    #[must_use]
    pub const fn from_millionths(millionths: i64) -> Self {
        Self(if millionths < 0 { 0 } else { millionths })
    }

    /// As a store keeps it.
    #[must_use]
    pub const fn millionths(self) -> i64 {
        self.0
    }

    /// The sum; it stops at what a counter can hold.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As a JSON number: whole where it is.
    #[must_use]
    pub fn to_number(self) -> Number {
        let whole = Number::from(self.0 / UNIT);
        if self.0 % UNIT == 0 {
            return whole;
        }
        Number::from_f64(self.0 as f64 / UNIT as f64).unwrap_or(whole)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_number().fmt(f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_number().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let whole = number.as_i64().filter(|whole| *whole >= 0);
        let whole = whole.and_then(|whole| whole.checked_mul(UNIT)).map(Self);
        let amount = whole.or_else(|| number.as_f64().and_then(Self::new));
        amount.ok_or_else(|| serde::de::Error::custom(format!("{number} is not an amount")))
    }
}

/// Amounts by dimension: the caps of a publication, or what a step charges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(BTreeMap<String, Amount>);

impl Amounts {
    /// Reads numbers; of one dimension they add up.
    ///
    /// # Errors
    /// [`NotAnAmount`] names the first number that is negative, not finite or too large.
    pub fn of<D: Into<String>>(
        numbers: impl IntoIterator<Item = (D, f64)>,
    ) -> Result<Self, NotAnAmount> {
        let mut amounts = Self::default();
        for (dimension, number) in numbers {
            let dimension = dimension.into();
            match Amount::new(number) {
                Some(amount) => amounts.add(&dimension, amount),
                None => return Err(NotAnAmount { dimension, found: number.to_string() }),
            }
        }
        Ok(amounts)
    }

    /// One more amount; of the same dimension it adds up.
    pub fn add(&mut self, dimension: &str, amount: Amount) {
        match self.0.get_mut(dimension) {
            Some(sum) => *sum = sum.plus(amount),
            None => drop(self.0.insert(dimension.to_owned(), amount)),
        }
    }

    /// All of another list.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(dimension, amount)| self.add(dimension, amount));
    }

    /// The amount of a dimension, if it is named.
    #[must_use]
    pub fn get(&self, dimension: &str) -> Option<Amount> {
        self.0.get(dimension).copied()
    }

    /// Every dimension with its amount, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.0.iter().map(|(dimension, amount)| (dimension.as_str(), *amount))
    }

    /// Whether no dimension is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is nothing to charge.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.0.values().all(|amount| *amount == Amount::ZERO)
    }
}

/// What a step has charged; on the run's row until its outcome, so that it pays once over retries and parks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCharge {
    /// The step.
    pub step: StepKey,
    /// What it paid.
    pub amounts: Amounts,
}

/// The counters of a root run against its caps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget(BTreeMap<String, Counter>);

/// One dimension of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Charged so far.
    pub used: Amount,
    /// The cap; without one it is only counted.
    pub limit: Option<Amount>,
}

/// One dimension of a budget, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetLine {
    /// Its name.
    pub dimension: String,
    /// Charged so far, by the whole tree of runs.
    pub used: Amount,
    /// The cap; null where it is only counted.
    pub limit: Option<Amount>,
}

/// A charge would pass a cap. Nothing of it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the budget of `{dimension}` is exceeded: its limit is {limit}, used are {used}, requested {requested}"
)]
pub struct Exceeded {
    /// Of which dimension; the first by name.
    pub dimension: String,
    /// The cap.
    pub limit: Amount,
    /// Charged before.
    pub used: Amount,
    /// What the step wanted.
    pub requested: Amount,
}

impl Exceeded {
    /// As the failure of the step: `BUDGET_EXCEEDED`, with the numbers in its details.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::new(Code::BUDGET_EXCEEDED, self.to_string()).details(json!({
            "dimension": self.dimension,
            "limit": self.limit,
            "used": self.used,
            "requested": self.requested,
        }))
    }
}

impl Budget {
    /// A new root run's counters.
    #[must_use]
    pub fn of_caps(caps: &Amounts) -> Self {
        let counter = |limit| Counter { used: Amount::ZERO, limit: Some(limit) };
        Self(caps.iter().map(|(name, limit)| (name.to_owned(), counter(limit))).collect())
    }

    /// As a store read it.
    pub fn of_counters(counters: impl IntoIterator<Item = (String, Counter)>) -> Self {
        Self(counters.into_iter().collect())
    }

    /// Charges all dimensions, or none.
    ///
    /// # Errors
    /// [`Exceeded`] names the first dimension whose cap the charge would pass.
    pub fn charge(&mut self, charge: &Amounts) -> Result<(), Exceeded> {
        self.allows(charge)?;
        for (dimension, amount) in charge.iter() {
            let counter = self.0.entry(dimension.to_owned()).or_default();
            counter.used = counter.used.plus(amount);
        }
        Ok(())
    }

    /// Whether a charge would be taken now.
    ///
    /// # Errors
    /// As [`Budget::charge`].
    pub fn allows(&self, charge: &Amounts) -> Result<(), Exceeded> {
        for (dimension, requested) in charge.iter() {
            let Counter { used, limit } = self.counter(dimension);
            // Without a cap a counter still ends somewhere: it never counts less than was charged.
            let limit = limit.unwrap_or(Amount::MOST);
            let fits = used.0.checked_add(requested.0).is_some_and(|sum| sum <= limit.0);
            if !fits && requested > Amount::ZERO {
                let dimension = dimension.to_owned();
                return Err(Exceeded { dimension, limit, used, requested });
            }
        }
        Ok(())
    }

    /// Where a dimension stands; an unknown one at nothing, without a cap.
    #[must_use]
    pub fn counter(&self, dimension: &str) -> Counter {
        self.0.get(dimension).copied().unwrap_or_default()
    }

    /// Every dimension, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Counter)> {
        self.0.iter().map(|(dimension, counter)| (dimension.as_str(), *counter))
    }

    /// Every dimension, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<BudgetLine> {
        let line = |(dimension, counter): (&str, Counter)| BudgetLine {
            dimension: dimension.to_owned(),
            used: counter.used,
            limit: counter.limit,
        };
        self.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests;

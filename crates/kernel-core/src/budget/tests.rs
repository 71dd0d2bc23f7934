use proptest::prelude::*;
use serde_json::json;

use super::*;

fn amounts(numbers: &[(&str, f64)]) -> Amounts {
    Amounts::of(numbers.iter().copied()).unwrap()
}

fn amount(number: f64) -> Amount {
    Amount::new(number).unwrap()
}

/// Covers behaviour 151.
#[test]
fn a_cap_of_three_takes_three_and_says_exactly_why_not_four() {
    let mut budget = Budget::of_caps(&amounts(&[("payments", 3.0)]));
    for _ in 0..3 {
        budget.charge(&amounts(&[("payments", 1.0)])).unwrap();
    }
    let before = budget.clone();
    let exceeded = budget.charge(&amounts(&[("payments", 1.0)])).unwrap_err();
    assert_eq!(budget, before);
    let failure = exceeded.failure();
    assert_eq!(failure.code, Code::BUDGET_EXCEEDED);
    let numbers = json!({ "dimension": "payments", "limit": 3, "used": 3, "requested": 1 });
    assert_eq!(failure.details, Some(numbers));
}

#[test]
fn all_dimensions_are_charged_or_none() {
    let mut budget = Budget::of_caps(&amounts(&[("eur", 10.0), ("mails", 1.0)]));
    let exceeded = budget.charge(&amounts(&[("eur", 5.0), ("mails", 2.0)])).unwrap_err();
    assert_eq!((exceeded.dimension.as_str(), exceeded.requested), ("mails", amount(2.0)));
    assert_eq!(budget.counter("eur").used, Amount::ZERO);
}

/// Covers behaviour 152.
#[test]
fn negative_and_odd_numbers_are_no_amounts() {
    for odd in [-1.0, -0.000_001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e10] {
        let refused = Amounts::of([("eur", odd)]).unwrap_err();
        assert_eq!(refused.dimension, "eur");
        assert!(refused.to_string().contains(&odd.to_string()), "{refused}");
    }
}

/// Covers behaviour 153.
#[test]
fn without_a_cap_it_is_counted() {
    let mut budget = Budget::default();
    budget.charge(&amounts(&[("tokens", 2.5)])).unwrap();
    budget.charge(&amounts(&[("tokens", 1_000_000.0)])).unwrap();
    let line = budget.lines().pop().unwrap();
    assert_eq!((line.used, line.limit), (amount(1_000_002.5), None));
}

/// Covers behaviour 156.
#[test]
fn a_cap_of_nothing_lets_nothing_pass_but_nothing() {
    let mut budget = Budget::of_caps(&amounts(&[("eur", 0.0)]));
    budget.charge(&amounts(&[("eur", 0.0)])).unwrap();
    assert!(
        budget.charge(&amounts(&[("eur", 0.000_000_1)])).is_err(),
        "too small to be rounded away"
    );
}

#[test]
fn decimals_add_up() {
    let mut budget = Budget::of_caps(&amounts(&[("eur", 0.3)]));
    for _ in 0..3 {
        budget.charge(&amounts(&[("eur", 0.1)])).unwrap();
    }
    assert_eq!(budget.counter("eur").used.to_string(), "0.3");
    assert!(budget.charge(&amounts(&[("eur", 0.000_001)])).is_err());
}

proptest! {
    #[test]
    fn an_amount_survives_json(millionths in 0_i64..1_000_000_000_000_000) {
        let amount = Amount::from_millionths(millionths);
        let text = serde_json::to_string(&amount).unwrap();
        prop_assert_eq!(serde_json::from_str::<Amount>(&text).unwrap(), amount);
    }

    #[test]
    fn used_is_the_sum_of_what_was_taken_and_never_over_the_cap(
        cap in prop::option::of(0.0..20.0),
        charges in prop::collection::vec(0.0..5.0, 0..20),
    ) {
        let caps = Amounts::of(cap.map(|cap| ("eur", cap))).unwrap();
        let mut budget = Budget::of_caps(&caps);
        let mut sum = Amount::ZERO;
        for charge in charges {
            if budget.charge(&amounts(&[("eur", charge)])).is_ok() {
                sum = sum.plus(amount(charge));
            }
        }
        let counter = budget.counter("eur");
        prop_assert_eq!(counter.used, sum);
        prop_assert!(counter.limit.is_none_or(|limit| sum <= limit));
    }
}

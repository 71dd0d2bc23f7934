//! A crash at every call, through the decorator.

use surefoot_testkit::matrix::{EveryClass, WithChildren, crash_matrix};

use crate::encoded::InMemory;

#[tokio::test(start_paused = true)]
async fn every_crash_point_keeps_the_contract_behind_a_codec() {
    let report = crash_matrix::<InMemory, _>(EveryClass::new(), 1).await;
    assert!(report.failures.is_empty() && report.cases > 200, "{report}");
}

#[tokio::test(start_paused = true)]
async fn every_crash_point_of_a_tree_keeps_the_contract_behind_a_codec() {
    let report = crash_matrix::<InMemory, _>(WithChildren::new(), 1).await;
    assert!(report.failures.is_empty() && report.cases > 400, "{report}");
}

//! The scenario of a cancel: three levels of runs, and the application cancels the first when the last one waits.

use std::marker::PhantomData;

use surefoot_kernel_core::{Amounts, Dependency, Failure};
use surefoot_language::{Module, On};

use super::people::nothing_happened;
use super::{Did, Process, Reply, Scenario, TxOf, Verb, every_class};
use crate::suite::StoreFactory;

const WORKFLOWS: &[(&str, &str)] = &[
    (
        "ship",
        "
steps:
  - book: { boxes: 3 }
  - runWorkflows:
      workflow: pack
      each: [1, 2, 3]
      as: box
      inputs: { box: '${{ box }}' }
      parallel: 1
  - mail: { to: nobody }
",
    ),
    (
        "pack",
        "
inputs:
  box: { type: number, required: true }
steps:
  - pay: { cents: '${{ inputs.box }}' }
  - if: '${{ inputs.box == 2 }}'
    then:
      - runWorkflow: { workflow: hold, inputs: {} }
  - book: { boxes: 1 }
",
    ),
    (
        "hold",
        "
steps:
  - mail: { to: hub }
  - waitFor: { kind: stop, key: now, timeout: 1h }
  - note: { boxes: 1 }
",
    ),
];

/// A run with three children one after the other, of which the first has ended and the second waits for a child of its own
/// when that one waits; then the application cancels the whole.
#[derive(Debug)]
pub struct Canceled<F>(PhantomData<fn() -> F>);

impl<F> Canceled<F> {
    /// The scenario.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F> Default for Canceled<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: StoreFactory> Scenario<F> for Canceled<F> {
    type Binding = On<TxOf<F>>;

    fn module(&self, process: &Process<F>) -> Module<On<TxOf<F>>> {
        every_class::module(process)
    }

    fn workflows(&self) -> &[(&str, &str)] {
        WORKFLOWS
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, on: &Dependency) -> Option<Reply> {
        (on.kind() == "stop").then_some(Reply::Cancel)
    }

    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        nothing_happened(error)
    }
}

//! The scenario of a tree: a parent, and children of two of its steps.

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
  - runWorkflows:
      workflow: pack
      each: [2, 3]
      as: boxes
      inputs: { boxes: '${{ boxes }}' }
      parallel: 1
    saveAs: packed
  - book: { boxes: '${{ size(packed) }}' }
  - runWorkflow:
      workflow: bill
      inputs: { cents: 250 }
    saveAs: billed
  - mail: { to: '${{ billed }}' }
",
    ),
    (
        "pack",
        "
inputs:
  boxes: { type: number, required: true }
steps:
  - book: { boxes: '${{ inputs.boxes }}' }
",
    ),
    (
        "bill",
        "
inputs:
  cents: { type: number, required: true }
steps:
  - pay: { cents: '${{ inputs.cents }}' }
",
    ),
];

/// A parent with two children of one step, of which the second is held back until the first has ended, and one of
/// another step; each has an effect, and so has the parent after each wake.
#[derive(Debug)]
pub struct WithChildren<F>(PhantomData<fn() -> F>);

impl<F> WithChildren<F> {
    /// The scenario.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F> Default for WithChildren<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: StoreFactory> Scenario<F> for WithChildren<F> {
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

    fn reply(&self, _: &Dependency) -> Option<Reply> {
        None
    }

    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        nothing_happened(error)
    }
}

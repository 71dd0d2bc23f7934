//! Models, asked by durable tasks.
//!
//! A step writes a task and waits; it holds no worker meanwhile. An [`AiWorker`], in the same process or in one of its own,
//! takes tasks, asks an [`AiProvider`], checks the answer and ends the task, which wakes the step. Whatever dies in between,
//! the task is there once, as it was pinned.

mod actions;
mod output;
mod provider;
mod request;
mod task;
mod worker;

#[cfg(feature = "openai")]
mod openai;
#[cfg(feature = "openai")]
mod sse;

use surefoot_language::Idempotent as _;

pub(crate) use actions::judge;
pub use actions::{
    Classify, ClassifyInput, ClassifyMany, ClassifyManyInput, ClassifyManyOutput, ClassifyOutput,
    Extract, ExtractInput, ExtractOutput, GenerateInput, GenerateOutput, GenerateText,
};
#[cfg(feature = "openai")]
pub use openai::OpenAi;
pub use output::AI_ANSWER_MAX_BYTES;
pub use provider::{AiError, AiProvider};
pub use request::{AI_REQUEST_MAX_BYTES, AiAnswer, AiMessage, AiRequest, AiRole, AiUsage};
pub use task::{Ai, AiTuning};
pub use worker::{AiWorker, AiWorking};

/// The names of the actions that ask a model.
pub const AI_ACTIONS: [&str; 4] =
    [GenerateText::NAME, Classify::NAME, ClassifyMany::NAME, Extract::NAME];
/// The kind of the tasks; of those of a lane, what it begins with.
pub const AI_TASKS: &str = "surefoot.ai";
/// The dimension of the effect budget to which each step charges 1, once.
pub const AI_CALLS: &str = "aiCalls";
/// How often a provider is asked for one task before the task has failed.
pub const AI_ATTEMPTS_MAX: u32 = 3;
/// Labels of one step.
pub const AI_LABELS_MAX: usize = 100;
/// Texts of one `classifyMany`.
pub const AI_TEXTS_MAX: usize = 200;

/// The provider could not be reached, [`AI_ATTEMPTS_MAX`] times.
pub const AI_UNAVAILABLE: &str = "AI_UNAVAILABLE";
/// The provider said no.
pub const AI_REFUSED: &str = "AI_REFUSED";
/// The model's answer cannot be used.
pub const AI_OUTPUT_INVALID: &str = "AI_OUTPUT_INVALID";
/// The task was canceled, and its run goes on all the same.
pub const AI_CANCELED: &str = "AI_CANCELED";
/// The task cannot be read by this version.
pub const AI_UNREADABLE: &str = "AI_UNREADABLE";

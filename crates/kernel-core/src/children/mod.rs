//! Children: runs that a step of another run creates.
//!
//! Here is what is true of them whatever the store: who they are, how many there may be, what the end of one means
//! to its group, and what their results are to the step that waits for them.

mod group;
mod join;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::payload::{Payload, PayloadError, to_value};
use crate::{
    Code, Failure, Origin, Parent, Phase, Run, RunId, StepKey, StoreError, Timestamp, VersionId,
    WorkflowKey,
};

pub use group::{ChildGroup, ChildMove, Revival, takes_results};
pub use join::{ChildResult, Join, Joined};

/// Children that one call may create.
pub const CHILDREN_MAX: usize = 65_536;
/// Bytes of JSON of the inputs of all children of one call.
pub const CHILDREN_MAX_BYTES: usize = 64 * 1024 * 1024;
/// How deep children may have children; a run that an event started is at 0.
pub const CHILD_DEPTH_MAX: u32 = 16;
/// Characters of a child's key.
const KEY_MAX_CHARS: usize = 500;

/// A run to create. Its identity is that of the step that creates it and its key, so creating it again creates
/// nothing.
///
/// ```
/// use surefoot_kernel_core::{Child, Children};
/// let children = ["a", "b"].map(|item| Child::new("restock", serde_json::json!({ "item": item })).key(item));
/// assert_eq!(Children::check(children).unwrap().len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a child does nothing until it is created"]
pub struct Child {
    workflow: WorkflowKey,
    inputs: Result<Value, PayloadError>,
    key: Option<String>,
}

impl Child {
    /// A run of the live version of a workflow in the parent's scope.
    ///
    /// Inputs that cannot be written as JSON are reported when it is created.
    pub fn new(workflow: impl Into<WorkflowKey>, inputs: impl Serialize) -> Self {
        Self { workflow: workflow.into(), inputs: to_value(&inputs), key: None }
    }

    /// What tells it from the other children of its step, 1 to 500 characters. Without one, its place in the call
    /// does: a step that creates children in more than one call needs keys.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// A child that may be stored as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedChild {
    /// What tells it from its siblings.
    pub key: String,
    /// Which workflow.
    pub workflow: WorkflowKey,
    /// Its inputs, as JSON text.
    pub inputs: String,
}

/// The children of one call: number, sizes, keys and payload rules hold. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Children(Arc<[CheckedChild]>);

impl Children {
    /// Checks everything that can be checked without a store.
    ///
    /// # Errors
    /// [`ChildrenError`]: too many, too large, not exactly storable, or keys that do not tell them apart.
    pub fn check(children: impl IntoIterator<Item = Child>) -> Result<Self, ChildrenError> {
        let mut checked: Vec<CheckedChild> = Vec::new();
        let mut bytes = 0_usize;
        for (index, child) in children.into_iter().enumerate() {
            if index >= CHILDREN_MAX {
                return Err(ChildrenError::TooMany { limit: CHILDREN_MAX });
            }
            let child = child.check(index)?;
            bytes = bytes.saturating_add(child.inputs.len());
            if bytes > CHILDREN_MAX_BYTES {
                return Err(ChildrenError::TooLarge { limit: CHILDREN_MAX_BYTES });
            }
            checked.push(child);
        }
        let mut keys = BTreeSet::new();
        if let Some(twice) = checked.iter().find(|child| !keys.insert(child.key.as_str())) {
            return Err(ChildrenError::SameKey { key: twice.key.clone() });
        }
        Ok(Self(checked.into()))
    }

    /// In order.
    pub fn iter(&self) -> std::slice::Iter<'_, CheckedChild> {
        self.0.iter()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same children with their inputs in another form, such as an encoded one. What was checked is not checked
    /// again.
    ///
    /// # Errors
    /// The first error of `form`.
    pub fn with_inputs<E>(
        &self,
        mut form: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Self, E> {
        let formed = self.iter().map(|child| {
            let inputs = form(&child.inputs)?;
            Ok(CheckedChild { inputs, ..child.clone() })
        });
        formed.collect::<Result<Arc<[CheckedChild]>, E>>().map(Self)
    }

    /// Bytes of JSON of all inputs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|child| child.inputs.len()).sum()
    }
}

impl Child {
    fn check(self, index: usize) -> Result<CheckedChild, ChildrenError> {
        let refused = |PayloadError { pointer, rule }| ChildrenError::Payload {
            index,
            pointer,
            why: rule.to_string(),
        };
        let inputs = self.inputs.and_then(|value| Payload::from_value(&value)).map_err(refused)?;
        let key = self.key.unwrap_or_else(|| index.to_string());
        let got = key.chars().count();
        if !(1..=KEY_MAX_CHARS).contains(&got) {
            return Err(ChildrenError::KeyLength { index, max: KEY_MAX_CHARS, got });
        }
        Ok(CheckedChild { key, workflow: self.workflow, inputs: inputs.into_text() })
    }
}

/// Why children were not created. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildrenError {
    /// More than [`CHILDREN_MAX`].
    #[error("one call creates at most {limit} children")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// More than [`CHILDREN_MAX_BYTES`].
    #[error("the inputs of the children of one call have at most {limit} bytes of JSON together")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A child of a child of a child and so on.
    #[error(
        "run {parent} is {limit} levels below the run that an event started: it may have no children"
    )]
    TooDeep {
        /// Who wanted children.
        parent: RunId,
        /// [`CHILD_DEPTH_MAX`].
        limit: u32,
    },
    /// Inputs cannot be kept exactly.
    #[error("the inputs of child {index} cannot be kept exactly at `{pointer}`: {why}")]
    Payload {
        /// Which child, from 0.
        index: usize,
        /// JSON pointer.
        pointer: String,
        /// The rule.
        why: String,
    },
    /// A key has the wrong length.
    #[error("the key of child {index} must have 1 to {max} characters, it has {got}")]
    KeyLength {
        /// Which child, from 0.
        index: usize,
        /// At most.
        max: usize,
        /// What it has.
        got: usize,
    },
    /// Two children of one call have the same key.
    #[error("two children of one call have the key `{key}`")]
    SameKey {
        /// The key.
        key: String,
    },
    /// No such workflow in the parent's scope, or none of its versions is live.
    #[error(
        "workflow `{workflow}` has no live version in the scope of its parent: publish or activate it"
    )]
    NoWorkflow {
        /// Its key.
        workflow: WorkflowKey,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ChildrenError {
    /// What it is to the step that wanted the children; `None` where the store could not do it, which says nothing
    /// about the step.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let code = match self {
            Self::TooMany { .. } | Self::TooLarge { .. } | Self::TooDeep { .. } => {
                Code::LIMIT_EXCEEDED
            }
            Self::Payload { .. } | Self::KeyLength { .. } | Self::SameKey { .. } => {
                Code::INPUT_INVALID
            }
            Self::NoWorkflow { .. } => Code::WORKFLOW_UNAVAILABLE,
            Self::Store(_) => return None,
        };
        Some(Failure::new(code, self.to_string()))
    }
}

/// What of a child the store finds out: the version that it is pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildVersion {
    /// The live version of its workflow.
    pub version: VersionId,
    /// Hash of its footprint.
    pub footprint: String,
}

impl RunId {
    /// The run that a step creates under a key: the same for every attempt, so a replay creates nothing twice. Keeps
    /// the parent's leading bytes, so that ids stay roughly in order of creation.
    #[must_use]
    pub fn of_child(parent: &Run, step: &StepKey, key: &str) -> Self {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        hash.update(b"surefoot/child/1\0");
        hash.update(parent.origin.root.to_bytes());
        hash.update(parent.id.to_bytes());
        hash.update(step.as_str().as_bytes());
        hash.update(b"\0");
        hash.update(key.as_bytes());
        let digest = hash.finalize();
        let mut bytes = parent.id.to_bytes();
        for (byte, hashed) in bytes.iter_mut().zip(digest).skip(6) {
            *byte = hashed;
        }
        Self::from_bytes(bytes)
    }
}

impl Run {
    /// A child that nobody has claimed yet, under the id of [`RunId::of_child`]: same app, scope, mode and root; `now()`
    /// is the parent's.
    #[must_use]
    pub fn child(
        parent: &Self,
        (id, step, index): (RunId, &StepKey, u32),
        child: &CheckedChild,
        version: &ChildVersion,
        now: Timestamp,
    ) -> Self {
        let of = &parent.origin;
        let origin = Origin {
            app: of.app.clone(),
            scope: of.scope.clone(),
            workflow: child.workflow.clone(),
            version: version.version,
            footprint: version.footprint.clone(),
            mode: of.mode,
            event: None,
            trigger: None,
            occurred_at: of.occurred_at,
            root: of.root,
            parent: Some(Parent {
                run: parent.id,
                step: step.clone(),
                index,
                depth: of.depth().saturating_add(1),
            }),
            created_at: now,
        };
        Self::new(id, origin)
    }

    /// Whether it waits until a sibling ends: it is queued, and no claim fits it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Queued { ready_at: Timestamp::MAX, .. })
    }

    /// The same queued run, not claimable before the core says so.
    #[must_use]
    pub fn held(mut self) -> Self {
        if let Phase::Queued { ready_at, .. } = &mut self.phase {
            *ready_at = Timestamp::MAX;
        }
        self
    }

    /// Whether it may have children: it is not too deep in its tree.
    ///
    /// # Errors
    /// [`ChildrenError::TooDeep`].
    pub fn may_have_children(&self) -> Result<(), ChildrenError> {
        if self.origin.depth() < CHILD_DEPTH_MAX {
            return Ok(());
        }
        Err(ChildrenError::TooDeep { parent: self.id, limit: CHILD_DEPTH_MAX })
    }
}

#[cfg(test)]
mod tests;

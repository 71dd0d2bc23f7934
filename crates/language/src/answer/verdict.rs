//! Answers that are no outputs: of `authorize`, `cost`, `plan` and `reconcile`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use surefoot_kernel_core::Code;

/// What `reconcile` found out. `Err` means that asking failed: it is asked again, with backoff.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciled<T> {
    /// It happened, and this is the output.
    Succeeded(T),
    /// The provider refused this key, or will from now on.
    Failed {
        /// The action's code.
        code: Code,
        /// For people.
        message: String,
    },
    /// The provider does not know the key yet. Proves nothing until the action's settle time has passed.
    NotFound,
    /// Nobody can tell: an operator is asked.
    Unknown {
        /// For the operator.
        why: String,
    },
}

impl<T> Reconciled<T> {
    /// [`Reconciled::Failed`].
    pub fn failed(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::Failed { code: code.into(), message: message.into() }
    }

    /// [`Reconciled::Unknown`].
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    /// The same with another output.
    ///
    /// # Errors
    /// The error of `convert`.
    pub fn try_map<U, E>(
        self,
        convert: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Reconciled<U>, E> {
        Ok(match self {
            Self::Succeeded(output) => Reconciled::Succeeded(convert(output)?),
            Self::Failed { code, message } => Reconciled::Failed { code, message },
            Self::NotFound => Reconciled::NotFound,
            Self::Unknown { why } => Reconciled::Unknown { why },
        })
    }
}

/// The answer of `authorize`. `Err` beside it is not a refusal: it is a failure to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an access that nobody looks at protects nothing"]
pub enum Access {
    /// Go on.
    Allowed,
    /// `FORBIDDEN`: no budget is charged, nothing happens.
    Denied {
        /// For people.
        why: String,
    },
}

impl Access {
    /// [`Access::Denied`].
    pub fn denied(why: impl Into<String>) -> Self {
        Self::Denied { why: why.into() }
    }

    /// Allowed if the condition holds.
    ///
    /// ```
    /// # use surefoot_language::Access;
    /// let stock = 3;
    /// assert_eq!(Access::allowed_if(stock > 0, "nothing left"), Access::Allowed);
    /// ```
    pub fn allowed_if(condition: bool, otherwise: impl Into<String>) -> Self {
        if condition { Self::Allowed } else { Self::denied(otherwise) }
    }
}

/// The preview of an effect, for dry runs only.
///
/// ```
/// # use surefoot_language::Planned;
/// let planned = Planned::new("Book 3 boxes of bolts").output(3).issue("the shelf is nearly full");
/// assert_eq!((planned.planned_output(), planned.issues().len()), (Some(&3), 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a preview does nothing by itself: return it from `plan`"]
pub struct Planned<T> {
    summary: String,
    output: Option<T>,
    issues: Vec<String>,
}

impl<T> Planned<T> {
    /// One line that says what would happen.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), output: None, issues: Vec::new() }
    }

    /// What the output would be. Without it, what depends on the output is reported as not decidable.
    pub fn output(mut self, output: T) -> Self {
        self.output = Some(output);
        self
    }

    /// Something that would go wrong, or that a person should know.
    pub fn issue(mut self, issue: impl Into<String>) -> Self {
        self.issues.push(issue.into());
        self
    }

    /// What would happen.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The output, if it can be foretold.
    #[must_use]
    pub fn planned_output(&self) -> Option<&T> {
        self.output.as_ref()
    }

    /// What was noted, in order.
    #[must_use]
    pub fn issues(&self) -> &[String] {
        &self.issues
    }

    /// The same with another output.
    ///
    /// # Errors
    /// The error of `convert`.
    pub fn try_map<U, E>(self, convert: impl FnOnce(T) -> Result<U, E>) -> Result<Planned<U>, E> {
        let output = self.output.map(convert).transpose()?;
        Ok(Planned { summary: self.summary, output, issues: self.issues })
    }
}

/// What one call charges to the effect budget. Cheap and free of side effects.
///
/// ```
/// # use surefoot_language::Cost;
/// let cost = Cost::of("mails", 1).and("eur", 2.5).and("mails", 2);
/// assert_eq!(cost.amounts().collect::<Vec<_>>(), [("eur", 2.5), ("mails", 3.0)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "a cost does nothing by itself: return it from `cost`"]
pub struct Cost(BTreeMap<Cow<'static, str>, f64>);

impl Cost {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// This much of one dimension. A negative or non-finite amount is refused when it is charged.
    pub fn of(dimension: impl Into<Cow<'static, str>>, amount: impl Into<f64>) -> Self {
        Self::none().and(dimension, amount)
    }

    /// And this much of another one; of the same one it adds up.
    pub fn and(mut self, dimension: impl Into<Cow<'static, str>>, amount: impl Into<f64>) -> Self {
        *self.0.entry(dimension.into()).or_default() += amount.into();
        self
    }

    /// Every dimension with its amount, by name.
    pub fn amounts(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(dimension, amount)| (&**dimension, *amount))
    }

    /// Whether it charges no dimension at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

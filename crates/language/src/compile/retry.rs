//! `retry` beside an action: a policy of the step's own, within that of the action.

use surefoot_kernel_core::Micros;
use surefoot_kernel_core::plan::RetryPolicy;

use super::Compiler;
use super::fields::Fields;
use super::steps::Site;
use crate::diagnostic::Path;
use crate::manifest::ActionDecl;
use crate::source::Span;
use crate::yaml::Node;

impl Compiler<'_> {
    /// What is not written is as the action has it. `None` if something was reported, `Some(None)` if the step has no
    /// policy of its own.
    pub(super) fn retry(
        &mut self,
        site: &Site<'_, '_>,
        declared: Option<&ActionDecl>,
    ) -> Option<Option<RetryPolicy>> {
        let Some(entry) = site.fields.get("retry") else { return Some(None) };
        let path = site.path.key("retry");
        let fields = self.mapping(&entry.value, &path, "`retry`")?;
        self.refuse_unknown(&fields, &["attempts", "first", "factor", "max"], &path);
        let of_action = declared.map(|action| &action.retry);
        let default = of_action.cloned().unwrap_or_default();
        let attempts = match fields.get("attempts") {
            Some(entry) => self.attempts(&entry.value, of_action, &path.key("attempts")),
            None => Some(default.attempts),
        };
        let first = self.delay_of(&fields, "first", default.first, &path);
        let max = self.delay_of(&fields, "max", default.max, &path);
        let factor = match fields.get("factor") {
            Some(entry) => self.factor(&entry.value, &path.key("factor")),
            None => Some(default.factor),
        };
        let retry = RetryPolicy { attempts: attempts?, first: first?, factor: factor?, max: max? };
        self.check_delays(&retry, entry.value.span, &path)?;
        Some(Some(retry))
    }

    fn attempts(
        &mut self,
        node: &Node,
        of_action: Option<&RetryPolicy>,
        path: &Path<'_>,
    ) -> Option<u32> {
        let limit = of_action.map_or(100, |retry| retry.attempts);
        let number = node.as_scalar().and_then(|scalar| scalar.value.as_u64());
        let attempts = number.and_then(|number| u32::try_from(number).ok());
        if let Some(attempts) = attempts.filter(|attempts| (1..=limit).contains(attempts)) {
            return Some(attempts);
        }
        let found = match number {
            Some(number) if number > u64::from(limit) && of_action.is_some() => {
                let message = format!(
                    "the action is tried at most {limit} times; a step may ask for fewer, not for {number}"
                );
                self.report.error("RETRY_INVALID", node.span, path, message)
            }
            Some(_) | None => {
                let scalar = node.as_scalar().map(|scalar| &scalar.value);
                let what = scalar
                    .filter(|value| value.is_number())
                    .map_or_else(|| node.describe().to_owned(), ToString::to_string);
                let message = format!("`attempts` is from 1 to {limit}; this is {what}");
                self.report.error("RETRY_INVALID", node.span, path, message)
            }
        };
        found.help("`attempts` counts the first try too: `attempts: 1` is never tried again");
        None
    }

    fn delay_of(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        default: Micros,
        path: &Path<'_>,
    ) -> Option<Micros> {
        match fields.get(key) {
            Some(entry) => self.duration(&entry.value, &path.key(key), true),
            None => Some(default),
        }
    }

    fn factor(&mut self, node: &Node, path: &Path<'_>) -> Option<f64> {
        let factor = node.as_scalar().and_then(|scalar| scalar.value.as_f64());
        let factor = factor.filter(|factor| factor.is_finite() && *factor >= 1.0);
        if factor.is_none() {
            let message =
                "`factor` is a number of at least 1: each delay is so many times the last";
            self.report.error("RETRY_INVALID", node.span, path, message);
        }
        factor
    }

    fn check_delays(&mut self, retry: &RetryPolicy, span: Span, path: &Path<'_>) -> Option<()> {
        if retry.first <= retry.max {
            return Some(());
        }
        let message = "`first` is longer than `max`, and no delay is";
        self.report
            .error("RETRY_INVALID", span, path, message)
            .help("give both, the first delay not longer than the longest");
        None
    }
}

//! Steps that call an action of the module.

use std::collections::BTreeMap;

use serde_json::Value;
use surefoot_kernel_core::expr::{Expr, Template};
use surefoot_kernel_core::plan::{CAUGHT_ERROR, Step, StepKind};

use super::steps::{BUILT_IN, Outcome, Site, ends_list};
use super::template::Slots;
use super::{Compiler, ConfigRemark};
use crate::check::schema::{Probe, problems};
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::manifest::{ActionDecl, is_name};
use crate::yaml::Entry;

impl<'a> Compiler<'a> {
    pub(super) fn action_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        let declared = self.declared_action(site);
        if declared.is_some() || self.is_open {
            self.refuse_options(site, &["saveAs", "label", "timeout", "retry", "catch"]);
        } else {
            // Nobody knows what was meant; a misspelt `forEach` brings parts of its own.
            self.refuse_options(
                site,
                &[
                    "saveAs", "label", "timeout", "retry", "catch", "then", "else", "cases",
                    "default", "as", "do",
                ],
            );
        }
        let name = &site.head.key;
        let path = site.path.key(name);
        let timeout = site.fields.get("timeout").map(|entry| {
            let path = site.path.key("timeout");
            self.duration(&entry.value, &path, false)
        });
        let timeout = timeout.map_or(Some(None), |timeout| timeout.map(Some));
        let config = self.action_config(site, declared, &path);
        let retry = self.retry(site, declared);
        let catch = self.catch_branch(site);
        let output = declared.map_or(Shape::ANY, |action| Shape::schema(&action.output));
        let output = match &catch {
            // Whoever reads the output afterwards may read that of the branch.
            Some(Some(steps)) if !ends_list(steps) => Shape::ANY,
            Some(_) | None => output,
        };
        // What it saves stays known even if its config is wrong.
        let outcome = |kind| Some(Outcome { kind, output });
        let (Some(config), Some(timeout), Some(retry), Some(catch)) =
            (config, timeout, retry, catch)
        else {
            return outcome(None);
        };
        let action = name.clone();
        outcome(Some(StepKind::Action { action, config, timeout, retry, catch }))
    }

    /// The steps that run when the action failed for good. `None` if something was reported, `Some(None)` if there
    /// are none.
    fn catch_branch(&mut self, site: &Site<'_, '_>) -> Option<Option<Vec<Step>>> {
        let Some(entry) = site.fields.get("catch") else { return Some(None) };
        let path = site.path.key("catch");
        // A `catch` inside a `catch` hides the error around it; no other name is ever hidden.
        let outer = site.nesting.in_catch().then(|| self.scope.set_aside(CAUGHT_ERROR)).flatten();
        let mark = self.scope.enter();
        if self.may_bind_error(entry, &path) {
            let text = || Shape::Kinds(Kinds::TEXT);
            let members = [("code".to_owned(), text()), ("message".to_owned(), text())];
            let error = Shape::Members(BTreeMap::from(members));
            self.scope.bind(CAUGHT_ERROR, error, entry.key_span);
        }
        let steps = self.catch_body(entry, &path, site.nesting);
        self.scope.leave(mark);
        if let Some(outer) = outer {
            self.scope.put_back(CAUGHT_ERROR, outer);
        }
        steps.map(Some)
    }

    fn may_bind_error(&mut self, entry: &Entry, path: &Path<'_>) -> bool {
        let bound = self.scope.bound_at(CAUGHT_ERROR);
        if bound.is_none() && !self.input_shapes.contains_key(CAUGHT_ERROR) {
            return true;
        }
        let what =
            if bound.is_some() { "is visible here already" } else { "is the name of an input" };
        let message = format!("`catch` calls the failure `{CAUGHT_ERROR}`, which {what}");
        let found = self.report.error("NAME_TAKEN", entry.key_span, path, message);
        found.help("choose another name for the other one");
        if let Some(first) = bound {
            found.related(first, "bound here");
        }
        false
    }

    fn declared_action(&mut self, site: &Site<'_, '_>) -> Option<&'a ActionDecl> {
        let name = site.head.key.as_str();
        let path = site.path.key(name);
        let declared = self.manifest.and_then(|manifest| manifest.action(name));
        if declared.is_some() {
            self.uses.insert(format!("action/{name}"));
            return declared;
        }
        let known = self.manifest.into_iter().flat_map(|manifest| &manifest.actions);
        let known = known.map(|action| action.name.as_str()).chain(BUILT_IN.iter().copied());
        if self.is_open {
            if !is_name(name) {
                let message = format!("`{name}` is no name of an action");
                self.report.error("NAME_INVALID", site.head.key_span, &path, message);
                return None;
            }
            if self.manifest.is_some() {
                let help = self.report.did_you_mean(name, known);
                self.not_checked("action", site.head, &path, help);
            }
            return None;
        }
        let help = self.report.suggest(name, known);
        let message = format!("there is no action `{name}`");
        self.report.error("UNKNOWN_ACTION", site.head.key_span, &path, message).maybe_help(help);
        None
    }

    fn action_config(
        &mut self,
        site: &Site<'_, '_>,
        declared: Option<&'a ActionDecl>,
        path: &Path<'_>,
    ) -> Option<Template> {
        let node = &site.head.value;
        if !self.is_open && declared.is_none() && node.as_map().is_none() {
            return None;
        }
        self.mapping(node, path, &format!("the config of `{}`", site.head.key))?;
        let mut slots = Slots::new();
        let config = self.config(node, path, &mut slots);
        let before = self.report.count();
        if let Some(action) = declared {
            self.check_schema(action, site.head, &slots, path);
        }
        let config = config?.template;
        if let Some(action) = declared.filter(|_| self.report.count() == before) {
            self.check_missing(action, &config, site.head, path);
            self.judge_config(action, &config, (site.head, &slots), path);
        }
        Some(config)
    }

    /// Reports what the action itself has to say.
    fn judge_config(
        &mut self,
        action: &ActionDecl,
        config: &Template,
        (entry, slots): (&Entry, &Slots),
        path: &Path<'_>,
    ) {
        let Some(judge) = self.judge else { return };
        let probe = Probe::new(&entry.value, slots);
        for ConfigRemark { pointer, message, is_refused } in judge(action, config) {
            let unescaped = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
            let segments: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
            let at = probe.locate(segments.iter().map(String::as_str)).node.span;
            let span = if segments.is_empty() { entry.key_span } else { at };
            let found = if is_refused {
                self.report.error("CONFIG_VALUE", span, path, message)
            } else {
                self.report.warning("CONFIG_DOUBTFUL", span, path, message)
            };
            for segment in segments {
                found.path = format!("{}.{segment}", found.path);
            }
        }
    }

    /// Warns where an action insists on a value, and gets an input that may be missing.
    fn check_missing(
        &mut self,
        action: &ActionDecl,
        config: &Template,
        entry: &Entry,
        path: &Path<'_>,
    ) {
        let Template::Object(members) = config else { return };
        let required = action.input.get("required").and_then(Value::as_array);
        let is_required = |key: &str| required.is_some_and(|all| all.iter().any(|it| it == key));
        for (key, value) in members.iter().filter(|(key, _)| is_required(key)) {
            let Some(name) = input_in(value) else { continue };
            let input = self.inputs.get(name);
            let may_miss = input.is_some_and(|it| !it.required && it.default.is_none());
            if !may_miss || self.looked_for.contains(name) {
                continue;
            }
            let entries = entry.value.as_map().unwrap_or_default();
            let span = entries.iter().find(|it| it.key == *key).map(|it| it.value.span);
            let message = format!("the input `{name}` may be missing, and then the step fails");
            let span = span.unwrap_or(entry.key_span);
            self.report.warning("MAY_BE_MISSING", span, &path.key(key), message).help(format!(
                "write `inputs.{name} ?? ...`, ask `has(inputs.{name})` before, or make it required"
            ));
        }
    }

    /// Reports what is wrong with a config whatever its expressions yield.
    fn check_schema(&mut self, action: &ActionDecl, entry: &Entry, slots: &Slots, path: &Path<'_>) {
        let validator = match self.validators.get(&action.name, &action.input) {
            Ok(Some(validator)) => validator,
            Ok(None) => return,
            Err(error) => {
                let message = format!("the module's schema of `{}` is wrong: {error}", action.name);
                self.report.error("MANIFEST_SCHEMA", entry.key_span, path, message);
                return;
            }
        };
        let probe = Probe::new(&entry.value, slots);
        for problem in problems(&validator, &action.input, &probe, entry.key_span) {
            let suffix = problem.path.join(".");
            let found = self.report.error(problem.code, problem.span, path, problem.message);
            if !suffix.is_empty() {
                found.path = format!("{}.{suffix}", found.path);
            }
            found.maybe_help(problem.help);
        }
    }
}

/// The input that a slot hands on as it is.
fn input_in(value: &Template) -> Option<&str> {
    match value {
        Template::Expr(Expr::Member(of, name)) if **of == Expr::Name("inputs".to_owned()) => {
            Some(name)
        }
        Template::Expr(_)
        | Template::Literal(_)
        | Template::Text(_)
        | Template::List(_)
        | Template::Object(_) => None,
    }
}

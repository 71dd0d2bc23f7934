//! Steps that call an action of the module.

use surefoot_kernel_core::plan::StepKind;

use super::Compiler;
use super::steps::{BUILT_IN, Outcome, Site};
use super::template::Slots;
use crate::check::schema::{Probe, problems};
use crate::check::shape::Shape;
use crate::diagnostic::Path;
use crate::manifest::{ActionDecl, is_name};
use crate::yaml::Entry;

impl<'a> Compiler<'a> {
    pub(super) fn action_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        let declared = self.declared_action(site);
        if declared.is_some() || self.manifest.is_none() {
            self.refuse_options(site, &["saveAs", "label", "timeout"]);
        } else {
            // Nobody knows what was meant; a misspelt `forEach` brings parts of its own.
            self.refuse_options(
                site,
                &["saveAs", "label", "timeout", "then", "else", "cases", "default", "as", "do"],
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
        let output = declared.map_or(Shape::ANY, |action| Shape::schema(&action.output));
        let kind = config.zip(timeout).map(|(config, timeout)| StepKind::Action {
            action: name.clone(),
            config,
            timeout,
        });
        // What it saves stays known even if its config is wrong.
        Some(Outcome { kind, output })
    }

    fn declared_action(&mut self, site: &Site<'_, '_>) -> Option<&'a ActionDecl> {
        let name = site.head.key.as_str();
        let path = site.path.key(name);
        let Some(manifest) = self.manifest else {
            if !is_name(name) {
                let message = format!("`{name}` is no name of an action");
                self.report.error("NAME_INVALID", site.head.key_span, &path, message);
            }
            return None;
        };
        let declared = manifest.action(name);
        if declared.is_some() {
            self.uses.insert(format!("action/{name}"));
            return declared;
        }
        let built_in = BUILT_IN.iter().copied();
        let known = manifest.actions.iter().map(|action| action.name.as_str()).chain(built_in);
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
    ) -> Option<surefoot_kernel_core::expr::Template> {
        let node = &site.head.value;
        if self.manifest.is_some() && declared.is_none() && node.as_map().is_none() {
            return None;
        }
        self.mapping(node, path, &format!("the config of `{}`", site.head.key))?;
        let mut slots = Slots::new();
        let config = self.config(node, path, &mut slots);
        if let Some(action) = declared {
            self.check_schema(action, site.head, &slots, path);
        }
        Some(config?.template)
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

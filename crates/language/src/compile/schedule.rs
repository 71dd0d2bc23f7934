//! The built-in trigger `schedule`: names, and when each is due.

use std::collections::BTreeMap;

use surefoot_kernel_core::plan::{SchedulePlan, TriggerPlan};
use surefoot_kernel_core::{Timestamp, schedule_event};
use surefoot_sync_core::{BadSchedule, Schedule};

use super::Compiler;
use super::fields::Fields;
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::{Path, split_advice};
use crate::manifest::{RESERVED_TRIGGER_KINDS, is_name};
use crate::yaml::Entry;

/// Characters of a schedule's name: it is part of the event type.
const NAME_MAX_CHARS: usize = 100;

/// When the schedule of a plan is due next, behind an instant; `None` if never, or if this build cannot read it.
#[must_use]
pub fn next_due(schedule: &SchedulePlan, after: Timestamp) -> Option<Timestamp> {
    Schedule::of_plan(schedule).ok()?.next_after(after)
}

impl Compiler<'_> {
    pub(super) fn compile_schedules(&mut self, section: &Entry, path: &Path<'_>) {
        let Some(fields) = self.mapping(&section.value, path, "`schedule`") else { return };
        if fields.entries().is_empty() {
            let message = "`schedule` is empty";
            self.report
                .error("TRIGGERS_EMPTY", section.key_span, path, message)
                .help("give each schedule a name: `nightly: { cron: \"30 2 * * *\" }`");
        }
        for entry in fields.entries() {
            self.compile_schedule(entry, &path.key(&entry.key));
        }
    }

    fn compile_schedule(&mut self, entry: &Entry, path: &Path<'_>) {
        let is_named = self.check_schedule_name(entry, path);
        let Some(fields) = self.mapping(&entry.value, path, "a schedule") else { return };
        self.refuse_unknown(&fields, &["cron", "timezone", "with"], path);
        let schedule = self.due(entry, &fields, path);
        let text = || Shape::Kinds(Kinds::TEXT);
        let members = [("slot".to_owned(), text()), ("occurredAt".to_owned(), text())];
        let with =
            self.compile_bindings(entry, &fields, Shape::Members(BTreeMap::from(members)), path);
        if let Some(schedule) = schedule.filter(|_| is_named) {
            let event = schedule_event(&entry.key);
            let trigger = TriggerPlan { event, with, schedule: Some(schedule) };
            self.triggers.insert(entry.key.clone(), trigger);
        }
    }

    /// A schedule's name is the key of its activation, as the kind of any other trigger is.
    fn check_schedule_name(&mut self, entry: &Entry, path: &Path<'_>) -> bool {
        let name = entry.key.as_str();
        let is_kind = self.manifest.is_some_and(|manifest| manifest.trigger(name).is_some());
        let (code, message) = if !is_name(name) || name.chars().count() > NAME_MAX_CHARS {
            let text = format!(
                "`{name}` is no name of a schedule: it has at most {NAME_MAX_CHARS} characters"
            );
            ("NAME_INVALID", text)
        } else if RESERVED_TRIGGER_KINDS.contains(&name) {
            ("NAME_RESERVED", format!("`{name}` is reserved: it has a meaning of its own"))
        } else if is_kind || self.triggers.contains_key(name) {
            ("NAME_TAKEN", format!("`{name}` is the name of another trigger"))
        } else {
            return true;
        };
        self.report.error(code, entry.key_span, path, message).help(
            "a name such as `nightly` has letters, digits and `_`, and does not start with a digit",
        );
        false
    }

    fn due(&mut self, entry: &Entry, fields: &Fields<'_>, path: &Path<'_>) -> Option<SchedulePlan> {
        let cron_node = self.required(fields, "cron", entry.key_span, path)?;
        let cron = self.text(cron_node, &path.key("cron"), "`cron`");
        let zone_node = fields.get("timezone").map(|zone| &zone.value);
        let zone = match zone_node {
            Some(node) => Some(self.text(node, &path.key("timezone"), "`timezone`")?),
            None => None,
        };
        let error = match Schedule::new(cron?, zone) {
            Ok(schedule) => return Some(schedule.to_plan()),
            Err(error) => error,
        };
        let shown = error.to_string();
        let (message, help) = split_advice(&shown);
        let (code, span, path) = match error {
            BadSchedule::Cron(_) => ("CRON_INVALID", cron_node.span, path.key("cron")),
            BadSchedule::Zone(_) => {
                let span = zone_node.map_or(entry.key_span, |node| node.span);
                ("UNKNOWN_TIMEZONE", span, path.key("timezone"))
            }
        };
        self.report.error(code, span, &path, message).maybe_help(help.map(str::to_owned));
        None
    }
}

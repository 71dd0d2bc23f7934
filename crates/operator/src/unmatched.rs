//! Why an event started nothing: which of the mistakes it was, and what to do.

use surefoot_kernel_core::{App, START_EVENT, Scope, WorkflowKey, WorkflowRow, shell_word};

use crate::operator::listed;
use crate::{Operator, OperatorError};

/// How many names a sentence repeats.
const NAMED: usize = 10;

/// An event that nobody listened to.
pub(crate) struct Unheard<'a> {
    pub(crate) app: &'a App,
    pub(crate) scope: &'a Scope,
    pub(crate) kind: &'a str,
    pub(crate) target: Option<&'a WorkflowKey>,
    pub(crate) has_key: bool,
}

/// What is wrong, and what to type where one command mends it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) why: String,
    pub(crate) command: Option<String>,
}

impl Advice {
    fn of(why: impl Into<String>) -> Self {
        Self { why: why.into(), command: None }
    }
}

impl Operator {
    /// A sentence on the mistake, one on the way out, and what to type.
    pub(crate) async fn why_unheard(&self, event: &Unheard<'_>) -> Result<Advice, OperatorError> {
        let here = self.store.workflow_list(event.app, Some(event.scope)).await?;
        let Advice { why, command } = if here.is_empty() {
            Advice::of(nothing_here(event, &self.scopes_of(event.app).await?))
        } else {
            why(event, &here)
        };
        let again = if event.has_key { " under another key" } else { "" };
        let why = format!(
            "{why}. The event is recorded and starts nothing later: once that is mended, emit it again{again}"
        );
        Ok(Advice { why, command })
    }
}

fn nothing_here(event: &Unheard<'_>, scopes: &[Scope]) -> String {
    let Unheard { app, scope, .. } = event;
    let known: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
    if known.is_empty() {
        return format!("nothing is published for app `{app}`");
    }
    let known = named(&known);
    format!(
        "nothing is published in scope `{scope}` of app `{app}`; there are workflows in {known}"
    )
}

/// Looks at the workflows of the scope in the order in which somebody would ask.
fn why(event: &Unheard<'_>, here: &[WorkflowRow]) -> Advice {
    let Unheard { scope, kind, target, .. } = event;
    if *kind == START_EVENT && target.is_none() {
        return Advice::of(format!(
            "`{START_EVENT}` starts one workflow: name it with `--workflow`"
        ));
    }
    let meant = |row: &&WorkflowRow| target.is_none_or(|target| row.workflow == *target);
    let rows: Vec<&WorkflowRow> = here.iter().filter(meant).collect();
    if let (Some(target), true) = (target, rows.is_empty()) {
        let known: Vec<&str> = here.iter().map(|row| row.workflow.as_str()).collect();
        let known = named(&known);
        return Advice::of(format!("scope `{scope}` has no workflow `{target}`; it has {known}"));
    }
    let listens = rows.iter().flat_map(|row| {
        let of_kind = row.activations.iter().filter(|(_, event, _)| event == kind);
        of_kind.map(move |(key, _, is_enabled)| (*row, key, *is_enabled))
    });
    let listens: Vec<_> = listens.collect();
    if let Some((row, key, _)) = listens.iter().find(|(row, _, on)| row.active.is_some() && !on) {
        let workflow = &row.workflow;
        let why = format!(
            "workflow `{workflow}` listens to it, and its activation `{key}` is switched off: switch it on"
        );
        let command = event.command(&["enable", workflow.as_str(), key.as_str()]);
        return Advice { why, command: Some(command) };
    }
    let drafted = rows.iter().find(|row| row.active.is_none());
    if let Some(row) = drafted.filter(|_| target.is_some()) {
        let (workflow, latest) = (&row.workflow, row.latest);
        let why =
            format!("no version of workflow `{workflow}` is live: make version {latest} live");
        let command = event.command(&["activate", workflow.as_str(), &latest.to_string()]);
        return Advice { why, command: Some(command) };
    }
    if !listens.is_empty() {
        return Advice::of("nobody listened when it was recorded; a workflow listens now");
    }
    Advice::of(deaf(event, &rows))
}

/// Nobody of those who were meant listens to that sort of event.
fn deaf(event: &Unheard<'_>, rows: &[&WorkflowRow]) -> String {
    let Unheard { scope, kind, target, .. } = event;
    let heard = rows.iter().flat_map(|row| &row.activations).map(|(_, event, _)| event.as_str());
    let mut heard: Vec<&str> = heard.filter(|event| *event != START_EVENT).collect();
    heard.sort_unstable();
    heard.dedup();
    let who = target.map_or_else(
        || format!("no workflow in scope `{scope}` listens"),
        |target| format!("workflow `{target}` does not listen"),
    );
    let others = if heard.is_empty() {
        "nor to any other".to_owned()
    } else {
        format!("but to {}", named(&heard))
    };
    format!("{who} to events of type `{kind}`, {others}")
}

impl Unheard<'_> {
    /// What to type, as a shell takes it whatever the names are.
    fn command(&self, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        let (app, scope) = (shell_word(self.app.as_str()), shell_word(self.scope.as_str()));
        let words = words.join(" ");
        format!("surefoot {words} --app {app} --scope {scope} --reason '<why>'")
    }
}

fn named(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().copied().take(NAMED).collect();
    let more = names.len().saturating_sub(shown.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", listed(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workflow: &str, active: Option<u64>, activations: &[(&str, &str, bool)]) -> WorkflowRow {
        let activations = activations
            .iter()
            .map(|(key, event, on)| ((*key).to_owned(), (*event).to_owned(), *on));
        WorkflowRow {
            scope: Scope::from("berlin"),
            workflow: WorkflowKey::from(workflow),
            active,
            latest: 3,
            activations: activations.collect(),
        }
    }

    #[track_caller]
    fn check(kind: &str, target: Option<&str>, says: &str) {
        let rows = [
            row("reorder", Some(1), &[("start", START_EVENT, true), ("low", "stock.low", true)]),
            row("report", Some(2), &[("start", START_EVENT, true), ("late", "stock.late", false)]),
            row("draft", None, &[]),
            row("empty", Some(1), &[]),
        ];
        let (app, scope) = (App::from("shop"), Scope::from("berlin"));
        let target = target.map(WorkflowKey::from);
        let target = target.as_ref();
        let event = Unheard { app: &app, scope: &scope, kind, target, has_key: false };
        assert_eq!(why(&event, &rows).why, says);
    }

    #[test]
    fn each_mistake_has_its_own_sentence() {
        check(START_EVENT, None, "`surefoot.start` starts one workflow: name it with `--workflow`");
        check(
            "stock.low",
            Some("reordr"),
            "scope `berlin` has no workflow `reordr`; it has reorder, report, draft, empty",
        );
        check(
            "stock.late",
            None,
            "workflow `report` listens to it, and its activation `late` is switched off: switch it on",
        );
        check(
            START_EVENT,
            Some("draft"),
            "no version of workflow `draft` is live: make version 3 live",
        );
        check(
            "stock.loww",
            None,
            "no workflow in scope `berlin` listens to events of type `stock.loww`, but to stock.late, stock.low",
        );
        check(
            "stock.late",
            Some("reorder"),
            "workflow `reorder` does not listen to events of type `stock.late`, but to stock.low",
        );
        check("stock.low", None, "nobody listened when it was recorded; a workflow listens now");
        check(
            "stock.low",
            Some("empty"),
            "workflow `empty` does not listen to events of type `stock.low`, nor to any other",
        );
    }

    /// Names are other people's words: pasted into a shell they stay words.
    #[test]
    fn a_command_can_be_pasted_whatever_the_names_are() {
        let workflow = "w;id";
        let rows = [row(workflow, Some(1), &[("stock $(id)", "stock.low", false)])];
        let (app, scope) = (App::from("dr x"), Scope::from("o'hara"));
        let kind = "stock.low";
        let event = Unheard { app: &app, scope: &scope, kind, target: None, has_key: false };
        assert_eq!(
            why(&event, &rows).command.unwrap(),
            r"surefoot enable 'w;id' 'stock $(id)' --app 'dr x' --scope 'o'\''hara' --reason '<why>'"
        );
        let target = WorkflowKey::from("dr 1");
        let (target, kind) = (Some(&target), START_EVENT);
        let event = Unheard { app: &app, scope: &scope, kind, target, has_key: false };
        assert_eq!(
            why(&event, &[row("dr 1", None, &[])]).command.unwrap(),
            r"surefoot activate 'dr 1' 3 --app 'dr x' --scope 'o'\''hara' --reason '<why>'"
        );
    }

    #[test]
    fn a_scope_without_workflows_is_told_with_those_that_have_some() {
        let (app, scope) = (App::from("shop"), Scope::from("berln"));
        let kind = "stock.low";
        let event = Unheard { app: &app, scope: &scope, kind, target: None, has_key: false };
        assert_eq!(nothing_here(&event, &[]), "nothing is published for app `shop`");
        let many: Vec<Scope> = (0..12).map(|nth| Scope::from(format!("s{nth}"))).collect();
        let said = nothing_here(&event, &many);
        assert!(said.starts_with("nothing is published in scope `berln` of app `shop`"), "{said}");
        assert!(said.ends_with("s9 and 2 more"), "{said}");
    }
}

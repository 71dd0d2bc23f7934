//! What differs between two versions.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::VersionId;
use surefoot_kernel_core::plan::{ActionUse, Change};
use surefoot_operator::{DiffView, OperatorError, VersionDetailView, WhichVersion};

use super::answer;
use super::frame::Frame;
use super::text::Text;
use super::visitor::Visitor;
use super::words::Badge;

#[derive(Template)]
#[template(path = "diff.html")]
struct Diff {
    frame: Frame,
    before: Side,
    after: Side,
    is_same: bool,
    steps: Vec<Step>,
    actions: Vec<(Text, Text, Text)>,
    budget: Vec<(Text, String, String)>,
    other: Vec<(Text, Badge)>,
}

struct Side {
    name: Text,
    revision: u64,
    href: String,
}

struct Step {
    change: Badge,
    does: Text,
    before: Option<Text>,
    after: Option<Text>,
    fields: Text,
}

pub(crate) async fn page(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["before", "after"]);
    let before = visitor.asked.parse::<VersionId>("before");
    let after = visitor.asked.parse::<VersionId>("after");
    let (Some(before), Some(after)) = (before, after) else {
        return answer::go_to(&visitor.to("/workflows").with("unknown", "page").done());
    };
    match diff(&visitor, before, after).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn diff(
    visitor: &Visitor,
    before: VersionId,
    after: VersionId,
) -> Result<Diff, OperatorError> {
    let operator = visitor.operator();
    let (earlier, later) = (WhichVersion::Id(before), WhichVersion::Id(after));
    let view = operator.diff(earlier.clone(), later.clone()).await?;
    let before = side(visitor, &operator.version(earlier).await?);
    let after = side(visitor, &operator.version(later).await?);
    Ok(Diff {
        frame: Frame::of(visitor, "What differs", "Workflows"),
        before,
        after,
        is_same: view.is_empty(),
        steps: steps(&view),
        actions: actions(&view),
        budget: budget(&view),
        other: view.diff.other.iter().map(|it| (Text::name(&it.what), change(it.change))).collect(),
    })
}

fn side(visitor: &Visitor, of: &VersionDetailView) -> Side {
    Side {
        name: Text::name(of.workflow.as_str()),
        revision: of.version.revision,
        href: visitor.to("/versions").segment(&of.version.id.to_string()).done(),
    }
}

fn steps(view: &DiffView) -> Vec<Step> {
    let of = |it: &surefoot_kernel_core::plan::StepDiff| Step {
        change: change(it.change),
        does: Text::name(&it.does),
        before: it.before.as_ref().map(Text::name),
        after: it.after.as_ref().map(Text::name),
        fields: Text::name(it.fields.join(", ")),
    };
    view.diff.steps.iter().map(of).collect()
}

fn actions(view: &DiffView) -> Vec<(Text, Text, Text)> {
    let used = |it: Option<&ActionUse>| match it {
        None => Text::name("not used"),
        Some(it) => {
            let steps = if it.steps == 1 { "step" } else { "steps" };
            Text::name(format!("{}, {} {steps}, {} attempts", it.class, it.steps, it.attempts))
        }
    };
    let of = |it: &surefoot_kernel_core::plan::ActionDiff| {
        (Text::name(&it.action), used(it.before.as_ref()), used(it.after.as_ref()))
    };
    view.diff.actions.iter().map(of).collect()
}

fn budget(view: &DiffView) -> Vec<(Text, String, String)> {
    let cap = |it: Option<surefoot_kernel_core::Amount>| {
        it.map_or_else(|| "no cap".to_owned(), |it| it.to_string())
    };
    let of = |it: &surefoot_operator::CapChange| {
        (Text::name(&it.dimension), cap(it.before), cap(it.after))
    };
    view.budget.iter().map(of).collect()
}

const fn change(change: Change) -> Badge {
    let (tone, word, hint) = match change {
        Change::Added => ("good", "added", "Only the later version has it."),
        Change::Removed => ("bad", "removed", "Only the earlier version has it."),
        Change::Changed => ("warn", "changed", "Both have it, not the same."),
        Change::Moved => ("busy", "moved", "Both have the same, elsewhere."),
    };
    Badge { tone, word, hint }
}

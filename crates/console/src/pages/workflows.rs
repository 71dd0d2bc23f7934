//! Workflows and their versions.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::{App, Scope, WorkflowKey};
use surefoot_operator::{ErrorKind, OperatorError, VersionView, WorkflowView};

use super::answer;
use super::frame::{Choice, Frame};
use super::text::Text;
use super::visitor::{Place, Visitor};
use super::words::When;

#[derive(Template)]
#[template(path = "workflows.html")]
struct Workflows {
    frame: Frame,
    apps: Vec<Choice>,
    scope: String,
    rows: Vec<Row>,
    empty: Text,
}

struct Row {
    href: String,
    workflow: Text,
    scope: Text,
    live: Option<u64>,
    latest: u64,
    /// Whether a newer version is stored than the live one.
    has_newer: bool,
    activations: Vec<Activation>,
    runs: String,
}

pub(crate) struct Activation {
    key: Text,
    raw_key: String,
    event: Text,
    enabled: bool,
}

pub(crate) async fn list(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope"]);
    match listed(&mut visitor).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn listed(visitor: &mut Visitor) -> Result<Workflows, OperatorError> {
    let place = Place::of(visitor).await?;
    let mut empty = Text::sentence(
        "Nothing is published yet: `surefoot publish FILE` makes the first version.",
    );
    let mut rows = Vec::new();
    if let Some(place) = &place {
        match visitor.operator().workflows(&place.app, place.scope.as_ref()).await {
            Ok(view) => {
                rows = view.workflows.iter().map(|it| row(visitor, &place.app, it)).collect();
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                empty = Text::sentence(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let frame = Frame::of(visitor, "Workflows", "Workflows");
    let apps = place.as_ref().map(Choice::apps).unwrap_or_default();
    let scope = visitor.asked.text("scope").unwrap_or_default().to_owned();
    Ok(Workflows { frame, apps, scope, rows, empty })
}

fn row(visitor: &Visitor, app: &App, it: &WorkflowView) -> Row {
    let place = |path: &str| {
        let page = visitor.to(path).with("app", app.as_str()).with("scope", it.scope.as_str());
        page.with("workflow", it.workflow.as_str()).done()
    };
    Row {
        href: place("/workflow"),
        runs: place("/runs"),
        workflow: Text::name(it.workflow.as_str()),
        scope: Text::name(it.scope.as_str()),
        live: it.active,
        latest: it.latest,
        has_newer: it.active != Some(it.latest),
        activations: activations(it),
    }
}

fn activations(it: &WorkflowView) -> Vec<Activation> {
    let of = |it: &surefoot_operator::ActivationView| Activation {
        key: Text::name(&it.key),
        raw_key: it.key.clone(),
        event: Text::name(&it.event),
        enabled: it.enabled,
    };
    it.activations.iter().map(of).collect()
}

#[derive(Template)]
#[template(path = "workflow.html")]
struct Workflow {
    frame: Frame,
    name: Text,
    place: Text,
    runs: String,
    /// Of every form.
    fields: Vec<(&'static str, String)>,
    live: Option<u64>,
    activations: Vec<Activation>,
    versions: Vec<Version>,
    may_act: bool,
    switch: String,
    activate: String,
    diff: String,
}

struct Version {
    href: String,
    id: String,
    revision: u64,
    is_live: bool,
    created: When,
    author: Text,
    hash: Text,
    module: Text,
    budget: Vec<Text>,
    is_before: bool,
    is_after: bool,
}

pub(crate) async fn one(mut visitor: Visitor) -> Response {
    visitor.asked.only(&["scope", "workflow"]);
    let app = visitor.asked.parse::<App>("app");
    let scope = visitor.asked.parse::<Scope>("scope");
    let workflow = visitor.asked.parse::<WorkflowKey>("workflow");
    let (Some(app), Some(scope), Some(workflow)) = (app, scope, workflow) else {
        // Half a name leads to the list.
        return answer::go_to(&visitor.to("/workflows").with("unknown", "page").done());
    };
    match versions(&visitor, &app, &scope, &workflow).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(error) => visitor.failed(&error),
    }
}

async fn versions(
    visitor: &Visitor,
    app: &App,
    scope: &Scope,
    workflow: &WorkflowKey,
) -> Result<Workflow, OperatorError> {
    let listed = visitor.operator().versions(app, scope, workflow).await?.versions;
    let workflows = visitor.operator().workflows(app, Some(scope)).await?.workflows;
    let known = workflows.iter().find(|it| it.workflow == *workflow);
    let live = listed.iter().find(|it| it.active).map(|it| it.revision);
    let of = |(index, it): (usize, &VersionView)| version(visitor, it, (index, listed.len()));
    let fields = [
        ("app", app.as_str().to_owned()),
        ("scope", scope.as_str().to_owned()),
        ("workflow", workflow.as_str().to_owned()),
    ];
    let runs = fields.iter().fold(visitor.to("/runs"), |to, (name, value)| to.with(name, value));
    Ok(Workflow {
        frame: Frame::of(visitor, workflow.as_str(), "Workflows"),
        name: Text::name(workflow.as_str()),
        place: Text::name(format!("{app}/{scope}")),
        runs: runs.done(),
        fields: fields.into(),
        live,
        activations: known.map(activations).unwrap_or_default(),
        versions: listed.iter().enumerate().map(of).collect(),
        may_act: visitor.may_act(),
        switch: visitor.to("/workflow/switch").done(),
        activate: visitor.to("/workflow/activate").done(),
        diff: visitor.to("/diff").done(),
    })
}

fn version(visitor: &Visitor, it: &VersionView, (index, count): (usize, usize)) -> Version {
    let id = it.id.to_string();
    Version {
        href: visitor.to("/versions").segment(&id).done(),
        id,
        revision: it.revision,
        is_live: it.active,
        created: When::of(it.created_at, visitor.now),
        author: Text::name(&it.author),
        hash: Text::name(it.plan_hash.chars().take(12).collect::<String>()),
        module: Text::name(&it.module),
        budget: it.budget.iter().map(|(name, cap)| Text::name(format!("{name} {cap}"))).collect(),
        // The newest is compared with the one before it, unless something else is chosen.
        is_before: index == usize::from(count > 1),
        is_after: index == 0,
    }
}

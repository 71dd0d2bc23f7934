//! One version: its plan as a picture, and its source.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use surefoot_kernel_core::VersionId;
use surefoot_operator::WhichVersion;

use super::answer;
use super::frame::Frame;
use super::svg::Graph;
use super::text::Text;
use super::visitor::{Named, Visitor};
use super::words::When;

#[derive(Template)]
#[template(path = "version.html")]
struct Version {
    frame: Frame,
    name: Text,
    place: Text,
    revision: u64,
    is_live: bool,
    workflow: String,
    created: When,
    author: Text,
    module: Text,
    hash: Text,
    unreadable: Option<Text>,
    graph: Graph,
    source: Vec<Text>,
}

pub(crate) async fn page(Named(version): Named<String>, mut visitor: Visitor) -> Response {
    visitor.asked.only(&[]);
    let Ok(id) = version.parse::<VersionId>() else {
        return answer::go_to(&visitor.to("/workflows").with("unknown", "page").done());
    };
    let seen = match visitor.operator().version(WhichVersion::Id(id)).await {
        Ok(seen) => seen,
        Err(error) => return visitor.failed(&error),
    };
    let workflow = visitor
        .to("/workflow")
        .with("app", seen.app.as_str())
        .with("scope", seen.scope.as_str())
        .with("workflow", seen.workflow.as_str());
    let it = &seen.version;
    let title = format!("{} version {}", seen.workflow, it.revision);
    let page = Version {
        frame: Frame::of(&visitor, &title, "Workflows"),
        name: Text::name(seen.workflow.as_str()),
        place: Text::name(format!("{}/{}", seen.app, seen.scope)),
        revision: it.revision,
        is_live: it.active,
        workflow: workflow.done(),
        created: When::of(it.created_at, visitor.now),
        author: Text::name(&it.author),
        module: Text::name(&it.module),
        hash: Text::name(&it.plan_hash),
        unreadable: seen.unreadable.as_ref().map(Text::sentence),
        graph: Graph::of(&seen.outline, None),
        source: seen.source.lines().map(Text::payload).collect(),
    };
    answer::page(StatusCode::OK, &page)
}

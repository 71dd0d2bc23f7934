//! Children as an operator sees them.

use serde_json::json;
use surefoot_kernel_core::{Command, Event, ReasonKind, RunFilter, RunId, RunState, Scope};
use surefoot_operator::{Cancel, EmitEvent, OperatorError, Retry};
use surefoot_testkit::Drive;

use crate::world::{SCOPE, World, app, failed};

/// So many children of one step.
fn each(count: usize) -> String {
    let items: Vec<String> = (0..count).map(|item| item.to_string()).collect();
    format!("steps:\n  - runWorkflows: {{ workflow: one, each: [{}] }}\n", items.join(", "))
}

/// A run that waits for so many children.
async fn parent_of(world: &World, count: usize) -> RunId {
    world.publish("one", ONE).await;
    world.publish("all", &each(count)).await;
    let emit =
        EmitEvent { app: app(), scope: Scope::from(SCOPE), event: Event::start("all", json!({})) };
    let run = world.operator.emit(&world.ids, emit).await.unwrap().runs[0];
    world.claim_all().await;
    let mut drive = Drive::load(&world.store, run).await.unwrap();
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(spawn)) = command else { unreachable!("{command:?}") };
    drive.spawn(&world.store, spawn).await.unwrap();
    run
}

async fn children_of(world: &World, parent: RunId) -> Vec<RunId> {
    let filter = RunFilter { parent: Some(parent), limit: 1_000, ..RunFilter::default() };
    world.operator.runs(filter).await.unwrap().runs.iter().map(|run| run.id).collect()
}

/// A run that failed because both of its children did.
async fn fallen(world: &World) -> (RunId, Vec<RunId>) {
    let parent = parent_of(world, 2).await;
    let children = children_of(world, parent).await;
    world.claim_all().await;
    for child in &children {
        let mut drive = Drive::load(&world.store, *child).await.unwrap();
        drive.to_call(&world.store).await.unwrap();
        world.answered(&mut drive, "steps.0", failed(false)).await;
    }
    world.claim_all().await;
    let mut drive = Drive::load(&world.store, parent).await.unwrap();
    drive.to_end(&world.store, |_| unreachable!()).await.unwrap();
    assert_eq!(world.row(parent).await.state(), RunState::Failed);
    (parent, children)
}

fn all_failed() -> RunFilter {
    RunFilter { app: Some(app()), limit: 10, ..RunFilter::default() }
}

/// After an outage one command mends the tree: the children first, then what failed because of them.
#[tokio::test]
async fn all_that_failed_are_retried_from_the_bottom_up() {
    let world = World::published().await;
    let (parent, children) = fallen(&world).await;
    let view = world.operator.retry_failed(all_failed(), None, "mended").await.unwrap();
    assert!(view.verdicts.iter().all(|it| it.refused.is_none()), "{:?}", view.verdicts);
    let mut order: Vec<RunId> = view.verdicts.iter().map(|it| it.run).collect();
    assert_eq!(order.pop(), Some(parent));
    order.sort_unstable();
    let mut expected = children.clone();
    expected.sort_unstable();
    assert_eq!(order, expected);
    for run in children.into_iter().chain([parent]) {
        assert_eq!(world.row(run).await.state(), RunState::Queued);
    }
}

#[tokio::test]
async fn a_parent_whose_child_is_not_mended_is_told_so() {
    let world = World::published().await;
    let (parent, children) = fallen(&world).await;
    let only = RunFilter { workflow: Some("all".into()), ..all_failed() };
    let view = world.operator.retry_failed(only, None, "mended").await.unwrap();
    let [verdict] = &view.verdicts[..] else { panic!("{:?}", view.verdicts) };
    let refused = verdict.refused.as_deref().unwrap();
    assert!(refused.contains("2 children are still failed"), "{refused}");
    assert_eq!((verdict.run, world.row(parent).await.state()), (parent, RunState::Failed));
    let explained = world.operator.explain(parent).await.unwrap();
    assert!(explained.why_not_moving.iter().any(|reason| reason.text == refused), "{explained}");
    assert!(explained.legal_actions.iter().all(|action| action.verb != "retry"));
    // One of them is on its way: the parent waits for it.
    let (run, seen) = (children[0], world.revision(children[0]).await);
    world.operator.retry(Retry { run, seen, why: "mended".to_owned() }).await.unwrap();
    let explained = world.operator.explain(parent).await.unwrap();
    assert!(explained.legal_actions.iter().any(|action| action.verb == "retry"), "{explained}");
}

#[tokio::test]
async fn what_health_counts_a_list_with_children_shows() {
    let world = World::published().await;
    let (parent, children) = fallen(&world).await;
    let health = world.operator.health(Some(app()), None).await.unwrap().apps.remove(0);
    assert_eq!(health.runs["failed"], 3);
    let list = async |children| {
        let filter = RunFilter { states: vec![RunState::Failed], children, ..all_failed() };
        world.operator.runs(filter).await.unwrap().runs
    };
    let listed = list(true).await;
    assert_eq!(listed.len(), 3);
    for run in listed {
        assert_eq!(run.parent, children.contains(&run.id).then_some(parent));
    }
    assert_eq!(list(false).await.len(), 1);
}

#[tokio::test]
async fn a_run_with_many_children_says_how_many_and_where_the_others_are() {
    let world = World::published().await;
    let run = parent_of(&world, 103).await;
    let shown = world.operator.show(run).await.unwrap();
    assert_eq!((shown.children.len(), shown.children_total), (100, 103));
    assert_eq!(shown.children_by_state, [("queued", 103)].into());
    let filter = RunFilter {
        parent: Some(run),
        cursor: shown.children_next,
        limit: 100,
        ..RunFilter::default()
    };
    let rest = world.operator.runs(filter).await.unwrap();
    assert_eq!((rest.runs.len(), rest.next), (3, None));
    assert!(rest.runs.iter().all(|rest| shown.children.iter().all(|child| child.id != rest.id)));
    let world = World::published().await;
    let run = parent_of(&world, 1).await;
    let shown = world.operator.show(run).await.unwrap();
    assert_eq!((shown.children_total, shown.children_next), (1, None));
}

/// Whoever gives a parent up is told of what is still going on below it.
#[tokio::test]
async fn a_canceled_parent_tells_of_children_that_have_not_ended() {
    let world = World::published().await;
    let run = parent_of(&world, 2).await;
    world.claim_all().await;
    let cancel = Cancel { run, seen: None, why: "enough".to_owned() };
    world.operator.cancel(cancel).await.unwrap();
    let explained = world.operator.explain(run).await.unwrap();
    assert_eq!(explained.state, RunState::Canceled);
    assert!(explained.headline.ends_with("2 of its 2 children have not ended."), "{explained}");
    assert_eq!(explained.children[0].open, 2);
}

/// Mails, three of them, two at once.
const ALL: &str = r#"
steps:
  - runWorkflows: { workflow: one, each: [1, 2, 3], parallel: 2 }
"#;
const ONE: &str = "steps:\n  - mail: {}\n";

#[tokio::test]
async fn a_tree_is_shown_explained_and_retried_only_while_its_results_are_open() {
    let world = World::published().await;
    world.publish("one", ONE).await;
    world.publish("all", ALL).await;
    let event = Event::start("all", json!({}));
    let emit = EmitEvent { app: app(), scope: Scope::from(SCOPE), event };
    let run = world.operator.emit(&world.ids, emit).await.unwrap().runs[0];
    world.claim_all().await;
    let mut drive = Drive::load(&world.store, run).await.unwrap();
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(spawn)) = command else { panic!("{command:?}") };
    drive.spawn(&world.store, spawn).await.unwrap();
    let shown = world.operator.show(run).await.unwrap();
    assert_eq!((shown.children.len(), shown.run.state), (3, RunState::Waiting));
    assert!(shown.children.iter().all(|child| child.parent == Some(run)));
    let filter = RunFilter { parent: Some(run), limit: 10, ..RunFilter::default() };
    assert_eq!(world.operator.runs(filter).await.unwrap().runs.len(), 3);
    let explained = world.operator.explain(run).await.unwrap();
    assert_eq!(explained.why_not_moving[0].kind, ReasonKind::Children);
    assert!(explained.headline.contains("3 of its 3 children (1 of them held back)"));
    assert!(explained.legal_actions.iter().all(|action| action.verb != "signal"));
    let mut held = None;
    for child in &shown.children {
        let told = world.operator.explain(child.id).await.unwrap();
        if told.why_not_moving[0].kind == ReasonKind::HeldBack {
            assert!(told.headline.contains("runs 2 children at once"), "{}", told.headline);
            held = Some(child.id);
        }
    }
    assert!(held.is_some());
    // Two fail, the third is let go and fails as well: the parent is about to read.
    for turn in 0..3 {
        world.claim_all().await;
        let child = shown.children.iter().map(|child| child.id);
        let mut due = None;
        for child in child {
            let row = world.row(child).await;
            if row.state() == RunState::Running {
                due = Some(child);
            }
        }
        let mut drive = Drive::load(&world.store, due.unwrap()).await.unwrap();
        drive.to_call(&world.store).await.unwrap();
        world.answered(&mut drive, "steps.0", failed(false)).await;
        let retry = |seen| Retry { run: due.unwrap(), seen, why: "mended".to_owned() };
        let told = world.operator.explain(due.unwrap()).await.unwrap();
        let may = told.legal_actions.iter().any(|action| action.verb == "retry");
        assert_eq!(may, turn < 2, "while a sibling lives, nobody has read");
        if turn == 2 {
            let refused = world.operator.retry(retry(told.revision)).await;
            let Err(error @ OperatorError::ParentMovedOn(_)) = refused else {
                panic!("{refused:?}")
            };
            assert!(error.to_string().contains(&run.to_string()), "{error}");
        }
    }
}

//! Children as an operator sees them.

use serde_json::json;
use surefoot_kernel_core::{Command, Event, ReasonKind, RunFilter, RunState, Scope};
use surefoot_operator::{EmitEvent, OperatorError, Retry};
use surefoot_testkit::Drive;

use crate::world::{SCOPE, World, app, failed};

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

//! What fills a screen of the console.

use serde_json::json;
use surefoot_kernel_core::{Event, Micros, PlanStep, RunId, RunState};
use surefoot_operator::{EmitEvent, JournalRange, OperatorError, TimelineOf, WhichVersion};

use crate::world::{REORDER, SCOPE, World, app};

const ALL: JournalRange = JournalRange { skip: 0, limit: 1_000 };

/// All views of a run that is inspected are those that one gets one by one.
#[tokio::test]
async fn an_inspected_run_says_the_same_as_each_view_alone() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.operator.inspect(run, ALL).await.unwrap();
    assert_eq!(seen.show, world.operator.show(run).await.unwrap());
    assert_eq!(seen.explanation, world.operator.explain(run).await.unwrap());
    let places: Vec<&str> = seen.outline.iter().map(|step| step.place.as_str()).collect();
    assert_eq!(places, ["steps.0", "steps.1", "steps.2"]);
    assert_eq!(seen.outline[1].save_as.as_deref(), Some("receipt"));
    assert_eq!(seen.journal.len() as u64, seen.journal_rows);
    let range = JournalRange { skip: 1, limit: 1 };
    let part = world.operator.inspect(run, range).await.unwrap();
    assert_eq!(part.journal, seen.journal[1..2]);
    assert_eq!(part.journal_rows, seen.journal_rows);
    let missing = world.operator.inspect(RunId::from_bytes([7; 16]), ALL).await;
    assert!(matches!(missing, Err(OperatorError::NotFound { .. })));
}

#[tokio::test]
async fn a_version_is_shown_with_its_source() {
    let world = World::published().await;
    let run = world.unknown().await;
    let workflow = world.operator.show(run).await.unwrap().run.workflow;
    let which = WhichVersion::Revision { app: app(), scope: SCOPE.into(), workflow, revision: 1 };
    let seen = world.operator.version(which).await.unwrap();
    assert_eq!(seen.source, REORDER);
    assert_eq!((seen.version.revision, seen.version.active), (1, true));
    assert_eq!(
        seen.outline.iter().map(|step| step.action.as_str()).collect::<Vec<_>>(),
        ["mail", "pay", "book"]
    );
}

/// Every kind of step with something inside.
const NESTED: &str = r#"
inputs:
  item: { type: text, required: true }
  numbers: { type: list, required: true }
steps:
  - mail: {}
    label: Tell the warehouse
    catch:
      - mail: {}
  - if: "${{ inputs.item == 'bolt' }}"
    then:
      - pay: {}
    else:
      - fail: { message: "No" }
  - forEach: "${{ inputs.numbers }}"
    as: number
    do:
      - book: {}
  - switch: "${{ inputs.item }}"
    cases:
      - when: bolt
        do:
          - book: {}
    default:
      - succeed: { message: "Yes" }
"#;

/// The outline of a plan has each step once, at the place that explanations know it by.
#[tokio::test]
async fn an_outline_has_the_places_of_an_explanation() {
    let world = World::published().await;
    world.publish("nested", NESTED).await;
    let event = Event::start("nested", json!({ "item": "bolt", "numbers": [1, 2] }));
    let emit = EmitEvent { app: app(), scope: SCOPE.into(), event };
    let run = world.operator.emit(&world.ids, emit).await.unwrap().runs[0];
    let seen = world.operator.inspect(run, ALL).await.unwrap();
    let mut places = Vec::new();
    flatten(&seen.outline, &mut places);
    let explained: Vec<(String, String)> = seen
        .explanation
        .steps
        .iter()
        .map(|step| (step.key.as_str().to_owned(), step.action.clone()))
        .collect();
    assert_eq!(places, explained);
    let names = |step: usize| -> Vec<&str> {
        seen.outline[step].branches.iter().map(|branch| branch.name.as_str()).collect()
    };
    assert_eq!((names(0), names(1)), (vec!["catch"], vec!["then", "else"]));
    assert_eq!((names(2), names(3)), (vec!["each"], vec!["case 1", "default"]));
    assert_eq!(seen.outline[0].label.as_deref(), Some("Tell the warehouse"));
}

fn flatten(steps: &[PlanStep], places: &mut Vec<(String, String)>) {
    for step in steps {
        places.push((step.place.clone(), step.action.clone()));
        step.branches.iter().for_each(|branch| flatten(&branch.steps, places));
    }
}

/// Covers behaviour 185.
#[tokio::test]
async fn a_timeline_is_bounded_and_has_the_true_total() {
    let world = World::published().await;
    const RUNS: u64 = 20_000;
    for key in 0..RUNS {
        let event = Event::new("inventory.stockLow", json!({ "item": "bolt" }));
        let event = event.dedupe_key(key.to_string());
        let emit = EmitEvent { app: app(), scope: SCOPE.into(), event };
        world.operator.emit(&world.ids, emit).await.unwrap();
    }
    let of =
        |slices| TimelineOf { app: app(), scope: None, span: Micros::from_secs(3_600), slices };
    for slices in [1, 60, 500] {
        let seen = world.operator.timeline(of(slices)).await.unwrap();
        assert_eq!((seen.total, seen.slices.len()), (RUNS, slices as usize));
        let queued: u64 =
            seen.slices.iter().filter_map(|it| it.by_state.get(RunState::Queued.as_str())).sum();
        assert_eq!(queued, RUNS);
    }
    let cut = world.operator.timeline(of(1_000_000)).await.unwrap();
    assert_eq!(cut.slices.len(), 500);
    let elsewhere = TimelineOf { scope: Some("nowhere".into()), ..of(60) };
    let error = world.operator.timeline(elsewhere).await.unwrap_err();
    assert!(error.to_string().contains("nothing is known of it"), "{error}");
}

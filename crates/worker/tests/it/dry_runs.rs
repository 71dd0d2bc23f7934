//! Dry runs: everything is previewed, nothing is done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Bill, Code, CreateDryRun, Dependency, EffectClass, Event, Fact, LoadRequest, Mode,
    OperatorStore, Phase, PlanStore as _, RowInput, RunFilter, RunId, RunState, RunStore,
    VersionId,
};
use surefoot_language::{Access, Cost, Planned, Stop};
use surefoot_worker::{DryRunError, Publication, Tick, WorkerError};

use crate::actions::Actions;
use crate::world::{APP, SCOPE, World, until};

/// Each preview foretells its config as output.
fn foretelling() -> Actions {
    Actions::default().cost(|| Cost::of("effects", 1)).plan(|action, config| {
        Ok(Planned::new(format!("{action} {config}")).output(config.clone()))
    })
}

async fn version(world: &World, source: &str) -> VersionId {
    let publication = Publication::new("work", source).budget("effects", 10);
    let scope = world.kernel.scope(SCOPE);
    scope.publish(world.module.manifest(), publication).await.unwrap().version
}

fn event() -> Event {
    Event::start("work", json!({}))
}

async fn dry_run(world: &World, source: &str) -> Result<Bill, DryRunError> {
    let version = version(world, source).await;
    world.kernel.scope(SCOPE).dry_run(&world.module, version, event()).await
}

async fn bill(world: &World, source: &str) -> Bill {
    let bill = dry_run(world, source).await.unwrap();
    assert_eq!(world.log().lines().iter().filter(|line| runs_an_effect(line)).count(), 0);
    bill
}

fn runs_an_effect(line: &str) -> bool {
    ["book.run", "mail.run", "pay.run", "pay.reconcile"].iter().any(|hook| line.starts_with(hook))
}

fn steps(bill: &Bill) -> Vec<(&str, bool)> {
    bill.effects.iter().map(|effect| (effect.step.as_str(), effect.is_sure)).collect()
}

fn issues(bill: &Bill) -> Vec<(&str, Option<&str>)> {
    bill.issues.iter().map(|it| (it.step.as_str(), it.code.as_ref().map(Code::as_str))).collect()
}

async fn all_runs(world: &World, mode: Mode) -> Vec<RunId> {
    let filter = RunFilter { mode: Some(mode), limit: 100, ..RunFilter::default() };
    let page = world.store.inner.run_list(filter).await.unwrap();
    page.rows.iter().map(|row| row.run.id).collect()
}

const EACH_CLASS: &str = "
steps:
  - compute: { n: 21 }
    saveAs: doubled
  - if: '${{ doubled.n == 21 }}'
    then:
      - book: { n: '${{ doubled.n }}' }
  - forEach: \"${{ split('a,b', ',') }}\"
    as: to
    do:
      - mail: { to: '${{ to }}' }
  - delay: { for: 5d }
  - pay: { n: 1 }
";

/// Covers behaviour 157.
#[tokio::test(start_paused = true)]
async fn a_bill_lists_every_effect_and_none_happens() {
    let world = World::new(foretelling());
    let bill = bill(&world, EACH_CLASS).await;
    assert_eq!(
        steps(&bill),
        [
            ("steps.1.then.0", true),
            ("steps.2.do.0#0", true),
            ("steps.2.do.0#1", true),
            ("steps.4", true)
        ]
    );
    assert_eq!(bill.effects[1].summary.as_deref(), Some("mail {\"to\":\"a\"}"));
    let count = |class| bill.by_class.get(&class).copied();
    assert_eq!(
        (
            count(EffectClass::Transactional),
            count(EffectClass::Idempotent),
            count(EffectClass::Ambiguous)
        ),
        (Some(1), Some(2), Some(1))
    );
    assert_eq!((bill.costs.len(), bill.costs[0].sure.to_string().as_str()), (1, "4"));
    assert!(bill.is_cost_complete && bill.issues.is_empty() && bill.code.is_none(), "{bill:?}");
    assert_eq!(world.log().count("mail.cost"), 2);
    assert_eq!((world.log().count("pay.authorize"), world.log().count("pay.plan")), (1, 1));
    let run = all_runs(&world, Mode::DryRun).await[0];
    let row = world.run(run).await;
    assert_eq!((row.state(), row.attempt, row.origin.event), (RunState::Succeeded, 1, None));
    let Phase::Succeeded { result, message } = row.phase else { unreachable!() };
    assert_eq!(serde_json::from_value::<Bill>(result).unwrap(), bill);
    assert!(message.unwrap().contains("4 effects"));
    // Nothing is charged by a preview.
    let budget = world.store.inner.run_detail(run).await.unwrap().unwrap().budget;
    assert_eq!(budget.counter("effects").used.to_string(), "0");
}

/// Covers behaviour 164.
#[tokio::test(start_paused = true)]
async fn what_hangs_on_a_planned_value_is_analysed_on_every_way() {
    let world = World::new(foretelling());
    let source = "
steps:
  - pay: { n: 1 }
    saveAs: paid
  - if: '${{ paid.n == 1 }}'
    then: [ { mail: { n: 1 } } ]
    else: [ { book: { n: 2 } } ]
  - switch: '${{ paid.n }}'
    cases:
      - when: 1
        do: [ { mail: { n: '${{ paid.n }}' } } ]
  - forEach: '${{ paid.items }}'
    as: item
    do: [ { mail: { n: 4 } }, { book: { item: '${{ item }}' } } ]
  - mail: { n: 5 }
";
    let bill = bill(&world, source).await;
    assert_eq!(
        steps(&bill),
        [
            ("steps.0", true),
            ("steps.1.then.0", false),
            ("steps.1.else.0", false),
            ("steps.2.cases.0.do.0", false),
            ("steps.3.do.0#0", false),
            ("steps.3.do.1#0", false),
            ("steps.4", true),
        ]
    );
    let indeterminate = Some("DRY_RUN_INDETERMINATE");
    assert_eq!(
        issues(&bill),
        [
            ("steps.1", indeterminate),
            ("steps.2", indeterminate),
            ("steps.3", indeterminate),
            ("steps.3.do.1#0", indeterminate),
        ]
    );
    assert_eq!(bill.code, Some(Code::DRY_RUN_INDETERMINATE));
    // The config of the third one rests on a planned value, and is previewed all the same.
    assert_eq!(bill.effects[3].summary.as_deref(), Some("mail {\"n\":1}"));
    assert_eq!((bill.effects[5].summary.as_deref(), bill.is_cost_complete), (None, false));
    assert_eq!(
        (bill.costs[0].sure.to_string(), bill.costs[0].all.to_string()),
        ("2".into(), "6".into())
    );
}

/// Covers behaviour 165.
#[tokio::test(start_paused = true)]
async fn indeterminate_outranks_unsupported_and_both_are_told() {
    let world = World::new(Actions::default().plan(|action, config| match action {
        "book" => Err(Stop::fail("NO_PREVIEW", "the shelf cannot be looked at")),
        _ => Ok(Planned::new(format!("{action} {config}"))),
    }));
    let source = "
steps:
  - book: { n: 1 }
    saveAs: booked
  - mail: { n: '${{ booked.n }}' }
";
    let bill = bill(&world, source).await;
    assert_eq!(
        issues(&bill),
        [("steps.0", Some("DRY_RUN_UNSUPPORTED")), ("steps.1", Some("DRY_RUN_INDETERMINATE"))]
    );
    assert_eq!(bill.code, Some(Code::DRY_RUN_INDETERMINATE));
    assert_eq!(bill.issues[0].message, "the shelf cannot be looked at");
}

/// Covers behaviour 166.
#[tokio::test(start_paused = true)]
async fn where_the_run_would_end_for_sure_analysis_ends() {
    let world = World::new(foretelling());
    let ends = "
steps:
  - if: '${{ 1 < 2 }}'
    then: [ { succeed: { message: 'Enough' } } ]
  - mail: { n: 1 }
";
    let bill = bill(&world, ends).await;
    assert!(bill.effects.is_empty() && bill.code.is_none(), "{bill:?}");
    let end = bill.ends.unwrap();
    assert_eq!(
        (end.step.as_str(), end.code, end.message.as_deref()),
        ("steps.0.then.0", None, Some("Enough"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_for_sure_is_terminal() {
    let world = World::new(
        foretelling()
            .may(|action, _| async move { Ok(Access::allowed_if(action != "book", "not you")) }),
    );
    let fails = "steps: [ { mail: { n: 1 } }, { book: { n: 1 } }, { mail: { n: 2 } } ]";
    let bill = bill(&world, fails).await;
    assert_eq!(
        (steps(&bill), bill.code.clone()),
        (vec![("steps.0", true)], Some(Code::DRY_RUN_TERMINAL))
    );
    assert_eq!(bill.issues[0].message, "FORBIDDEN: not you");
    assert_eq!(bill.ends.unwrap().code, Some(Code::FORBIDDEN));
}

/// A branch that ends the run ends only its own way; if all do, nothing behind is reached.
#[tokio::test(start_paused = true)]
async fn an_end_on_one_of_several_ways_ends_that_way_only() {
    let world = World::new(foretelling());
    let one = "
steps:
  - pay: { n: 1 }
    saveAs: paid
  - if: '${{ paid.n == 1 }}'
    then: [ { fail: { message: 'No' } } ]
  - mail: { n: 2 }
  - if: '${{ paid.n == 1 }}'
    then: [ { succeed: { message: 'a' } } ]
    else: [ { fail: { message: 'b' } } ]
  - mail: { n: 3 }
";
    let bill = bill(&world, one).await;
    assert_eq!(steps(&bill), [("steps.0", true), ("steps.2", false)], "it may be over before");
    assert!(bill.ends.is_none());
}

/// Covers behaviour 167.
#[tokio::test(start_paused = true)]
async fn what_waits_is_indeterminate_and_nothing_parks() {
    let world = World::new(Actions::default().plan(|action, config| match action {
        "mail" => Err(Stop::wait_for(Dependency::on("price", "bolt"))),
        _ => Ok(Planned::new(format!("{action} {config}"))),
    }));
    let source = "
steps:
  - mail: { n: 1 }
  - waitFor: { kind: approval, key: k }
    saveAs: approval
  - delay: { for: 2d }
  - book: { n: '${{ approval.data }}' }
";
    let bill = bill(&world, source).await;
    let indeterminate = Some("DRY_RUN_INDETERMINATE");
    assert_eq!(issues(&bill), [("steps.0", indeterminate), ("steps.3", indeterminate)]);
    assert!(bill.issues[0].message.contains("`price` of `bolt`"), "{bill:?}");
}

/// A dry run of `source` that nobody has taken up yet.
async fn queued(world: &World, source: &str) -> RunId {
    let version = version(world, source).await;
    let scope = world.kernel.scope(SCOPE);
    let waiting = tokio::spawn({
        let (scope, module) = (scope.clone(), world.module.clone());
        async move { scope.dry_run(&module, version, event()).await.map(drop) }
    });
    until("it is previewed", || world.log().count("mail.plan") > 0).await;
    waiting.abort();
    all_runs(world, Mode::DryRun).await[0]
}

/// Covers behaviour 168.
#[tokio::test(start_paused = true)]
async fn what_was_found_is_restored_after_a_crash_and_not_planned_twice() {
    let calls = AtomicUsize::new(0);
    let actions = Actions::default().plan(|action, _| Ok(Planned::new(action).issue("look here")));
    let world = World::new(actions.may(move |action, _| {
        let dies = action == "pay" && calls.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if dies {
                std::future::pending::<()>().await;
            }
            Ok(Access::Allowed)
        }
    }));
    let source = "steps: [ { mail: { n: 1 } }, { pay: { n: 1 } } ]";
    let version = version(&world, source).await;
    let (scope, module) = (world.kernel.scope(SCOPE), world.module.clone());
    let doomed =
        tokio::spawn(async move { scope.dry_run(&module, version, event()).await.map(drop) });
    until("the second step is asked", || world.log().count("pay.authorize") == 1).await;
    doomed.abort();
    tokio::time::advance(Duration::from_secs(121)).await;
    let worker = world.kernel.dry_run_worker(world.module.clone());
    let run = worker.run_one().await.unwrap().unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let Phase::Succeeded { result, .. } = world.run(run).await.phase else { unreachable!() };
    let bill: Bill = serde_json::from_value(result).unwrap();
    assert_eq!((bill.effects.len(), bill.issues.len()), (2, 2));
    assert_eq!((world.log().count("mail.plan"), world.log().count("pay.plan")), (1, 1));
}

/// Covers behaviour 170.
#[tokio::test(start_paused = true)]
async fn a_dry_run_that_ends_its_worker_each_time_is_bounded() {
    let world =
        World::new(Actions::default().plan(|_, _| Ok(Planned::new("x"))).may(|_, _| async {
            std::future::pending::<()>().await;
            Ok(Access::Allowed)
        }));
    let version = version(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let (scope, module) = (world.kernel.scope(SCOPE), world.module.clone());
    let first =
        tokio::spawn(async move { scope.dry_run(&module, version, event()).await.map(drop) });
    until("it is asked", || world.log().count("mail.authorize") == 1).await;
    first.abort();
    let run = all_runs(&world, Mode::DryRun).await[0];
    let mut executions = 1;
    while !world.state(run).await.is_terminal() {
        tokio::time::advance(Duration::from_secs(121)).await;
        let before = world.log().count("mail.authorize");
        let worker = world.kernel.dry_run_worker(world.module.clone());
        let doomed = tokio::spawn(async move { worker.run_one().await.map(drop) });
        until("it is asked again, or over", || {
            doomed.is_finished() || world.log().count("mail.authorize") > before
        })
        .await;
        doomed.abort();
        executions += 1;
        assert!(executions < 20, "it goes on for ever");
    }
    assert_eq!(world.error(run).await.code, Code::RETRY_EXHAUSTED);
    // The first one recorded the inputs, and the count began anew.
    assert_eq!(world.log().count("mail.authorize"), 9);
}

/// Covers behaviour 169.
#[tokio::test(start_paused = true)]
async fn an_execution_and_a_dry_run_of_one_key_are_two_runs() {
    let world = World::new(foretelling());
    let version = version(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let scope = world.kernel.scope(SCOPE);
    let keyed = || event().dedupe_key("bolt");
    let executed = scope.emit(keyed()).await.unwrap().runs;
    scope.dry_run(&world.module, version, keyed()).await.unwrap();
    scope.dry_run(&world.module, version, keyed()).await.unwrap();
    assert_eq!(all_runs(&world, Mode::Execute).await, executed);
    assert_eq!(all_runs(&world, Mode::DryRun).await.len(), 2);
}

/// Covers behaviour 97.
#[tokio::test(start_paused = true)]
async fn each_kind_of_worker_claims_its_own_mode() {
    let world = World::new(foretelling());
    let actions = world.module.clone();
    let version = version(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let executed = world.emit_quietly("work").await;
    let dry = world.kernel.dry_run_worker(actions);
    assert_eq!(dry.run_one().await.unwrap(), None);
    world.kernel.scope(SCOPE).dry_run(&world.module, version, event()).await.unwrap();
    let ticked = world.worker().tick(Tick::max_runs(10)).await.unwrap();
    assert_eq!(ticked.runs, [executed]);
    assert_eq!((world.log().count("mail.run"), world.log().count("mail.plan")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_said_and_leaves_no_run() {
    let world = World::new(foretelling());
    let version = version(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let scope = world.kernel.scope(SCOPE);
    let gone = scope.dry_run(&world.module, VersionId::from_bytes([9; 16]), event()).await;
    assert!(matches!(gone, Err(DryRunError::NotFound { .. })), "{gone:?}");
    let other = world.kernel.scope("hamburg").dry_run(&world.module, version, event()).await;
    assert!(matches!(other, Err(DryRunError::NotFound { .. })), "{other:?}");
    let unknown =
        scope.dry_run(&world.module, version, Event::new("nobody.listens", json!({}))).await;
    assert!(matches!(unknown, Err(DryRunError::NoTrigger { .. })), "{unknown:?}");
    assert!(all_runs(&world, Mode::DryRun).await.is_empty());
}

/// A person cancels it, as any run.
#[tokio::test(start_paused = true)]
async fn a_dry_run_can_be_canceled() {
    let world = World::new(Actions::default().plan(|_, _| Err(Stop::retry("BUSY", "later"))));
    let run = queued(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let cancel = RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() };
    world.act_on(run, cancel).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Canceled);
    let request = LoadRequest { run, after: None };
    let facts = world.store.inner.run_load(request).await.unwrap().unwrap().journal.unwrap();
    assert!(
        facts.iter().flat_map(|it| &it.facts).any(|fact| matches!(fact, Fact::CancelRequested(_)))
    );
}

/// A preview that failed for now is repeated when the step's own policy says so, not its action's.
#[tokio::test(start_paused = true)]
async fn a_preview_is_repeated_as_the_step_says() {
    let world = World::new(Actions::default().plan(|_, _| Err(Stop::retry("BUSY", "later"))));
    let retry = "{ attempts: 3, first: 100s, factor: 1, max: 100s }";
    let source = format!("steps: [ {{ mail: {{ n: 1 }}, retry: {retry} }} ]");
    let begun = tokio::time::Instant::now();
    let ended = dry_run(&world, &source).await;
    assert!(matches!(ended, Err(DryRunError::Ended { .. })), "{ended:?}");
    assert_eq!(world.log().count("mail.plan"), 3);
    // Two delays, each with its jitter.
    assert!(begun.elapsed() >= Duration::from_secs(160), "{:?}", begun.elapsed());
}

/// Dry runs that nobody has looked at yet.
async fn asked(world: &World, source: &str, count: usize) -> Vec<RunId> {
    let version = version(world, source).await;
    let footprint = world.module.footprint().clone();
    let plan = world.store.inner.version_load(version).await.unwrap().unwrap();
    assert!(plan.footprint.is_contained_in(&footprint));
    let mut runs = Vec::new();
    for number in 0..count {
        let create = CreateDryRun {
            id: RunId::from_bytes([u8::try_from(number).unwrap() + 1; 16]),
            app: APP.into(),
            scope: SCOPE.into(),
            workflow: "work".into(),
            version,
            footprint: plan.footprint.hash(),
            trigger: None,
            event: event().check().unwrap(),
        };
        runs.push(world.store.inner.dry_run_create(create).await.unwrap().id);
    }
    runs
}

async fn sessions(world: &World) -> Vec<(Mode, u32)> {
    let listed = world.store.inner.session_list(&APP.into()).await.unwrap();
    listed.into_iter().map(|row| (row.mode, row.slots)).collect()
}

/// A started worker takes what is there and what comes, is listed, and is gone after its stop.
#[tokio::test(start_paused = true)]
async fn a_started_worker_previews_what_comes() {
    let world = World::new(foretelling());
    let first = asked(&world, "steps: [ { mail: { n: 1 } } ]", 6).await;
    let worker = world.kernel.dry_run_worker(world.module.clone());
    let running = worker.start().await.unwrap();
    assert!(matches!(worker.start().await, Err(WorkerError::AlreadyStarted)));
    for run in first {
        while world.state(run).await != RunState::Succeeded {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    assert_eq!(sessions(&world).await, [(Mode::DryRun, 4)]);
    assert!(!running.health().is_degraded());
    running.stop(Duration::from_secs(1)).await;
    assert_eq!(sessions(&world).await, []);
    assert_eq!(world.log().count("mail.run"), 0);
    let again = worker.start().await.unwrap();
    again.drain().await.unwrap();
}

/// Hooks that together take longer than a lease cost nobody the dry run.
///
/// Covers behaviour 98.
#[tokio::test(start_paused = true)]
async fn leases_of_dry_runs_are_kept_while_hooks_take_their_time() {
    let actions = Actions::default().plan(|_, _| Ok(Planned::new("x"))).may(|_, _| async {
        tokio::time::sleep(Duration::from_secs(29)).await;
        Ok(Access::Allowed)
    });
    let world = World::new(actions);
    let steps = ["{ mail: { n: 1 } }"; 8].join(", ");
    let run = asked(&world, &format!("steps: [ {steps} ]"), 1).await[0];
    let running = world.kernel.dry_run_worker(world.module.clone()).start().await.unwrap();
    let rival = world.other().dry_run_worker(world.module.clone());
    while world.state(run).await != RunState::Succeeded {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(rival.run_one().await.unwrap(), None);
    }
    assert_eq!((world.run(run).await.attempt, world.log().count("mail.authorize")), (1, 8));
    running.stop(Duration::ZERO).await;
}

/// Past its grace a stop hands dry runs over between two steps, and another worker has not to wait for a lease.
#[tokio::test(start_paused = true)]
async fn a_stop_hands_dry_runs_over() {
    let actions = Actions::default().plan(|_, _| Ok(Planned::new("x"))).may(|_, _| async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok(Access::Allowed)
    });
    let world = World::new(actions);
    let run = asked(&world, "steps: [ { mail: { n: 1 } }, { mail: { n: 2 } } ]", 1).await[0];
    let running = world.kernel.dry_run_worker(world.module.clone()).start().await.unwrap();
    until("the first step is asked", || world.log().count("mail.authorize") == 1).await;
    running.stop(Duration::from_secs(1)).await;
    let row = world.run(run).await;
    assert_eq!((row.state(), row.failures), (RunState::Queued, 0));
    let next = world.other().dry_run_worker(world.module.clone());
    assert_eq!(next.run_one().await.unwrap(), Some(run));
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.log().count("mail.plan"), 2);
}

/// A worker that is made of another one claims for itself.
#[tokio::test(start_paused = true)]
async fn a_worker_made_of_another_has_a_session_of_its_own() {
    let actions = Actions::default().plan(|_, _| Ok(Planned::new("x"))).may(|_, _| async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok(Access::Allowed)
    });
    let world = World::new(actions);
    let runs = asked(&world, "steps: [ { mail: { n: 1 } } ]", 2).await;
    let worker = world.kernel.dry_run_worker(world.module.clone());
    let named = worker.clone().name("the other");
    let (first, second) = tokio::join!(worker.run_one(), named.run_one());
    let mut claimed = vec![first.unwrap().unwrap(), second.unwrap().unwrap()];
    claimed.sort();
    assert_eq!(claimed, runs);
    assert_eq!(world.log().count("mail.authorize"), 2);
}

/// Whoever waits for a bill hears that nothing moves, and where the dry run stands.
#[tokio::test(start_paused = true)]
async fn a_bill_is_not_waited_for_for_ever() {
    let hour = Duration::from_secs(3_600);
    let later = move || Stop::retry("BUSY", "later").retry_after(hour);
    let world = World::new(Actions::default().plan(move |_, _| Err(later())));
    let ended = dry_run(&world, "steps: [ { mail: { n: 1 } } ]").await;
    let Err(DryRunError::Unfinished { run, state, due, waited }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!((state, waited.as_secs()), (RunState::Queued, 600));
    assert!(due.is_some());
    assert_eq!(world.state(run).await, RunState::Queued);
}

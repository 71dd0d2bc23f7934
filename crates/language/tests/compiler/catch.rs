use expect_test::expect;
use surefoot_kernel_core::Micros;
use surefoot_kernel_core::plan::{RetryPolicy, StepKind};

use crate::support::{check_step, plan_of};

#[test]
fn a_catch_is_part_of_its_action() {
    let plan = plan_of(
        "- sendEmail: { to: a }\n  saveAs: sent\n  catch:\n    - if: ${{ error.code == 'NO_ADDRESS' }}\n      then: [ { fail: { message: \"${{ error.message }}\" } } ]\n    - noop: {}\n- setVariable: { name: seen, value: \"${{ sent }}\" }",
    );
    let catch = plan.steps[0].catch().unwrap();
    assert_eq!(catch.len(), 2);
    assert!(matches!(catch[0].kind, StepKind::If { .. }));
    assert_eq!(plan.steps[1].catch(), None);
    let stored = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<surefoot_kernel_core::plan::Plan>(stored).unwrap(), plan);
}

#[test]
fn the_error_is_visible_inside_its_catch_only() {
    check_step(
        "- noop: {}\n  saveAs: mine\n  catch:\n    - setVariable: { name: a, value: \"${{ error.kode }}\" }\n    - setVariable: { name: b, value: \"${{ mine }}\" }\n- setVariable: { name: c, value: \"${{ error.code }}\" }",
        expect![[r#"
            9:51-9:55 error UNKNOWN_MEMBER: there is no member `kode` here
              at: steps.0.catch.0.setVariable.value
              help: did you mean `code`?
            10:45-10:49 error UNKNOWN_NAME: nothing here is called `mine`
              at: steps.0.catch.1.setVariable.value
              help: known here: `a`, `error`, `inputs`, `context`, `bindings`, `run`
            11:41-11:46 error UNKNOWN_NAME: nothing here is called `error`
              at: steps.1.setVariable.value
              related: 141 bound here, in a scope that has ended
              help: a name is visible in its own branch or iteration only; `saveAs` on the `if`, `switch` or `forEach` keeps the value
        "#]],
    );
}

#[test]
fn a_catch_inside_a_catch_hides_the_error_around_it() {
    check_step(
        "- noop: {}\n  catch:\n    - noop: {}\n      catch:\n        - setVariable: { name: inner, value: \"${{ error.code }}\" }\n    - setVariable: { name: outer, value: \"${{ error.code }}\" }",
        expect![[""]],
    );
    check_step(
        "- noop: {}\n  saveAs: error\n- noop: {}\n  catch: [ { noop: {} } ]\n- noop: {}\n  catch:\n    - setVariable: { name: error, value: 1 }",
        expect![[r#"
            9:5-9:10 error NAME_TAKEN: `catch` calls the failure `error`, which is visible here already
              at: steps.1.catch
              related: 132 bound here
              help: choose another name for the other one
            11:5-11:10 error NAME_TAKEN: `catch` calls the failure `error`, which is visible here already
              at: steps.2.catch
              related: 132 bound here
              help: choose another name for the other one
            12:30-12:35 error NAME_TAKEN: `error` is visible here already
              at: steps.2.catch.0.setVariable.name
              related: 132 bound here
              help: choose another name: a name keeps its value
        "#]],
    );
}

#[test]
fn a_catch_is_checked_like_every_branch() {
    check_step(
        "- noop: {}\n  catch: []\n- noop: {}\n  catch: { noop: {} }\n- noop: {}\n  catch:\n    - succeed: { message: a }\n    - noop: {}\n- noop: {}",
        expect![[r#"
            7:12-7:14 error STEPS_EMPTY: `catch` has no steps
              at: steps.0.catch
              help: to go on whatever happened, say so: `- setVariable: { name: failed, value: true }`
            9:12-9:24 error NOT_A_LIST: `catch` is a list of steps; this is a mapping
              at: steps.1.catch
              help: write each step on a line of its own that begins with `- `
            13:9-13:17 warning UNREACHABLE: this step is never reached: the run has ended before it
              at: steps.2.catch.1
        "#]],
    );
    check_step(
        "- if: ${{ true }}\n  then: [ { noop: {} } ]\n  catch: [ { noop: {} } ]\n- delay: { for: 5s }\n  retry: { attempts: 2 }",
        expect![[r#"
            8:5-8:10 error UNKNOWN_KEY: `catch` does not belong to `if`
              at: steps.0.catch
              help: it stands beside an action: nothing else is tried again or caught
            10:5-10:10 error UNKNOWN_KEY: `retry` does not belong to `delay`
              at: steps.1.retry
              help: it stands beside an action: nothing else is tried again or caught
        "#]],
    );
}

/// The output of a step whose failure may have been handled is that of one of two steps.
#[test]
fn what_a_step_with_a_catch_saves_is_known_only_if_the_catch_ends_the_run() {
    check_step(
        "- loadItem: { item: a }\n  saveAs: stock\n  catch: [ { fail: { message: gone } } ]\n- setVariable: { name: a, value: \"${{ stock.onhand }}\" }\n- loadItem: { item: a }\n  saveAs: other\n  catch: [ { noop: {} } ]\n- setVariable: { name: b, value: \"${{ other.onhand }}\" }",
        expect![[r#"
            9:47-9:53 error UNKNOWN_MEMBER: there is no member `onhand` here
              at: steps.1.setVariable.value
              help: did you mean `onHand`?
        "#]],
    );
}

#[test]
fn a_steps_retry_policy_fills_up_from_its_actions() {
    let plan = plan_of(
        "- sendEmail: { to: a }\n  retry: { attempts: 3, first: 500ms, factor: 1.5, max: 10s }\n- sendEmail: { to: a }\n  retry: { attempts: 1 }",
    );
    let own = |index: usize| plan.retry_of(&plan.steps[index]).unwrap().clone();
    let written = RetryPolicy {
        attempts: 3,
        first: Micros::new(500_000),
        factor: 1.5,
        max: Micros::from_secs(10),
    };
    assert_eq!(own(0), written);
    assert_eq!(own(1), RetryPolicy { attempts: 1, ..RetryPolicy::default() });
}

#[test]
fn a_retry_policy_stays_within_its_actions_and_makes_sense() {
    check_step(
        "- noop: {}\n  retry: { attempts: 9 }\n- noop: {}\n  retry: { attempts: 0, factor: 0.5 }\n- noop: {}\n  retry: { attempts: some, first: 10m, atempts: 1 }\n- noop: {}\n  retry: { first: 10m }\n- noop: {}\n  retry: 3\n- noop: {}\n  retry: { max: \"${{ inputs.item }}\" }",
        expect![[r#"
            7:24-7:25 error RETRY_INVALID: the action is tried at most 8 times; a step may ask for fewer, not for 9
              at: steps.0.retry.attempts
              help: `attempts` counts the first try too: `attempts: 1` is never tried again
            9:24-9:25 error RETRY_INVALID: `attempts` is from 1 to 8; this is 0
              at: steps.1.retry.attempts
              help: `attempts` counts the first try too: `attempts: 1` is never tried again
            9:35-9:38 error RETRY_INVALID: `factor` is a number of at least 1: each delay is so many times the last
              at: steps.1.retry.factor
            11:24-11:28 error RETRY_INVALID: `attempts` is from 1 to 8; this is a text
              at: steps.2.retry.attempts
              help: `attempts` counts the first try too: `attempts: 1` is never tried again
            11:42-11:49 error UNKNOWN_KEY: unknown key `atempts`
              at: steps.2.retry.atempts
              help: did you mean `attempts`?
            13:12-13:26 error RETRY_INVALID: `first` is longer than `max`, and no delay is
              at: steps.3.retry
              help: give both, the first delay not longer than the longest
            15:12-15:13 error NOT_A_MAPPING: `retry` is a mapping; this is a number
              at: steps.4.retry
            17:19-17:39 error EXPRESSION_NOT_ALLOWED: a duration cannot be computed
              at: steps.5.retry.max
              help: write it like `500ms`, `30s`, `5m`, `2h` or `7d`
        "#]],
    );
}

//! The page: one row a case, with the tests that show it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cases::{Case, Cases, Kind};
use super::claims::Claim;
use super::junit::Passed;

const HEAD: &str = "\
# Behaviour

What Surefoot shows, and the tests that show it. This page is written by `cargo xtask docs` from tests that ran and passed;
`cargo xtask docs --check` fails if it is out of date, or if a case has neither a test nor a reason to have none. A rule of the
store suite runs on every store: the stores stand behind it.
";

/// The page, or what is wrong with the claims.
pub(super) fn page(
    cases: &Cases,
    claims: &[Claim],
    passed: &[Passed],
) -> Result<String, Vec<String>> {
    let (shown, mut wrong) = shown(cases, claims, passed);
    for case in cases.sentences.keys() {
        match (shown.contains_key(case), cases.left_out.contains_key(case)) {
            (true, true) => wrong.push(format!("{case} has a test: it is not left out any more")),
            (false, false) => wrong.push(format!("{case} has no test, and no reason for that")),
            (true, false) | (false, true) => {}
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut page = HEAD.to_owned();
    for (kind, title) in [(Kind::Behaviour, "Behaviours"), (Kind::Fault, "Faults from the field")] {
        table(&mut page, cases, &shown, (kind, title));
    }
    page.push_str("\n## Left out\n\n| case | why |\n|---|---|\n");
    for (case, why) in &cases.left_out {
        let _ = writeln!(page, "| {case} | {why} |");
    }
    Ok(page)
}

type Shown = BTreeMap<Case, BTreeSet<String>>;

fn table(page: &mut String, cases: &Cases, shown: &Shown, (kind, title): (Kind, &str)) {
    let _ = write!(page, "\n## {title}\n\n| number | behaviour | test |\n|---|---|---|\n");
    for (case, tests) in shown.iter().filter(|(case, _)| case.kind == kind) {
        let sentence = cases.sentences.get(case).map_or("", String::as_str).replace('|', "\\|");
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        let _ = writeln!(page, "| {} | {sentence} | {} |", case.number, tests.join("<br>"));
    }
}

/// Each case with the tests that show it, and claims that cannot be trusted.
fn shown(cases: &Cases, claims: &[Claim], passed: &[Passed]) -> (Shown, Vec<String>) {
    let (mut shown, mut wrong) = (Shown::new(), Vec::new());
    for claim in claims {
        let place = format!("{} in {}", claim.name, claim.path);
        let Some(test) = name(claim, passed) else {
            wrong.push(format!("{place} did not run, or did not pass"));
            continue;
        };
        for case in &claim.cases {
            if cases.sentences.contains_key(case) {
                shown.entry(*case).or_default().insert(test.clone());
            } else {
                wrong.push(format!("{place} names {case}, which is not in the list"));
            }
        }
    }
    (shown, wrong)
}

/// The name of a test for people, if it passed.
fn name(claim: &Claim, passed: &[Passed]) -> Option<String> {
    let Some(package) = claim.package() else { return rule(claim, passed) };
    let of_package = passed.iter().filter(|test| test.package() == package);
    let same: Vec<&Passed> = of_package.filter(|test| ends_in(test, &[&claim.name])).collect();
    // Where several modules have a test of this name, the file tells which.
    let by_module = same.iter().find(|test| ends_in(test, &[claim.module(), &claim.name]));
    let test = by_module.or_else(|| same.first())?;
    let package = package.trim_start_matches("surefoot-");
    Some(format!("{package}: `{}`", test.name))
}

/// A rule of the suite, with the stores that it ran on.
fn rule(claim: &Claim, passed: &[Passed]) -> Option<String> {
    let path = [claim.module(), &claim.name];
    let rules = passed.iter().filter(|test| ends_in(test, &path));
    let stores: BTreeSet<&str> = rules.filter_map(|test| test.name.rsplit("::").nth(2)).collect();
    if stores.is_empty() {
        return None;
    }
    let stores: Vec<&str> = stores.into_iter().collect();
    Some(format!("suite: `{}::{}` ({})", path[0], path[1], stores.join(", ")))
}

fn ends_in(test: &Passed, path: &[&str]) -> bool {
    let mut parts = test.name.rsplit("::");
    path.iter().rev().all(|wanted| parts.next() == Some(*wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Cases {
        Cases::parse(
            "behaviour 1: One.\nbehaviour 2: Two.\nfault 1: Three.\nleft out, behaviour 2: later\n",
        )
        .unwrap()
    }

    fn claim(case: (Kind, u32), path: &str, name: &str) -> Claim {
        let case = Case { kind: case.0, number: case.1 };
        Claim { cases: vec![case], path: path.to_owned(), name: name.to_owned() }
    }

    fn passed(suite: &str, name: &str) -> Passed {
        Passed { suite: suite.to_owned(), name: name.to_owned() }
    }

    fn claims() -> Vec<Claim> {
        vec![
            claim((Kind::Behaviour, 1), "crates/worker/tests/it/leases.rs", "holds"),
            claim((Kind::Fault, 1), "crates/testkit/src/suite/waits.rs", "rule"),
        ]
    }

    fn ran() -> Vec<Passed> {
        vec![
            passed("surefoot-worker::it", "claims::holds"),
            passed("surefoot-worker::it", "leases::holds"),
            passed("surefoot-testkit::it", "memory::waits::rule"),
            passed("surefoot-store-sqlite::it", "suite::sqlite::waits::rule"),
        ]
    }

    #[test]
    fn a_case_has_one_row_with_its_tests_and_a_rule_has_its_stores() {
        let page = page(&cases(), &claims(), &ran()).unwrap();
        assert!(page.contains("\n| 1 | One. | worker: `leases::holds` |\n"), "{page}");
        assert!(
            page.contains("\n| 1 | Three. | suite: `waits::rule` (memory, sqlite) |\n"),
            "{page}"
        );
        assert!(page.ends_with("\n| behaviour 2 | later |\n"), "{page}");
    }

    #[test]
    fn what_cannot_be_trusted_is_said() {
        let says = |claims: &[Claim], passed: &[Passed]| {
            page(&cases(), claims, passed).unwrap_err().join("\n")
        };
        let one = says(&claims(), &ran()[2..]);
        assert!(one.contains("holds in crates/worker/tests/it/leases.rs did not run"), "{one}");
        assert!(one.contains("behaviour 1 has no test, and no reason"), "{one}");
        let mut more = claims();
        more.push(claim((Kind::Behaviour, 2), "crates/worker/tests/it/leases.rs", "holds"));
        assert_eq!(says(&more, &ran()), "behaviour 2 has a test: it is not left out any more");
        more[2].cases[0].number = 3;
        assert!(says(&more, &ran()).contains("names behaviour 3, which is not in the list"));
    }
}

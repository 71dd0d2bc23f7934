//! Which tests say that they show a case: by a line `Covers behaviour 12.` or `Covers field faults 3, 4.` in the
//! documentation of the test.

use super::cases::{Case, Kind};
use crate::failure::Failure;
use crate::workspace::File;

/// The suite of stores: each rule is one test per store.
const SUITE: &str = "crates/testkit/src/suite/";
/// The documentation of a test does not go on for longer.
const LINES_MAX: usize = 30;

/// One test and the cases that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) cases: Vec<Case>,
    /// Where it stands.
    pub(super) path: String,
    /// The function.
    pub(super) name: String,
}

impl Claim {
    /// The package of the test; none for a rule of the suite, which runs in every store's package.
    pub(super) fn package(&self) -> Option<String> {
        if self.is_rule() {
            return None;
        }
        let mut parts = self.path.split('/');
        match (parts.next(), parts.next()) {
            (Some("xtask"), _) => Some("xtask".to_owned()),
            (_, Some("surefoot")) => Some("surefoot".to_owned()),
            (_, Some(folder)) => Some(format!("surefoot-{folder}")),
            (_, None) => None,
        }
    }

    /// Whether it is a rule of the suite.
    pub(super) fn is_rule(&self) -> bool {
        self.path.starts_with(SUITE)
    }

    /// The module that the file is.
    pub(super) fn module(&self) -> &str {
        let mut parts = self.path.rsplit('/');
        let stem = parts.next().unwrap_or_default().trim_end_matches(".rs");
        if matches!(stem, "mod" | "main" | "lib") { parts.next().unwrap_or_default() } else { stem }
    }
}

/// Every claim in a source file.
pub(super) fn of(file: &File) -> Result<Vec<Claim>, Failure> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut claims: Vec<Claim> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(said) = line.strip_prefix("/// ").filter(|said| said.contains("Covers ")) else {
            continue;
        };
        let wrong = |what: &str| Failure::new(format!("{}:{}: {what}: {line}", file.path, at + 1));
        let cases = cases(said).ok_or_else(|| wrong("names no case"))?;
        let below = lines.iter().skip(at + 1).take(LINES_MAX);
        let name = below.filter(|line| !line.starts_with("//")).find_map(|line| function(line));
        let name = name.ok_or_else(|| wrong("stands over no test"))?.to_owned();
        match claims.iter_mut().find(|claim| claim.name == name) {
            Some(claim) => claim.cases.extend(cases),
            None => claims.push(Claim { cases, path: file.path.clone(), name }),
        }
    }
    Ok(claims)
}

/// The cases that a line names; `None` if it names none where it says that it does.
fn cases(said: &str) -> Option<Vec<Case>> {
    let mut found = Vec::new();
    for named in said.split("Covers ").skip(1) {
        let word = |kind: Kind| {
            kind.claimed_as().into_iter().find_map(|word| Some((kind, named.strip_prefix(word)?)))
        };
        let (kind, rest) = Kind::ALL.into_iter().find_map(word)?;
        let numbers = rest.split('.').next()?.replace(" and ", ", ");
        for number in numbers.split(',') {
            found.push(Case { kind, number: number.trim().parse().ok()? });
        }
    }
    Some(found)
}

/// The name of the function that begins on a line.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_head = before
        .split_whitespace()
        .all(|word| matches!(word, "pub" | "async" | "const" | "pub(crate)" | "pub(super)"));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_head.then(|| after.split_at(end).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn numbers(claim: &Claim) -> Vec<String> {
        claim.cases.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_test_may_name_cases_in_one_line_or_in_several() {
        let text = "
            /// Covers behaviours 12, 13 and 14.
            /// Covers field fault 5. Covers field fault 6.
            ///
            /// Why.
            #[tokio::test]
            async fn it_holds() {}

            /// Covers behaviour 7.
            pub async fn rule<F: StoreFactory>(world: &World<F>) {}
        ";
        let claims = of(&file("crates/worker/tests/it/leases.rs", text)).unwrap();
        let [first, second] = claims.as_slice() else { panic!("{claims:?}") };
        assert_eq!(first.name, "it_holds");
        assert_eq!(
            numbers(first),
            ["behaviour 12", "behaviour 13", "behaviour 14", "fault 5", "fault 6"]
        );
        assert_eq!((second.name.as_str(), numbers(second)), ("rule", vec!["behaviour 7".into()]));
    }

    #[test]
    fn a_test_is_known_by_package_and_module() {
        let claim = |path: &str| Claim { cases: vec![], path: path.to_owned(), name: "f".into() };
        for (path, package, module) in [
            ("crates/worker/tests/it/leases.rs", Some("surefoot-worker"), "leases"),
            ("crates/kernel-core/src/explain/tests/mod.rs", Some("surefoot-kernel-core"), "tests"),
            ("crates/surefoot/src/lib.rs", Some("surefoot"), "src"),
            ("examples/inventory/tests/it/mail.rs", Some("surefoot-inventory"), "mail"),
            ("xtask/src/docs/page.rs", Some("xtask"), "page"),
            ("crates/testkit/src/suite/waits.rs", None, "waits"),
        ] {
            let claim = claim(path);
            assert_eq!((claim.package().as_deref(), claim.module()), (package, module), "{path}");
        }
    }

    #[test]
    fn a_line_that_names_nothing_and_one_over_no_test_are_refused() {
        for (text, problem) in [
            ("/// Covers behaviour twelve.\nfn f() {}", "a.rs:1: names no case"),
            ("/// Covers lots of ground.\nfn f() {}", "a.rs:1: names no case"),
            ("/// Covers behaviour 12.\nstruct S;", "a.rs:1: stands over no test"),
        ] {
            let failure = of(&file("a.rs", text)).unwrap_err().to_string();
            assert!(failure.starts_with(problem), "{failure}");
        }
    }
}

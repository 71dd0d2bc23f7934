//! Who may attest a commit: a receipt says that facts are durable, and only a store knows that.

use proc_macro2::{TokenStream, TokenTree};

use super::{Finding, tokens};
use crate::failure::Failure;
use crate::workspace::{File, Workspace};

/// Folders whose code may call `Receipt::attest`. The core defines it; its reference model plays a store, and its
/// tests call it.
const STORES: &[&str] = &["crates/store-", "crates/testkit/", "crates/kernel-core/src/model/"];
const CORE: &str = "crates/kernel-core/";

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for file in workspace.files()?.iter().filter(|file| tokens::is_rust(file)) {
        findings.extend(judge(file)?);
    }
    Ok(findings)
}

fn judge(file: &File) -> Result<Vec<Finding>, Failure> {
    let core = file.path.starts_with(CORE);
    if STORES.iter().any(|folder| file.path.starts_with(folder))
        || (core && tokens::is_test_file(&file.path))
    {
        return Ok(Vec::new());
    }
    let lines = mentions(tokens::of(file)?, core);
    Ok(lines
        .into_iter()
        .map(|line| {
            let place = format!("{}:{line}", file.path);
            Finding::new(place, "attests a commit; only a store may")
        })
        .collect())
}

/// The lines with a path that ends in `::attest`, called or not.
fn mentions(stream: TokenStream, leave_out_tests: bool) -> Vec<usize> {
    let kept: Vec<TokenTree> =
        if leave_out_tests { tokens::without_tests(stream) } else { stream.into_iter().collect() };
    let mut lines = Vec::new();
    for token in &kept {
        if let TokenTree::Group(group) = token {
            lines.extend(mentions(group.stream(), leave_out_tests));
        }
    }
    for path in kept.windows(3) {
        let colons = tokens::is_punct(&path[0], ':') && tokens::is_punct(&path[1], ':');
        if colons && tokens::is_ident(&path[2], "attest") {
            lines.push(path[2].span().start().line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "fn commit() {\n let receipt = Receipt::attest(run, 1, 2);\n}";

    fn check(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        judge(&file).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_store_may_and_nobody_else() {
        assert!(check("crates/store-sqlite/src/commit.rs", CALL).is_empty());
        assert!(check("crates/testkit/src/memory.rs", CALL).is_empty());
        let found = ["crates/worker/src/driver.rs:2: attests a commit; only a store may"];
        assert_eq!(check("crates/worker/src/driver.rs", CALL), found);
        assert_eq!(check("crates/worker/tests/driver.rs", CALL).len(), 1);
        assert_eq!(check("crates/kernel-core/src/decide.rs", CALL).len(), 1);
    }

    #[test]
    fn it_is_found_under_another_name_and_inside_of_macros() {
        assert_eq!(
            check("crates/worker/src/a.rs", "use core::Receipt as R; fn a() { b(R::attest) }")
                .len(),
            1
        );
        assert_eq!(check("crates/worker/src/a.rs", "m! { Receipt :: attest (x) }").len(), 1);
    }

    #[test]
    fn its_definition_its_mention_in_text_and_the_tests_of_the_core_are_fine() {
        let definition = "impl Receipt {\n/// `Receipt::attest(..)`.\npub fn attest() {} }";
        assert!(check("crates/kernel-core/src/receipt.rs", definition).is_empty());
        let tested = format!("#[cfg(test)] mod tests {{ {CALL} }}");
        assert!(check("crates/kernel-core/src/receipt.rs", &tested).is_empty());
        assert!(check("crates/kernel-core/tests/sealed.rs", CALL).is_empty());
        assert!(check("crates/worker/src/a.rs", "// Receipt::attest(x)\n").is_empty());
    }
}

//! Error codes and their documentation: a place for each code, a code for each place, and each place complete.

use proc_macro2::{TokenStream, TokenTree};

use super::{Finding, tokens};
use crate::failure::Failure;
use crate::workspace::{File, Workspace};

const CODES: &str = "crates/kernel-core/src/code.rs";
const DOCS: &str = "docs/errors.md";

/// What every place answers, each as a paragraph that begins so.
const PARTS: &[&str] = &["**Meaning.** ", "**Check first.** ", "**Safe to do.** "];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let file = File { path: CODES.to_owned(), text: workspace.read(CODES)? };
    Ok(judge(&codes(&file)?, &workspace.read(DOCS)?))
}

/// The names in the invocation of the macro `codes!`.
fn codes(file: &File) -> Result<Vec<String>, Failure> {
    let kept: Vec<TokenTree> = tokens::of(file)?.into_iter().collect();
    let listed = kept.windows(3).find_map(|part| match part {
        [name, mark, TokenTree::Group(list)]
            if tokens::is_ident(name, "codes") && tokens::is_punct(mark, '!') =>
        {
            Some(names(list.stream()))
        }
        _ => None,
    });
    match listed {
        Some(names) if !names.is_empty() => Ok(names),
        _ => Err(Failure::new(format!("{} lists no error codes in `codes!`", file.path))),
    }
}

fn names(list: TokenStream) -> Vec<String> {
    let list: Vec<TokenTree> = list.into_iter().collect();
    list.windows(2)
        .filter_map(|pair| match pair {
            [TokenTree::Ident(name), colon] if tokens::is_punct(colon, ':') => {
                Some(name.to_string())
            }
            _ => None,
        })
        .collect()
}

fn judge(codes: &[String], docs: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut described: Vec<&str> = Vec::new();
    for section in docs.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        let name = heading.trim().trim_matches('`');
        if !codes.iter().any(|code| code == name) {
            findings.push(Finding::new(
                DOCS,
                format!("has a heading `{name}`, which is no code of {CODES}"),
            ));
        }
        if described.contains(&name) {
            findings.push(Finding::new(DOCS, format!("has two headings `{name}`")));
        }
        described.push(name);
        for part in PARTS.iter().filter(|part| !body.lines().any(|line| line.starts_with(**part))) {
            findings
                .push(Finding::new(DOCS, format!("`{name}` lacks a paragraph `{}`", part.trim())));
        }
    }
    for code in codes.iter().filter(|code| !described.contains(&code.as_str())) {
        findings.push(Finding::new(DOCS, format!("has no heading for the code `{code}`")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "**Meaning.** A.\n\n**Check first.** B.\n\n**Safe to do.** C.\n";

    fn check(docs: &str) -> Vec<String> {
        let codes = ["ONE".to_owned(), "TWO".to_owned()];
        judge(&codes, docs).iter().map(|finding| finding.problem.clone()).collect()
    }

    #[test]
    fn the_codes_are_those_of_the_macro() {
        let text = "//! Docs.\nmacro_rules! codes { ($($n:ident: $d:literal),*) => {} }\n\
                    codes! {\n ONE: \"First: it is.\",\n TWO: \"Second.\",\n}\n";
        let file = |text: &str| File { path: CODES.to_owned(), text: text.to_owned() };
        assert_eq!(codes(&file(text)).unwrap(), ["ONE", "TWO"]);
        assert!(codes(&file("codes! {}")).is_err());
    }

    #[test]
    fn docs_and_codes_that_agree_are_fine() {
        assert!(check(&format!("# Errors\n\n## `ONE`\n\n{WHOLE}\n## TWO\n\n{WHOLE}")).is_empty());
    }

    #[test]
    fn a_code_without_docs_and_docs_without_a_code_are_found() {
        assert_eq!(
            check(&format!("# Errors\n\n## ONE\n\n{WHOLE}\n## THREE\n\n{WHOLE}")),
            [
                "has a heading `THREE`, which is no code of crates/kernel-core/src/code.rs",
                "has no heading for the code `TWO`"
            ]
        );
        assert_eq!(
            check(&format!("\n## ONE\n{WHOLE}\n## TWO\n{WHOLE}\n## ONE\n{WHOLE}")),
            ["has two headings `ONE`"]
        );
    }

    #[test]
    fn a_place_that_does_not_say_what_to_do_is_found() {
        let short = "**Meaning.** A.\n\n**Check first.** B.\n";
        assert_eq!(
            check(&format!("\n## ONE\n{WHOLE}\n## TWO\n{short}")),
            ["`TWO` lacks a paragraph `**Safe to do.**`"]
        );
    }
}

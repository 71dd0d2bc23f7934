//! Rust source as tokens: text and comments cannot be mistaken for code, and code inside of macros is seen too.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::failure::Failure;
use crate::workspace::File;

/// The tokens of a source file.
pub(super) fn of(file: &File) -> Result<TokenStream, Failure> {
    file.text.parse().map_err(|error| {
        Failure::new(format!("{} cannot be read as Rust source: {error}", file.path))
    })
}

/// Whether a file holds nothing but tests or benchmarks, by where it is.
pub(super) fn is_test_file(path: &str) -> bool {
    let folders = ["tests", "benches"];
    path.split('/').any(|part| folders.contains(&part)) || path.ends_with("/tests.rs")
}

/// Whether a file is Rust source.
pub(super) fn is_rust(file: &File) -> bool {
    file.path.ends_with(".rs")
}

/// The tokens of an item list without the items that are compiled for tests only (`#[cfg(test)]`, `#[test]` and
/// attributes that end in `test`, such as `#[tokio::test]`).
pub(super) fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let hash = is_punct(&token, '#');
        match tokens.peek() {
            Some(TokenTree::Group(attribute)) if hash && marks_test(attribute) => {
                // Up to the end of the item: its body, or a semicolon.
                for token in tokens.by_ref() {
                    let body = matches!(&token, TokenTree::Group(group) if is_block(group));
                    if body || is_punct(&token, ';') {
                        break;
                    }
                }
            }
            _ => kept.push(token),
        }
    }
    kept
}

pub(super) fn is_block(group: &Group) -> bool {
    group.delimiter() == Delimiter::Brace
}

pub(super) fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

pub(super) fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn marks_test(attribute: &Group) -> bool {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    match tokens.as_slice() {
        [cfg, TokenTree::Group(condition)] if is_ident(cfg, "cfg") => {
            let condition: Vec<TokenTree> = condition.stream().into_iter().collect();
            matches!(condition.as_slice(), [only] if is_ident(only, "test"))
        }
        [.., TokenTree::Group(_)] => {
            tokens.len() > 1 && is_ident(&tokens[tokens.len() - 2], "test")
        }
        [.., last] => is_ident(last, "test"),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let left = without_tests(source.parse().unwrap());
        let left: TokenStream = left.into_iter().collect();
        let expected: TokenStream = expected.parse().unwrap();
        assert_eq!(left.to_string(), expected.to_string());
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_left_out() {
        check("fn a() {} #[cfg(test)] mod tests { fn b() {} } fn c() {}", "fn a() {} fn c() {}");
        check("#[cfg(test)] mod tests; fn c() {}", "fn c() {}");
        check("#[test] fn b() {} fn c() {}", "fn c() {}");
        check("#[tokio::test(start_paused = true)] async fn b() -> X { } fn c() {}", "fn c() {}");
    }

    #[test]
    fn what_is_also_compiled_otherwise_stays() {
        for source in [
            "#[cfg(not(test))] fn a() {}",
            "#[cfg(any(test, feature = \"x\"))] fn a() {}",
            "#[derive(Debug)] struct A;",
        ] {
            check(source, source);
        }
    }

    #[test]
    fn test_files_are_known_by_their_place() {
        assert!(is_test_file("crates/worker/tests/crash.rs"));
        assert!(is_test_file("crates/worker/src/driver/tests.rs"));
        assert!(!is_test_file("crates/testkit/src/suite.rs"));
        assert!(!is_test_file("crates/worker/src/contests.rs"));
    }
}

//! Sizes: a file a reader can hold, a function that fits a screen. Tests are read case by case and are free.

use proc_macro2::{TokenStream, TokenTree};

use super::allowance::{self, Measured};
use super::{Finding, tokens};
use crate::failure::Failure;
use crate::workspace::{File, Workspace};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let allowed = allowance::parse(&workspace.read(allowance::PLACE)?)?;
    let mut over = Vec::new();
    for file in workspace.files()?.iter().filter(|file| tokens::is_rust(file)) {
        over.extend(over_limit(file)?);
    }
    Ok(allowance::judge(&allowed, &over))
}

/// The file and the functions of it that are over their limits.
fn over_limit(file: &File) -> Result<Vec<Measured>, Failure> {
    if tokens::is_test_file(&file.path) {
        return Ok(Vec::new());
    }
    let mut over = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        over.push(Measured { place: file.path.clone(), lines, lines_max: FILE_LINES_MAX });
    }
    for (name, lines) in functions(tokens::of(file)?) {
        if lines > FUNCTION_LINES_MAX {
            let place = format!("{}::{name}", file.path);
            over.push(Measured { place, lines, lines_max: FUNCTION_LINES_MAX });
        }
    }
    Ok(over)
}

/// Every function with a body and its length, from `fn` to the closing brace. One inside another counts for both.
fn functions(stream: TokenStream) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let kept = tokens::without_tests(stream);
    for (at, token) in kept.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            found.extend(functions(group.stream()));
        }
        if !tokens::is_ident(token, "fn") {
            continue;
        }
        // `fn(u8) -> u8` is a type, and in the body of a macro the name may be `$name`.
        let rest = &kept[at + 1..];
        let name = match rest {
            [TokenTree::Ident(name), ..] => name.to_string(),
            [dollar, TokenTree::Ident(name), ..] if tokens::is_punct(dollar, '$') => {
                format!("${name}")
            }
            _ => continue,
        };
        if let Some(last) = end_line(rest) {
            found.push((name, last + 1 - token.span().start().line));
        }
    }
    found
}

/// The line on which the body that follows a function's name ends; none for a signature alone.
fn end_line(rest: &[TokenTree]) -> Option<usize> {
    for (at, token) in rest.iter().enumerate() {
        if tokens::is_punct(token, ';') {
            return None;
        }
        if let TokenTree::Group(group) = token
            && tokens::is_block(group)
            && !is_argument(at.checked_sub(1).and_then(|at| rest.get(at)), rest.get(at + 1))
        {
            return Some(group.span_close().end().line);
        }
    }
    None
}

/// Whether braces are a value between angle brackets, as in `Table<{ N }>`, by what stands around them.
fn is_argument(before: Option<&TokenTree>, after: Option<&TokenTree>) -> bool {
    let is = |token: Option<&TokenTree>, marks: [char; 2]| {
        token.is_some_and(|token| marks.iter().any(|mark| tokens::is_punct(token, *mark)))
    };
    is(before, ['<', ',']) && is(after, [',', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> Vec<(String, usize)> {
        functions(source.parse().unwrap())
    }

    fn one(name: &str, lines: usize) -> Vec<(String, usize)> {
        vec![(name.to_owned(), lines)]
    }

    fn over(path: &str, text: String) -> Vec<Measured> {
        over_limit(&File { path: path.to_owned(), text }).unwrap()
    }

    #[test]
    fn a_function_is_measured_from_its_name_to_its_end() {
        assert_eq!(check("/// Docs.\n#[inline]\nfn a(\n  b: u8,\n) {\n  c()\n}\n"), one("a", 5));
        assert_eq!(check("impl A { fn a() {\n\n}\n}"), one("a", 3));
        assert_eq!(check("fn a() -> [u8; { 1 }] where T: U<{ 2 }> {\n}"), one("a", 2));
        assert_eq!(check("fn a<T>() where T: U,\n{\n}\nfn b() {}")[0], one("a", 3)[0]);
        assert_eq!(check("m! { fn a() {\n}, fn b() {\n} }")[0], one("a", 2)[0]);
        assert_eq!(check("macro_rules! m { ($n:ident) => { fn $n() {\n\n\n} } }"), one("$n", 4));
    }

    #[test]
    fn signatures_types_comments_and_tests_are_no_functions() {
        assert!(check("trait A { fn a(&self) -> u8; }").is_empty());
        assert!(
            check("type A = fn(u8) -> u8; // fn b() {}\nconst T: &str = \"fn c() {}\";").is_empty()
        );
        assert!(check("#[cfg(test)] mod tests { fn a() {} }").is_empty());
        assert!(check("mod x { #[test] fn a() { } }").is_empty());
    }

    #[test]
    fn a_function_at_the_limit_is_fine_and_one_line_more_is_over() {
        let body = |lines: usize| format!("fn long() {{{}}}\n", "\n".repeat(lines - 1));
        assert!(over("src/a.rs", body(FUNCTION_LINES_MAX)).is_empty());
        let found = over("src/a.rs", body(FUNCTION_LINES_MAX + 1));
        let lines = FUNCTION_LINES_MAX + 1;
        let place = "src/a.rs::long".to_owned();
        assert_eq!(found, [Measured { place, lines, lines_max: FUNCTION_LINES_MAX }]);
    }

    #[test]
    fn a_file_at_the_limit_is_fine_and_one_line_more_is_over() {
        assert!(over("src/a.rs", "\n".repeat(FILE_LINES_MAX)).is_empty());
        let found = over("src/a.rs", "\n".repeat(FILE_LINES_MAX + 1));
        let lines = FILE_LINES_MAX + 1;
        let place = "src/a.rs".to_owned();
        assert_eq!(found, [Measured { place, lines, lines_max: FILE_LINES_MAX }]);
        assert!(over("tests/a.rs", "\n".repeat(FILE_LINES_MAX + 1)).is_empty());
    }
}

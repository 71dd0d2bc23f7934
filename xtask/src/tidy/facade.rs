//! The facade gathers what users need and defines nothing, so that no behaviour hides in it.

use proc_macro2::{TokenStream, TokenTree};

use super::{Finding, tokens};
use crate::failure::Failure;
use crate::workspace::{File, Workspace};

const FACADE: &str = "crates/surefoot/src/";

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let files = workspace.files()?;
    let mut sources = files.iter().filter(|file| file.path.starts_with(FACADE)).peekable();
    if sources.peek().is_none() {
        return Err(Failure::new(format!("there is no source under {FACADE}")));
    }
    let mut findings = Vec::new();
    for file in sources {
        for line in definitions(tokens::of(file)?) {
            findings.push(finding(file, line));
        }
    }
    Ok(findings)
}

fn finding(file: &File, line: usize) -> Finding {
    let place = format!("{}:{line}", file.path);
    Finding::new(place, "the facade holds `pub use` and `pub mod` only; define this elsewhere")
}

/// The lines where an item begins that is neither a re-export nor a public module of such.
fn definitions(stream: TokenStream) -> Vec<usize> {
    let mut found = Vec::new();
    let kept: Vec<TokenTree> = stream.into_iter().collect();
    let mut rest = kept.as_slice();
    while let Some(first) = rest.first() {
        let taken = match rest {
            [hash, TokenTree::Group(_), ..] if tokens::is_punct(hash, '#') => 2,
            [hash, bang, TokenTree::Group(_), ..]
                if tokens::is_punct(hash, '#') && tokens::is_punct(bang, '!') =>
            {
                3
            }
            [public, import, ..]
                if tokens::is_ident(public, "pub") && tokens::is_ident(import, "use") =>
            {
                rest.iter()
                    .position(|token| tokens::is_punct(token, ';'))
                    .map_or(rest.len(), |at| at + 1)
            }
            [public, module, _, TokenTree::Group(inside), ..]
                if tokens::is_ident(public, "pub") && tokens::is_ident(module, "mod") =>
            {
                found.extend(definitions(inside.stream()));
                4
            }
            [public, module, _, end, ..]
                if tokens::is_ident(public, "pub")
                    && tokens::is_ident(module, "mod")
                    && tokens::is_punct(end, ';') =>
            {
                4
            }
            _ => {
                found.push(first.span().start().line);
                let ends = |token: &TokenTree| {
                    tokens::is_punct(token, ';')
                        || matches!(token, TokenTree::Group(group) if tokens::is_block(group))
                };
                rest.iter().position(ends).map_or(rest.len(), |at| at + 1)
            }
        };
        rest = &rest[taken..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> Vec<usize> {
        definitions(source.parse().unwrap())
    }

    #[test]
    fn exports_modules_of_exports_and_docs_are_fine() {
        let source = "//! Docs.\n#![warn(missing_docs)]\n/// Docs.\n#[doc(inline)]\n\
                      pub use a::{B, c::D};\npub mod prelude {\n //! Docs.\n pub use a::B;\n}\npub mod x;\n";
        assert!(check(source).is_empty());
    }

    #[test]
    fn a_definition_is_found_on_its_line_wherever_it_is() {
        assert_eq!(check("pub use a::B;\npub fn c() {}\n"), [2]);
        assert_eq!(
            check("pub mod prelude {\n pub use a::B;\n pub struct C;\n pub use a::D;\n}\n"),
            [3]
        );
        for source in [
            "pub type A = B;",
            "use a::B;",
            "mod x;",
            "impl A { }",
            "macro_rules! m { () => {} }",
            "pub(crate) use a::B;",
        ] {
            assert_eq!(check(source), [1], "{source}");
        }
    }
}

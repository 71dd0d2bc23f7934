//! Words and paths that tell of one machine or of how the project is made, instead of the project.

use super::Finding;
use crate::failure::Failure;
use crate::workspace::{File, Workspace};

/// Folders at the root of somebody's machine. They are put together here, so that this file has none.
const FOLDERS: &[&str] = &["work", "farm", "root", "home"];

/// Parts of host names of package registries: packages are named, never where they are fetched from.
const REGISTRIES: &[&str] = &["npm", "pypi", "pythonhosted", "crates", "debian"];

/// Compared without regard to case, as whole words; in two halves for the same reason.
const WORDS: &[(&str, &str)] = &[
    ("this ", "session"),
    ("the ", "ceo"),
    ("sub", "agent"),
    ("helper ", "session"),
    ("cla", "ude"),
    ("ll", "m"),
    ("as an ", "ai"),
];

pub(super) fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    Ok(workspace.files()?.iter().flat_map(judge).collect())
}

fn judge(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let problems = [folder(line), registry(line), word(line)];
        for problem in problems.into_iter().flatten() {
            findings.push(Finding::new(format!("{}:{}", file.path, at + 1), problem));
        }
    }
    findings
}

fn folder(line: &str) -> Option<String> {
    FOLDERS.iter().find_map(|name| {
        let path = format!("/{name}/");
        let absolute = |at: usize| !line[..at].ends_with(in_path);
        line.match_indices(&path)
            .any(|(at, _)| absolute(at))
            .then(|| format!("names the folder {path} of one machine"))
    })
}

/// Whether a slash after this goes on a path, instead of beginning one.
fn in_path(before: char) -> bool {
    before.is_alphanumeric() || matches!(before, '.' | '-' | '_' | '*' | '}' | ')')
}

fn registry(line: &str) -> Option<String> {
    line.match_indices("://").find_map(|(at, mark)| {
        if !line[..at].ends_with("http") && !line[..at].ends_with("https") {
            return None;
        }
        let host = line[at + mark.len()..]
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
        let host = host.take(1).next().unwrap_or_default();
        REGISTRIES
            .iter()
            .any(|name| host.contains(name))
            .then(|| format!("names the registry host {host}; name the package instead"))
    })
}

fn word(line: &str) -> Option<String> {
    let line = line.to_lowercase();
    WORDS.iter().map(|(first, second)| format!("{first}{second}")).find_map(|word| {
        let whole = |at: usize| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        };
        line.match_indices(&word)
            .any(|(at, _)| whole(at))
            .then(|| format!("says `{word}`, which is not about the project"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Vec<String> {
        let file = File { path: "a.md".to_owned(), text: format!("fine\n{line}\n") };
        judge(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_of_one_machine_is_found_and_a_folder_of_that_name_elsewhere_is_not() {
        for name in FOLDERS {
            let path = format!("see `/{name}/x`");
            assert_eq!(check(&path), [format!("a.md:2: names the folder /{name}/ of one machine")]);
            assert!(check(&format!("see target/{name}/x, ./{name}/x")).is_empty());
        }
    }

    #[test]
    fn a_registry_host_is_found_and_another_host_is_not() {
        for host in ["registry.npmjs.org", "pypi.org", "static.crates.io", "deb.debian.org"] {
            let found = check(&format!("fetch https://{host}/x"));
            assert_eq!(found.len(), 1, "{host}");
        }
        assert!(check("https://github.com/rust-lang/crates.io-index").is_empty());
        assert!(check("the crates of crates.io").is_empty());
    }

    #[test]
    fn a_word_is_found_in_any_case_and_only_as_a_word() {
        for (first, second) in WORDS {
            let word = format!("{first}{second}").to_uppercase();
            assert_eq!(check(&format!("so {word}.")).len(), 1, "{word}");
        }
        assert!(check(&format!("{}{}vm, worker session", "l", "l")).is_empty());
    }
}

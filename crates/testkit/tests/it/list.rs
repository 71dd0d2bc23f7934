//! No rule is left out, and each says what it is for.

use std::collections::BTreeSet;
use std::path::Path;

fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `family rule` of each rule that is written.
fn written() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite");
    let mut rules = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let family = file.trim_end_matches(".rs").to_owned();
        if ["mod", "world", "invariants", "list", "tasks"].contains(&family.as_str()) {
            continue;
        }
        let text = source(&file);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name = rest.split('<').next().unwrap();
                assert!(lines[number - 1].starts_with("///"), "{family}::{name} says nothing");
                rules.insert(format!("{family} {name}"));
            }
        }
    }
    rules
}

/// `family rule` of each rule that the macro lists.
fn listed() -> BTreeSet<String> {
    let text = source("list.rs");
    let list = text.split("@families $factory;").nth(1).unwrap();
    let soak = text.split("@soak $factory;").nth(1).unwrap().split('}').next().unwrap();
    let soak = soak.split_whitespace().collect::<Vec<_>>();
    let mut family = String::new();
    let mut rules: BTreeSet<String> = soak.chunks(2).map(|rule| rule.join(" ")).collect();
    let mut words = list.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match (word, words.peek()) {
            ("}", Some(&"}")) => return rules,
            ("{" | "}", _) => {}
            (name, Some(&"{")) => family = name.to_owned(),
            (name, _) => {
                rules.insert(format!("{family} {name}"));
            }
        }
    }
    rules
}

/// The rules of tasks have a macro of their own, since not every store keeps tasks.
#[test]
fn the_macro_of_tasks_lists_every_rule() {
    let text = source("tasks.rs");
    let (list, rules) = text.split_once("};\n            }\n").unwrap_or((&text, &text));
    let list = list.split("@rules $factory;").nth(1).unwrap().split('}').next().unwrap();
    let listed: BTreeSet<&str> = list.split_whitespace().collect();
    let named = rules.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    let written: BTreeSet<&str> = named.filter_map(|rest| rest.split('<').next()).collect();
    assert_eq!(written, listed);
}

#[test]
fn the_macro_lists_every_rule() {
    let (written, listed) = (written(), listed());
    assert!(written.len() > 100, "the rules were not found");
    assert_eq!(written, listed);
}

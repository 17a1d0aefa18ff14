//! Files and functions are small enough to read in one go.

use crate::files::{self, File};

const FILE_MAX: usize = 500;
const FUNCTION_MAX: usize = 70;
/// The pages of decisions in force, and the lines of each.
const DECISIONS_MAX: usize = 35;
const DECISION_MAX: usize = 40;

#[test]
fn files_are_short() {
    let long: Vec<_> = files::with_ending(&[".rs", ".py"])
        .into_iter()
        .filter(|file| file.text.lines().count() > FILE_MAX)
        .map(|file| format!("{}: {}", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "longer than {FILE_MAX} lines: {long:#?}");
}

#[test]
fn functions_are_short() {
    let long: Vec<_> = files::with_ending(&[".rs"])
        .iter()
        .flat_map(functions)
        .filter(|(_, lines)| *lines > FUNCTION_MAX)
        .collect();
    assert!(
        long.is_empty(),
        "longer than {FUNCTION_MAX} lines: {long:#?}"
    );
}

#[test]
fn decisions_are_few_and_short() {
    let pages = files::with_ending(&[".md"]).into_iter();
    let pages = pages.filter(|it| it.path.starts_with("docs/decisions/0"));
    let pages: Vec<_> = pages.collect();
    assert!(pages.len() <= DECISIONS_MAX, "{} pages", pages.len());
    let long = pages
        .iter()
        .filter(|it| it.text.lines().count() > DECISION_MAX);
    let long: Vec<_> = long.map(|it| &it.path).collect();
    assert!(
        long.is_empty(),
        "longer than {DECISION_MAX} lines: {long:#?}"
    );
}

/// Returns the functions of a file with their lengths. It relies on rustfmt's indentation.
fn functions(file: &File) -> Vec<(String, usize)> {
    let lines: Vec<_> = file.text.lines().collect();
    let opens = |line: &&str| {
        let code = line.trim_start();
        let words = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "async fn ",
            "pub async fn ",
            "const fn ",
            "pub const fn ",
        ];
        words.iter().any(|word| code.starts_with(word))
            || code.starts_with("pub(crate) async fn ")
            || code.starts_with("pub(crate) const fn ")
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| opens(line)) {
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let end = lines[at..].iter().position(|line| **line == close);
        if let Some(length) = end {
            found.push((format!("{}:{}", file.path, at + 1), length + 1));
        }
    }
    found
}

#[test]
fn the_rule_sees_functions() {
    let count: usize = files::with_ending(&[".rs"])
        .iter()
        .map(|file| functions(file).len())
        .sum();
    assert!(
        count > 500,
        "only {count} functions were found: the rule is blind"
    );
}

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
    let files = files::with_ending(&[".rs"]);
    let all: Vec<_> = files.iter().flat_map(functions).collect();
    assert!(
        all.len() > 500,
        "{} functions: the rule is blind",
        all.len()
    );
    let long: Vec<_> = all.iter().filter(|it| it.1 > FUNCTION_MAX).collect();
    let what = format!("longer than {FUNCTION_MAX} lines: {long:#?}");
    assert!(long.is_empty(), "{what}");
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
        let words = line.trim_start().split(' ');
        let mut words =
            words.skip_while(|it| it.starts_with("pub") || ["async", "const"].contains(it));
        words.next() == Some("fn")
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

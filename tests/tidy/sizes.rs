//! Files are small enough to read in one go. Clippy measures the functions.

use crate::files;

const FILE_MAX: usize = 500;
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

//! docs/internals/conformance.md names each rule of docs/protocol.md, and each test of the conformance kit.

use std::{collections::BTreeSet, fs};

use conformance::{RULES, Rule, UNARY_RULES};
use tests::binaries;

/// The heading of the columns with tests.
const HEADING: &str = "rule of the kit";

fn page(name: &str) -> String {
    let page = fs::read_to_string(binaries::checkout().join("docs").join(name));
    page.expect("the document is there")
}

/// Returns the rows of all tables of docs/internals/conformance.md, as cells.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter_map(|line| {
        let cells = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(cells.split('|').map(str::trim).collect())
    });
    let rows: Vec<Vec<_>> = rows.collect();
    assert!(rows.len() > 50, "the search is broken: {rows:?}");
    rows
}

/// Returns the rules for sessions and those for unary decisions.
fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(UNARY_RULES)
}

#[test]
fn each_must_is_tested_or_has_a_reason() {
    let (protocol, conformance) = (page("protocol.md"), page("internals/conformance.md"));
    let rules = protocol
        .lines()
        .filter(|line| line.contains("MUST") || line.contains("SHOULD"))
        // The definition of the key words, and the place of the tests.
        .filter(|line| !line.starts_with("The key words") && !line.starts_with("Each MUST"))
        .map(|line| line.trim_start_matches("- "));
    let rules: Vec<_> = rules.collect();
    let rows = rows(&conformance);
    let musts = rows
        .iter()
        .filter_map(|cells| Some((cells[0].strip_suffix(" …")?, &cells[1..])));
    let musts: Vec<_> = musts.collect();
    for rule in &rules {
        let named = musts.iter().filter(|(start, _)| rule.starts_with(start));
        assert_eq!(
            named.count(),
            1,
            "docs/internals/conformance.md lists once: {rule}"
        );
    }
    for (start, tests) in musts {
        let is_rule = rules.iter().any(|rule| rule.starts_with(start));
        assert!(is_rule, "docs/protocol.md has no rule: {start}");
        let is_reasoned = tests.iter().any(|cell| !cell.is_empty());
        assert!(is_reasoned, "neither a test nor a reason: {start}");
    }
}

#[test]
fn each_test_of_the_kit_is_listed_and_no_other() {
    let conformance = page("internals/conformance.md");
    let rows = rows(&conformance);
    // Tables of rules list the tests in their second column; the table of other rules has one column.
    let tests = rows.iter().filter_map(|cells| match &cells[..] {
        [_, tests, _] => Some(*tests),
        [test] => Some(*test),
        _ => None,
    });
    let tests = tests.flat_map(|cell| cell.split("<br>"));
    let tests = tests.filter(|test| !test.is_empty() && !test.starts_with('-'));
    let tests: BTreeSet<_> = tests.filter(|test| *test != HEADING).collect();
    let names: BTreeSet<_> = rules().map(|rule| rule.words).collect();
    assert_eq!(
        names.len(),
        rules().count(),
        "two rules have the same words"
    );
    assert_eq!(tests, names);
}

#[test]
fn each_rule_belongs_to_a_heading_of_the_protocol() {
    let protocol = page("protocol.md");
    let headings = protocol.lines().filter(|line| line.starts_with('#'));
    let anchors: BTreeSet<_> = headings
        .map(|line| line.trim_start_matches(['#', ' ']).to_lowercase())
        .map(|heading| heading.replace(' ', "-"))
        .collect();
    for rule in rules() {
        assert!(anchors.contains(rule.section), "{rule:?}");
    }
}

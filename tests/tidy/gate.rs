//! The table of CONTRIBUTING.md names each check of the gate.

use std::collections::BTreeSet;

use crate::files;

/// The name of a check, and when it runs, in the words of the table.
type Check = (String, String);

#[test]
fn each_check_of_the_gate_stands_in_the_table() {
    let (script, table) = (files::read(".ci/run"), files::read("CONTRIBUTING.md"));
    let checks = checks_of(&script);
    assert!(checks.len() > 10, "the search finds {checks:?} only");
    assert_eq!(
        rows_of(&table),
        checks,
        "the table of CONTRIBUTING.md, and what .ci/run does"
    );
}

/// Returns the checks of the script, in order: lines such as `check both "name" when PATHS command`.
fn checks_of(script: &str) -> Vec<Check> {
    let checks = script.lines().filter_map(|line| {
        let (depth, rest) = line.strip_prefix("check ")?.split_once(" \"")?;
        let (name, rest) = rest.split_once('"')?;
        let depth = match depth {
            "gate" => "gate and full",
            "full" => "full",
            "both" => "gate, deeper in full",
            other => panic!("{name} runs at the depth {other}, which is none"),
        };
        let by_path = if rest.starts_with(" when ") {
            ", by path"
        } else {
            ""
        };
        Some((name.to_owned(), format!("{depth}{by_path}")))
    });
    checks.collect()
}

/// Returns the rows of the table in order, without the header.
fn rows_of(page: &str) -> Vec<Check> {
    let table = page.split_once("<!-- checks -->");
    let table = table.and_then(|(_, rest)| rest.split_once("<!-- /checks -->"));
    let (table, _) = table.expect("the page marks its table of checks");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, depth, proves] = cells[..] else {
            panic!("a row has three cells: {row}")
        };
        assert!(!proves.is_empty(), "{name} proves nothing");
        (name.to_owned(), depth.to_owned())
    });
    cells.collect()
}

/// `.ci/check` reads the table.
#[test]
fn each_crate_has_its_tiers_in_the_table() {
    let page = files::read("CONTRIBUTING.md");
    let table = page.split_once("<!-- tiers -->");
    let table = table.and_then(|(_, rest)| rest.split_once("<!-- /tiers -->"));
    let (table, _) = table.expect("the page marks its table of tiers");
    let known = files::read("tests/Cargo.toml");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let crates: BTreeSet<String> = rows
        .map(|row| {
            let words: Vec<_> = row.split('`').skip(1).step_by(2).collect();
            let (name, tiers) = words.split_first().expect("a row names a crate");
            assert!(!tiers.is_empty(), "{name} has no tier");
            for tier in tiers {
                let target = format!("[[test]]\nname = \"{tier}\"");
                assert!(known.contains(&target), "{name}: no tier is called {tier}");
            }
            (*name).to_owned()
        })
        .collect();
    assert_eq!(crates, files::packages().into_values().collect());
}

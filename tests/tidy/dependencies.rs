//! The allowed dependencies between packages: the table of docs/architecture.md.

use std::{collections::BTreeSet, env, process::Command};

use tests::running::output_of;

use crate::files;

/// One row: a package, the workspace packages that it may use, and packages that it must never depend on, even indirectly.
struct Row {
    package: String,
    ours: BTreeSet<String>,
    never: BTreeSet<String>,
}

fn table() -> Vec<Row> {
    let document = files::read("docs/architecture.md");
    let lines = document.lines();
    let mut lines = lines.skip_while(|line| !line.starts_with("| package | may depend on"));
    let named = |cell: &str| {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let rows = lines.by_ref().skip(2).map_while(|line| {
        let cells: Vec<_> = line.strip_prefix("| ")?.split(" | ").map(named).collect();
        let [package, ours, never] = <[_; 3]>::try_from(cells).ok()?;
        Some(Row {
            package: package.into_iter().next()?,
            ours,
            never,
        })
    });
    rows.collect()
}

fn packages() -> BTreeSet<String> {
    files::packages().into_values().collect()
}

#[test]
fn each_package_has_a_row() {
    let rows: BTreeSet<_> = table().into_iter().map(|row| row.package).collect();
    let others: Vec<_> = packages().symmetric_difference(&rows).cloned().collect();
    assert_eq!(others, ["tests"], "docs/architecture.md has rows of all");
}

#[test]
fn packages_know_only_whom_they_may() {
    let packages = packages();
    for Row { package, ours, .. } in table() {
        let direct = tree(&package, Some(1));
        let used: BTreeSet<_> = direct.intersection(&packages).cloned().collect();
        assert!(
            used.is_subset(&ours),
            "{package} uses {used:?}, and may use {ours:?}"
        );
    }
}

#[test]
fn packages_never_reach_what_they_must_not() {
    for Row { package, never, .. } in table() {
        assert!(!never.is_empty(), "{package} may reach everything");
        let all = tree(&package, None);
        let reached: Vec<_> = never.intersection(&all).collect();
        assert!(reached.is_empty(), "{package} reaches {reached:?}");
    }
}

/// Returns the names of a package's dependencies, without the package itself, each with the features that it requests.
fn tree(package: &str, depth: Option<u32>) -> BTreeSet<String> {
    let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.current_dir(files::root()).args([
        "tree",
        "--offline",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--package",
        package,
    ]);
    if let Some(depth) = depth {
        command.args(["--depth", &depth.to_string()]);
    }
    let [text, _] = output_of(&mut command);
    let names = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned);
    names
        .filter(|name| name != package && !name.is_empty())
        .collect()
}

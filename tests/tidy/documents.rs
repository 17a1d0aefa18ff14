//! Links in documents resolve, and each MUST names a rule or a test that exists.

use std::collections::BTreeSet;

use crate::files;

#[test]
fn links_between_files_lead_somewhere() {
    for file in files::with_ending(&[".md"]) {
        let folder = files::root()
            .join(&file.path)
            .parent()
            .expect("a file is in a folder")
            .to_owned();
        for target in file
            .text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || path.is_empty() || path.contains(' ');
            assert!(
                outside || folder.join(path).exists(),
                "{}: {target} is not there",
                file.path
            );
        }
    }
}

#[test]
fn each_must_of_the_protocol_names_what_verifies_it() {
    let protocol = files::read("docs/protocol.md");
    let tests = files::with_ending(&[".rs"]);
    let rules: Vec<_> = protocol
        .lines()
        .filter(|line| line.starts_with("- ") && line.contains("MUST"))
        .collect();
    assert!(
        rules.len() > 10,
        "the protocol has {} rules: the search is broken",
        rules.len()
    );
    for rule in rules {
        let begin = [" Rule: ", " Rules: ", " Test: ", " Tests: "].map(|word| rule.find(word));
        let begin = begin.into_iter().flatten().min();
        let tail = begin.map_or("", |begin| &rule[begin..]);
        let named: Vec<_> = tail.split('`').skip(1).step_by(2).collect();
        let held = !named.is_empty() && named.iter().all(|name| exists(name, &tests));
        assert!(held, "not each rule or test that it names exists: {rule}");
    }
    let names = protocol.split('`').skip(1).step_by(2);
    for name in names.filter(|name| name.contains("::") && !name.ends_with('…')) {
        assert!(exists(name, &tests), "{name} is no test");
    }
}

/// Returns whether a test has this name or, for several words, a rule of the conformance kit or a scenario of the core.
fn exists(name: &str, files: &[files::File]) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    let is_rule = name.contains(' ');
    let scenario = format!("# {name}");
    let tables = files::with_ending(&[".txt"]);
    let mut lines = tables.iter().flat_map(|file| file.text.lines());
    if is_rule && lines.any(|line| line == scenario) {
        return true;
    }
    if !is_rule {
        return files::has_function(files, name);
    }
    let quoted = format!("\"{name}\"");
    let mut kit = files
        .iter()
        .filter(|file| file.path.starts_with("conformance/"));
    kit.any(|file| file.text.contains(&quoted))
}

#[test]
fn every_metric_is_explained_to_operators_and_no_other() {
    let page = files::read("docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first_cells = rows.filter_map(|line| line.split(" | ").next());
    let explained: BTreeSet<_> = first_cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        .map(|name| name.trim_end_matches("_total").to_owned())
        .collect();
    let mut served: BTreeSet<_> = [
        "server/src/metrics.rs",
        "agent/src/metrics.rs",
        "service/src/transport/metrics.rs",
    ]
    .into_iter()
    .flat_map(registered)
    .collect();
    served.extend(collected());
    assert!(served.len() > 20, "the search finds {served:?} only");
    let differ: Vec<_> = explained.symmetric_difference(&served).collect();
    assert!(
        differ.is_empty(),
        "either only served or only explained: {differ:?}"
    );
}

/// Returns the names of metrics in collectors and in build information.
fn collected() -> Vec<String> {
    let process = files::read("service/src/process.rs");
    let sessions = files::read("server/src/gauges.rs");
    let is_name = |text: &&str| {
        let is_word = text
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        let begins = ["process_", "workqueue_", "decree_"];
        is_word
            && begins
                .iter()
                .any(|it| text.len() > it.len() && text.starts_with(it))
    };
    let texts = process.split('"').chain(sessions.split('"'));
    let collected = texts.filter(is_name);
    let builds = ["server/src/serve.rs", "agent/src/admin.rs"].map(|file| {
        let text = files::read(file);
        let call = text.split("process::register(&mut registry, \"").nth(1);
        let prefix = call.and_then(|call| call.split('"').next());
        format!("{}_build_info", prefix.expect("it registers its build"))
    });
    collected.map(str::to_owned).chain(builds).collect()
}

/// Returns the names of the metrics that a file registers: texts followed by a help text.
fn registered(file: &str) -> Vec<String> {
    let text = files::read(file);
    let registering = match text.split_once("\nmetrics! {") {
        Some((_, table)) => table.split("\n}").next(),
        None => text.split_once("fn register_").map(|(_, rest)| rest),
    };
    let registering = registering.unwrap_or_default();
    let parts: Vec<_> = registering.split('"').collect();
    let texts = parts.windows(2).skip(1).step_by(2);
    let names = texts.filter_map(|pair| {
        let [text, behind] = pair else { return None };
        let behind = behind.strip_prefix(',')?.trim_start();
        let is_name = text
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        (is_name && (behind.is_empty() || behind.starts_with("help"))).then_some(*text)
    });
    names.map(str::to_owned).collect()
}

#[test]
fn each_cited_paragraph_of_the_specification_exists() {
    let page = files::read("docs/internals/spec.md");
    let paragraphs: BTreeSet<_> = page.lines().filter_map(paragraph_of_heading).collect();
    let weaknesses = page.lines().filter_map(|line| line.strip_prefix("| "));
    let exist: BTreeSet<_> = weaknesses
        .filter_map(|row| row.split(' ').next())
        .filter(|cell| cell.starts_with('W'))
        .chain(paragraphs)
        .collect();
    let mut cited = 0;
    for file in files::with_ending(&[".rs", ".md", ".proto", ".go"]) {
        for paragraph in citations(&file.text) {
            cited += 1;
            assert!(
                exist.contains(paragraph.as_str()),
                "{}: docs/internals/spec.md has no paragraph {paragraph}",
                file.path
            );
        }
    }
    assert!(cited > 80, "{cited} citations: the search is broken");
}

/// Returns the number of the paragraph under this heading line.
fn paragraph_of_heading(line: &str) -> Option<&str> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#');
    let number = heading.trim_start().split(' ').next()?;
    let number = number.trim_end_matches('.');
    number
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(number)
}

/// Returns the paragraphs that a text cites, as in "(spec 5.3, 6.6)" or "(spec 3.2–3.6)" (only the ends of a range), and the
/// weaknesses, as in "W7".
fn citations(text: &str) -> Vec<String> {
    let of_paragraphs = text.match_indices("spec ").flat_map(|(at, word)| {
        let numbers = &text[at + word.len()..];
        let is_of_numbers = |it: char| it.is_ascii_digit() || ".,–; ".contains(it);
        let end = numbers
            .find(|it| !is_of_numbers(it))
            .unwrap_or(numbers.len());
        let starts_with_digit = numbers.starts_with(|first: char| first.is_ascii_digit());
        let numbers = if starts_with_digit {
            &numbers[..end]
        } else {
            ""
        };
        let numbers = numbers.split(|it: char| !it.is_ascii_digit() && it != '.');
        let numbers = numbers.map(|number| number.trim_matches('.').to_owned());
        numbers
            .filter(|number| !number.is_empty())
            .collect::<Vec<_>>()
    });
    let words = text.split(|it: char| !it.is_ascii_alphanumeric());
    let of_weaknesses = words.filter(|word| {
        let number = word.strip_prefix('W').unwrap_or_default();
        (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    of_paragraphs
        .chain(of_weaknesses.map(str::to_owned))
        .collect()
}

#[test]
fn folders_of_the_architecture_are_the_packages() {
    let rows = architecture_rows("## The folders");
    let written: BTreeSet<_> = rows
        .iter()
        .filter(|(_, package)| package.starts_with('`'))
        .map(|(folder, package)| (folder.trim_matches(['`', '/']), package.trim_matches('`')))
        .map(|(folder, package)| (folder.to_owned(), package.to_owned()))
        .collect();
    let packages = files::packages().into_iter().map(|(folder, name)| {
        // The root package keeps its sources, the contract, in `proto`.
        let is_root = folder.is_empty();
        (if is_root { "proto".to_owned() } else { folder }, name)
    });
    assert_eq!(written, packages.collect());
}

#[test]
fn tiers_of_the_architecture_are_the_test_binaries() {
    let manifest = files::read("tests/Cargo.toml");
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    let binaries = manifest["test"]
        .as_array()
        .expect("there are test binaries");
    let binaries: BTreeSet<_> = binaries
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let page = files::read("docs/architecture.md");
    let row = page.lines().find(|line| line.starts_with("| `tests/` |"));
    let cell = row
        .and_then(|row| row.split('|').nth(3))
        .expect("a row says what tests/ holds");
    let written: BTreeSet<_> = cell.split('`').skip(1).step_by(2).collect();
    assert_eq!(written, binaries);
}

/// Returns the first two cells of each row of the table under a heading.
pub(crate) fn architecture_rows(heading: &str) -> Vec<(String, String)> {
    let page = files::read("docs/architecture.md");
    let (_, section) = page.split_once(heading).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().to_owned());
        Some((cells.next()?, cells.next()?))
    })
    .collect()
}

/// A field of a pod that all layers read: the contract, the projection, the wire, the core, the order of deletion and its reasons.
const FIELD: &str = "deletion_cost";

#[test]
fn field_of_a_pod_is_named_in_the_files_that_changing_md_lists() {
    let page = files::read("docs/changing.md");
    let section = page.split("\n## ").nth(1).unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| [`"));
    let listed: BTreeSet<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let sources = files::with_ending(&[".rs", ".proto"]);
    let products = sources.iter().filter(|file| {
        let mut parts = file.path.split(['/', '.']);
        !parts.any(|part| matches!(part, "tests" | "benches"))
    });
    let named = products.filter(|file| file.text.split(|it| !is_word(it)).any(|it| it == FIELD));
    let named: BTreeSet<_> = named.map(|file| &*file.path).collect();
    assert_eq!(listed, named, "docs/changing.md lists the left");
    assert!(named.len() <= 10, "{FIELD} is in {} files", named.len());
}

#[test]
fn each_row_of_what_is_tried_names_a_test_that_exists() {
    let page = files::read("docs/internals/security-tests.md");
    let (_, tables) = page
        .split_once("## Tested attacks")
        .expect("it has a table");
    let (tables, _) = tables.split_once("\n## Hostile cells").expect("it ends");
    let sources = files::with_ending(&[".rs"]);
    let is_there = |test: &str| files::has_function(&sources, test);
    let rows = tables.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.rsplit(" | ").next());
    let mut count = 0;
    for cell in cells.filter(|cell| !["test |", "--- |"].contains(cell)) {
        // The other words are packages and folders.
        let words = cell.split('`').skip(1).step_by(2);
        let tests: Vec<_> = words.filter(|word| word.contains('_')).collect();
        assert!(!tests.is_empty(), "no test in {cell:?}");
        let absent: Vec<_> = tests.iter().filter(|test| !is_there(test)).collect();
        assert!(
            absent.is_empty(),
            "docs/internals/security-tests.md: {absent:?} are not there"
        );
        count += 1;
    }
    assert!(count > 10, "the search finds {count} rows only");
}

#[test]
fn files_and_tests_that_changing_md_names_exist() {
    let page = files::read("docs/changing.md");
    let sources = files::with_ending(&[".rs"]);
    let prose: String = page.split("```").step_by(2).collect();
    for word in prose.split('`').skip(1).step_by(2) {
        let is_path = word.contains('/') && !word.contains(' ');
        let is_test = word.contains('_') && word.len() > 25 && !is_path;
        let is_there = match (is_path, is_test) {
            (true, _) => files::root().join(word).exists(),
            (_, true) => files::has_function(&sources, word),
            (false, false) => true,
        };
        assert!(is_there, "docs/changing.md: {word} is not there");
    }
}

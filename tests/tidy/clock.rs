//! No test depends on the clock: a slow machine makes no test fail.
//!
//! Test code (`tests/`, `tests.rs`, and code after `cfg(test)`) measures time, or waits for less than a minute, only in the files of
//! [`MEASURES`]. The test reads lines by words: it knows literals, and constants of the same file.

use std::collections::{BTreeMap, BTreeSet};

use crate::files;

/// The minimum of a wall-time limit, in seconds: anything that takes longer hangs.
const LEAST: u64 = 60;

/// The files that measure time or wait for less, and why no test depends on them.
const MEASURES: &str = r"agent/kube/src/cost/tests.rs | the clock of the test is stopped
agent/kube/src/fence.rs | the clock of the test is stopped
agent/src/cluster/fake/tests.rs | the clock of the test is stopped
cli/src/cluster.rs | the clock of the test is stopped
cli/src/tests/system.rs | how soon to look again
server/src/questions/tests.rs | the clock of the test is stopped
tests/clients/timed.rs | when a controller gives a call up
tests/fuzz/driver.rs | how long a target is tried
tests/hostile/agents.rs | bounds that grow with the time
tests/hostile/neighbour.rs | reported
tests/hostile/others.rs | reported
tests/hostile/run.rs | reported
tests/journey/kubelet.rs | when a kubelet acts
tests/journey/kubelet/container.rs | when a kubelet acts
tests/kube/lasting.rs | a bound that grows with the time
tests/kube/restored.rs | reported
tests/kube/timeouts.rs | a lower bound
tests/src/real/nodes.rs | reported";

/// The beginnings of limited waits.
const WAITS: [&str; 6] = [
    "timeout(",
    "timeout_at(",
    "recv_timeout(",
    "wait_timeout(",
    "wait_timeout_while(",
    "Instant::now() + ",
];

#[test]
fn no_test_is_decided_by_the_clock() {
    let sources = sources();
    assert!(sources.len() > 100, "the search is broken");
    let lines = sources
        .iter()
        .map(|(path, text)| (&**path, measuring(text)));
    let mut found: BTreeMap<_, _> = lines.filter(|(_, lines)| !lines.is_empty()).collect();
    let listed = MEASURES.lines().filter_map(|row| row.split(" | ").next());
    let unused: BTreeSet<_> = listed.filter(|path| found.remove(path).is_none()).collect();
    assert!(unused.is_empty(), "they measure nothing: {unused:?}");
    assert!(found.is_empty(), "no test may be decided by it: {found:#?}");
}

/// Returns the test code of each file that has some, by path.
fn sources() -> Vec<(String, String)> {
    let files = files::with_ending(&[".rs"]).into_iter();
    let sources = files.filter_map(|files::File { path, text }| {
        let is_whole =
            path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs");
        let begin = if is_whole { 0 } else { text.find("cfg(test)")? };
        Some((path, text[begin..].to_owned()))
    });
    // The samples below are not tests.
    sources
        .filter(|(path, _)| path != "tests/tidy/clock.rs")
        .collect()
}

/// Returns the lines that measure time, or set a limit below a minute.
fn measuring(text: &str) -> Vec<&str> {
    let constants = text.split("const ").skip(1);
    let constants = constants.filter_map(|it| it.split_once(": Duration = "));
    let short = constants.filter(|(_, value)| value.split(';').next().is_some_and(is_short));
    let short: BTreeSet<_> = short.map(|(name, _)| name).collect();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let is_measuring = |(at, line): &(usize, &str)| {
        // An argument can be on a separate line.
        let next = lines.get(at + 1).filter(|_| line.ends_with('('));
        let whole = format!("{line} {}", next.unwrap_or(&""));
        let mut words = whole.split(|it: char| !is_part(it));
        let is_short = is_short(&whole) || words.any(|it| short.contains(it));
        let is_wait = WAITS.iter().any(|wait| {
            let mut calls = whole.match_indices(wait);
            calls.any(|(at, _)| !whole[..at].ends_with(is_part))
        });
        !line.starts_with("//") && (line.contains(".elapsed()") || is_short && is_wait)
    };
    let found = lines.iter().copied().enumerate().filter(is_measuring);
    found.map(|(_, line)| line).collect()
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns whether a text has a duration like `Duration::from_secs(5)` below a minute.
fn is_short(text: &str) -> bool {
    text.split("Duration::from_").skip(1).any(|it| {
        let (unit, rest) = it.split_once('(').unwrap_or_default();
        let number = rest.split(')').next().unwrap_or_default();
        let number: u64 = number.replace('_', "").parse().unwrap_or(u64::MAX);
        unit == "secs" && number < LEAST || unit == "millis" && number < 1_000 * LEAST
    })
}

#[test]
fn lines_that_measure_time_or_give_little_are_found() {
    let is_found = |line: &str| {
        let constants = "const LIMIT: Duration = Duration::from_secs(5);
            const PATIENCE: Duration = Duration::from_mins(2);";
        !measuring(&format!("{constants}\n{line}")).is_empty()
    };
    for line in [
        "assert!(start.elapsed() < PATIENCE);",
        "let until = Instant::now() + LIMIT;",
        "tokio::time::timeout(Duration::from_secs(3), answer).await",
        "timeout(\nLIMIT,\nanswer)",
        "done.recv_timeout(Duration::from_millis(100))",
    ] {
        assert!(is_found(line), "{line}");
    }
    for line in [
        "let until = Instant::now() + PATIENCE;",
        "tokio::time::timeout(Duration::from_mins(3), answer).await",
        "encoder.poll_timeout(LIMIT);",
        "// `start.elapsed()` is what a test must not ask.",
    ] {
        assert!(!is_found(line), "{line}");
    }
}

//! No test depends on the clock: a slow machine makes no test fail.
//!
//! In test code (`tests/`, `tests.rs`, and code after `cfg(test)`), every wait has a named limit of at least a minute:
//! `timeout(PATIENCE, …)`, `Instant::now() + PATIENCE`. So has every expiry: `valid(_, now + HOUR)`, `claims(_, 600)`.
//! A file with a line that gives less time, or measures time, must be in [`MEASURES`] with a reason.
//! The test reads lines by words, so a name means the same constant everywhere in a file.

use std::collections::BTreeMap;

use crate::files;

/// The minimum of a wall-time limit, in seconds: anything that takes longer hangs.
const LEAST: f64 = 60.0;

/// The files that measure time or wait for less, with the maximum number of such lines, and why no test depends on them.
const MEASURES: &str = r"agent/kube/src/cluster/tests/metrics.rs | 1 | a call that is given up at once
agent/kube/src/fence.rs | 5 | the clock of the test is stopped
agent/src/cluster/fake/tests.rs | 5 | the clock of the test is stopped
cli/src/cluster.rs | 1 | the clock of the test is stopped
cli/src/tests/system.rs | 1 | how soon to look again
service/src/admission/activity.rs | 1 | the clock of the test is stopped
tests/fuzz/driver.rs | 3 | how long a target is tried
tests/hostile/agents.rs | 5 | goals that are compared where they are asked for, and bounds that grow with the time
server/src/questions/tests.rs | 5 | the clock of the test is stopped
tests/hostile/calls.rs | 1 | how long a call is repeated
tests/hostile/connections.rs | 1 | how long an attack is quiet
tests/kube/lasting.rs | 2 | a bound that grows with the time
tests/hostile/neighbour.rs | 7 | reported
tests/hostile/others.rs | 2 | reported
tests/hostile/process.rs | 2 | reported
tests/hostile/run.rs | 2 | reported
tests/hostile/script.rs | 1 | how long an attack is quiet
tests/journey/kubelet.rs | 2 | when a kubelet acts
tests/journey/kubelet/container.rs | 5 | when a kubelet acts
tests/journey/kubelet/worker.rs | 1 | when a kubelet acts
tests/kube/large.rs | 3 | reported, with a limit of minutes
tests/kube/mutants/people.rs | 5 | when people act
tests/kube/timeouts.rs | 2 | a lower bound
tests/kube/restored.rs | 4 | reported";

/// The durations of constants in seconds, by name and by the path of the file.
type Limits = BTreeMap<String, BTreeMap<String, f64>>;

#[test]
fn no_test_is_decided_by_the_clock() {
    let sources = sources();
    assert!(sources.len() > 100, "the search is broken");
    let limits = limits(&sources);
    let mut found = BTreeMap::new();
    for (path, text) in &sources {
        let lines = measuring(path, text, &limits);
        if !lines.is_empty() {
            found.insert(path.as_str(), lines);
        }
    }
    let mut wrong = Vec::new();
    for row in MEASURES.lines() {
        let (path, rest) = row.split_once(" | ").expect("a path");
        let (count, _) = rest.split_once(" | ").expect("a count and a reason");
        let lines = found.remove(path).unwrap_or_default();
        if lines.is_empty() || lines.len() > count.parse().expect("a number") {
            wrong.push(format!("{row}, and not {lines:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

fn limits(sources: &[(String, String)]) -> Limits {
    let mut limits = Limits::new();
    for (path, text) in sources {
        for definition in text.split("const ").skip(1) {
            if let Some((name, value)) = definition.split_once(": Duration = ")
                && let Some(seconds) = seconds(value)
            {
                let named = limits.entry(name.to_owned()).or_default();
                named.insert(path.clone(), seconds);
            }
        }
    }
    limits
}

/// Returns the seconds of the `Duration::from_secs(90)` at the start of a text.
fn seconds(text: &str) -> Option<f64> {
    let (unit, rest) = text.strip_prefix("Duration::from_")?.split_once('(')?;
    let number: f64 = rest.split_once(')')?.0.replace('_', "").parse().ok()?;
    let unit = [
        ("hours", 3_600.0),
        ("mins", 60.0),
        ("secs", 1.0),
        ("millis", 0.001),
    ]
    .into_iter()
    .find(|(name, _)| *name == unit)?;
    Some(number * unit.1)
}

/// Returns the lines that measure time, or set a limit below a minute.
fn measuring<'a>(path: &str, text: &'a str, limits: &Limits) -> Vec<&'a str> {
    let mut lines = text.lines().map(str::trim).peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        // An argument can be on a separate line.
        let next = lines.peek().filter(|_| line.ends_with('('));
        let whole = format!("{line} {}", next.unwrap_or(&""));
        if !line.starts_with("//") && is_measuring(path, &whole, limits) {
            found.push(line);
        }
    }
    found
}

fn is_measuring(path: &str, line: &str, limits: &Limits) -> bool {
    let length = |name: &str| {
        let named = limits.get(name)?;
        let shortest = named.values().copied().reduce(f64::min);
        named.get(path).copied().or(shortest)
    };
    let is_long = |text: &str| {
        let mut words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
        let is_named = words.any(|word| {
            matches!(word, "left" | "patience") || length(word).is_some_and(|it| it >= LEAST)
        });
        let mut written = text.match_indices("Duration::from_");
        is_named || written.any(|(at, _)| seconds(&text[at..]).is_some_and(|it| it >= LEAST))
    };
    let is_short = |text: &str| {
        let mut words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
        let mut written = text.match_indices("Duration::from_");
        words.any(|word| length(word).is_some_and(|it| it < LEAST))
            || written.any(|(at, _)| seconds(&text[at..]).is_some_and(|it| it < LEAST))
    };
    let is_late = |at: usize| {
        let (before, after) = (&line[..at], &line[at + "Instant::now()".len()..]);
        let before = before
            .trim_end_matches("time::")
            .trim_end_matches("tokio::");
        let compares = ["< ", "> ", "<= ", ">= ", "saturating_duration_since("];
        let is_compared = compares.iter().any(|it| before.ends_with(it))
            || compares.iter().any(|it| after.trim_start().starts_with(it));
        let is_limited = after.strip_prefix(" + ").is_some_and(is_long);
        !is_compared && !is_limited
    };
    let waits = |word: &str| {
        let mut calls = line.match_indices(word);
        calls.any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let is_call = !before.is_some_and(|it| it.is_alphanumeric() || it == '_');
            let is_method = before == Some('.');
            let given = &line[at + word.len()..];
            let is_wait = is_method == (word != "timeout(" && word != "timeout_at(");
            is_call && is_wait && !given.starts_with(')') && !is_long(given)
        })
    };
    let expires = |word: &str| line.split(word).skip(1).any(is_short);
    let is_token = |rest: &str| {
        let life = rest
            .split_once(')')
            .and_then(|(given, _)| given.rsplit_once(", "));
        life.is_some_and(|(_, life)| {
            life.parse::<f64>()
                .is_ok_and(|it| (1.0..LEAST).contains(&it))
        })
    };
    line.contains(".elapsed()")
        || line
            .match_indices("Instant::now()")
            .any(|(at, _)| is_late(at))
        || WAITS.iter().any(|word| waits(word))
        || expires(".valid(")
        || line.split("claims(").skip(1).any(is_token)
}

/// Functions that take the limit of a wait.
const WAITS: [&str; 5] = [
    "timeout(",
    "timeout_at(",
    "recv_timeout(",
    "wait_timeout(",
    "wait_timeout_while(",
];

#[test]
fn lines_that_measure_time_or_give_little_are_found() {
    let constants = "const LIMIT: Duration = Duration::from_secs(5);
        const PATIENCE: Duration = Duration::from_mins(2);";
    let source = ("tests/tried.rs".to_owned(), constants.to_owned());
    let limits = limits(&[source]);
    let is_found = |line| !measuring("tests/tried.rs", line, &limits).is_empty();
    for line in [
        "assert!(start.elapsed() < PATIENCE);",
        "let start = Instant::now();",
        "let until = Instant::now() + LIMIT;",
        "let until = time::Instant::now() + wait;",
        "timeout(LIMIT, answer).await",
        "tokio::time::timeout(Duration::from_secs(3), answer).await",
        "timeout(\nLIMIT,\nanswer)",
        "done.recv_timeout(Duration::from_millis(100))",
        "changed.wait_timeout_while(state, LIMIT, is_missing)",
        "let pair = agent().valid(now - HOUR, now + LIMIT);",
        "let token = issuer.sign(&Issuer::claims(subject, 30));",
    ] {
        assert!(is_found(line), "{line}");
    }
    for line in [
        "let until = Instant::now() + PATIENCE;",
        "assert!(Instant::now() < until);",
        "let left = until.saturating_duration_since(Instant::now());",
        "timeout(PATIENCE, answer).await",
        "tokio::time::timeout(Duration::from_mins(3), answer).await",
        "changed.wait_timeout(state, left)",
        "Err(ApiError::timeout())",
        "encoder.timeout(now, &mut out);",
        "let pair = agent().valid(now - PATIENCE, now + PATIENCE);",
        "let token = issuer.sign(&Issuer::claims(subject, 600));",
        "// `start.elapsed()` is what a test must not ask.",
    ] {
        assert!(!is_found(line), "{line}");
    }
}

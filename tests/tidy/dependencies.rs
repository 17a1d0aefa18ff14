//! Who may know whom: the table of docs/architecture.md.

use std::{collections::BTreeSet, env, process::Command};

use crate::files;

/// One row: a package, what it may use of ours, and what it must never reach, however far away.
struct Row {
    package: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

const OURS: &[&str] = &[
    "agent-core",
    "agent-fake",
    "agent-kube",
    "build-info",
    "conformance",
    "decree",
    "decree-agent",
    "decree-cli",
    "decree-server",
    "manifest",
    "otlp",
    "runtime",
    "server-access",
    "server-core",
    "server-recording",
    "server-session",
    "server-shadow",
    "tests",
    "time-slice",
    "transport",
];

const TABLE: &[Row] = &[
    Row {
        package: "decree",
        ours: &[],
        never: &["kube", "tokio", "tonic"],
    },
    Row {
        package: "server-access",
        ours: &[],
        never: &[
            "tokio",
            "tonic",
            "tracing",
            "prometheus-client",
            "kube",
            "jiff",
        ],
    },
    Row {
        package: "server-core",
        ours: &[],
        never: &["tokio", "tonic", "prost", "kube", "serde_json", "jiff"],
    },
    Row {
        package: "server-shadow",
        ours: &["server-core"],
        never: &["tokio", "tonic", "prost", "kube", "serde_json", "jiff"],
    },
    Row {
        package: "server-session",
        ours: &["decree", "server-core", "server-shadow"],
        never: &[
            "tokio",
            "tonic",
            "tracing",
            "prometheus-client",
            "kube",
            "serde_json",
            "jiff",
        ],
    },
    Row {
        package: "server-recording",
        ours: &["decree", "server-core", "server-session"],
        never: &[
            "tokio",
            "tonic",
            "tracing",
            "prometheus-client",
            "kube",
            "serde_json",
            "jiff",
        ],
    },
    Row {
        package: "agent-core",
        ours: &["decree"],
        never: &[
            "tokio",
            "tonic",
            "kube",
            "serde_json",
            "decree-server",
            "server-core",
        ],
    },
    Row {
        package: "agent-fake",
        ours: &[],
        never: &["tokio", "tonic", "prost"],
    },
    Row {
        package: "agent-kube",
        ours: &["agent-core", "decree"],
        never: &[
            "tonic",
            "agent-fake",
            "decree-agent",
            "decree-server",
            "server-core",
        ],
    },
    Row {
        package: "manifest",
        ours: &["agent-fake"],
        never: &["tokio", "tonic", "prost", "kube"],
    },
    Row {
        package: "conformance",
        ours: &["build-info", "decree", "runtime", "transport"],
        never: &["kube", "server-core", "agent-core"],
    },
    Row {
        package: "otlp",
        ours: &["decree", "runtime", "transport"],
        never: &["kube", "server-core", "agent-core"],
    },
    Row {
        package: "runtime",
        ours: &["time-slice"],
        never: &["kube"],
    },
    Row {
        package: "build-info",
        ours: &[],
        never: &["tokio", "tracing", "kube"],
    },
    Row {
        package: "time-slice",
        ours: &[],
        never: &["tokio", "tracing", "kube"],
    },
    Row {
        package: "transport",
        ours: &["runtime"],
        never: &[
            "tonic",
            "prost",
            "kube",
            "decree",
            "server-core",
            "agent-core",
        ],
    },
    Row {
        package: "decree-server",
        ours: &[
            "build-info",
            "decree",
            "otlp",
            "runtime",
            "server-access",
            "server-core",
            "server-recording",
            "server-session",
            "transport",
        ],
        never: &[
            "kube",
            "k8s-openapi",
            "agent-core",
            "agent-fake",
            "agent-kube",
            "decree-agent",
        ],
    },
    Row {
        package: "decree-agent",
        ours: &[
            "agent-core",
            "agent-fake",
            "agent-kube",
            "build-info",
            "decree",
            "manifest",
            "otlp",
            "runtime",
            "transport",
        ],
        never: &["server-core", "decree-server"],
    },
    Row {
        package: "decree-cli",
        ours: &[
            "agent-core",
            "agent-fake",
            "agent-kube",
            "build-info",
            "decree",
            "decree-agent",
            "decree-server",
            "manifest",
            "otlp",
            "runtime",
            "server-core",
            "server-recording",
            "server-session",
            "transport",
        ],
        never: &["tests"],
    },
];

#[test]
fn packages_know_only_whom_they_may() {
    for row in TABLE {
        let direct = tree(row.package, Some(1));
        let allowed: BTreeSet<_> = row.ours.iter().map(|one| (*one).to_owned()).collect();
        let used: BTreeSet<_> = direct
            .into_iter()
            .filter(|one| OURS.contains(&one.as_str()))
            .collect();
        assert!(
            used.is_subset(&allowed),
            "{} uses {used:?}, and may use {allowed:?}",
            row.package
        );
    }
}

#[test]
fn packages_never_reach_what_they_must_not() {
    for row in TABLE {
        let all = tree(row.package, None);
        let reached: Vec<_> = row.never.iter().filter(|one| all.contains(**one)).collect();
        assert!(reached.is_empty(), "{} reaches {reached:?}", row.package);
    }
}

#[test]
fn the_table_is_that_of_the_document() {
    let document = std::fs::read_to_string(files::root().join("docs/architecture.md"))
        .expect("the document is there");
    for row in TABLE {
        let line = document
            .lines()
            .find(|line| line.starts_with(&format!("| `{}`", row.package)));
        let line =
            line.unwrap_or_else(|| panic!("docs/architecture.md has no row for {}", row.package));
        for one in row.ours.iter().chain(row.never) {
            assert!(
                line.contains(one),
                "the row of {} does not name {one}",
                row.package
            );
        }
    }
}

/// Returns the names of the packages that a package depends on, itself left out, with the features that it asks for itself.
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
    let output = command.output().expect("cargo can be run");
    assert!(
        output.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned);
    names
        .filter(|name| name != package && !name.is_empty())
        .collect()
}

//! The pages of metrics, read with Prometheus' own parser, and compared with the tables for operators.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde::Deserialize;
use tests::{admin, binaries, tools};

use crate::world;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Deserialize, PartialEq)]
struct Family {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    help: String,
    samples: Vec<Sample>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: String,
}

/// Reads a page; `None` without a parser on this machine.
fn families(address: &str) -> Option<Vec<Family>> {
    tools::prometheus_parser().map(|python| parsed(python, address))
}

fn parsed(python: &Path, address: &str) -> Vec<Family> {
    let page = admin::get(address, "/metrics").expect("it serves its metrics");
    let (head, page) = page.split_once("\r\n\r\n").expect("a head and a body");
    let typed = format!("content-type: {OPENMETRICS}\r\n");
    assert!(head.to_ascii_lowercase().contains(&typed), "{head}");
    let mut parser = Command::new(python)
        .arg(binaries::checkout().join("tests/process/parse_metrics.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a Python");
    let mut input = parser.stdin.take().expect("it is piped");
    input.write_all(page.as_bytes()).expect("it reads");
    drop(input);
    let output = parser.wait_with_output().expect("it is ours");
    assert!(output.status.success(), "no OpenMetrics:\n{page}");
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// The metrics in the tables of metrics.md under this heading, and under `both`.
pub(crate) fn documented(half: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(binaries::checkout().join("docs/metrics.md"));
    let page = page.expect("the document is there");
    let section = page.split("## Metrics").nth(1).expect("it has the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut names = BTreeSet::new();
    let mut heading = "";
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let cell = line.split('|').nth(1).unwrap_or_default();
        match cell.split_once('`') {
            None if cell.contains("---") => {}
            None => heading = cell.trim(),
            Some(_) if heading == half || heading == "both" => {
                names.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
            Some(_) => {}
        }
    }
    names
}

/// The name of a family in the tables: counters by their samples.
fn named(family: &Family) -> String {
    match family.kind.as_str() {
        "counter" => format!("{}_total", family.name),
        "info" => format!("{}_info", family.name),
        _ => family.name.clone(),
    }
}

fn kind_of<'a>(families: &'a [Family], name: &str) -> &'a Family {
    let mut families = families.iter();
    let family = families.find(|family| named(family) == name || family.name == name);
    family.unwrap_or_else(|| panic!("{name} is not there"))
}

/// The families of both halves, and of the server alone, each with its kind.
const OF_BOTH: [(&str, &str); 6] = [
    ("process_cpu_seconds_total", "counter"),
    ("process_resident_memory_bytes", "gauge"),
    ("process_virtual_memory_bytes", "gauge"),
    ("process_start_time_seconds", "gauge"),
    ("process_open_fds", "gauge"),
    ("process_max_fds", "gauge"),
];
const OF_THE_QUEUE: [(&str, &str); 2] = [
    ("workqueue_depth", "gauge"),
    ("workqueue_longest_running_processor_seconds", "gauge"),
];
/// The bounds of grpc-prometheus.
const BOUNDS: &str = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1.0 2.5 5.0 10.0 +Inf";

#[test]
fn pages_are_open_metrics_with_the_families_of_prometheus_and_of_upstream() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent(&address);
    world::wait_until_converged(&address, 2);
    let [of_server, of_agent] = [&server, &agent].map(|it| families(&it.address("admin")));
    let (of_server, of_agent) = (tests::or_skip!(of_server), tests::or_skip!(of_agent));
    for (half, open) in [("server", &of_server), ("agent", &of_agent)] {
        let build = kind_of(open, &format!("decree_{half}_build_info"));
        let label = |name: &str| build.samples[0].labels.get(name).map(String::as_str);
        assert_eq!(label("version"), Some(service::build_info::VERSION));
        assert_eq!(label("commit"), Some(service::build_info::COMMIT));
        for (name, kind) in OF_BOTH {
            let family = kind_of(open, name);
            assert_eq!(family.kind, kind, "{name}");
            let value: f64 = family.samples[0].value.parse().expect("a number");
            assert!(value >= 0.0, "{name}");
        }
    }
    for (name, kind) in OF_THE_QUEUE {
        let family = kind_of(&of_server, name);
        assert_eq!(family.kind, kind, "{name}");
        let named =
            |sample: &Sample| sample.labels.get("name").map(String::as_str) == Some("replicaset");
        let are_named = family.samples.iter().all(named);
        assert!(!family.samples.is_empty() && are_named, "{family:?}");
    }
    let idle = kind_of(&of_server, "workqueue_longest_running_processor_seconds");
    assert_eq!(idle.samples[0].value, "0.0", "all has converged");

    let handling = kind_of(&of_server, "grpc_server_handling_seconds");
    let of_listing = |sample: &&Sample| {
        sample.labels.get("grpc_method").map(String::as_str) == Some("ListReplicaSets")
            && sample.name.ends_with("_bucket")
    };
    let buckets: Vec<_> = handling.samples.iter().filter(of_listing).collect();
    let bounds: Vec<_> = buckets.iter().map(|it| it.labels["le"].as_str()).collect();
    assert_eq!(bounds.join(" "), BOUNDS);
    let labels: Vec<_> = buckets[0].labels.keys().map(String::as_str).collect();
    assert_eq!(labels, ["grpc_method", "grpc_service", "grpc_type", "le"]);
}

//! Alerts and dashboard with Prometheus itself: it scrapes server and agent, evaluates every rule, and an alert fires.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
};

use decree_api::causes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    admin, binaries,
    running::{Running, Voice, output_of, until_found},
    tools,
};

use crate::{metrics, transport};

const RULES: &str = "deploy/helm/decree/files/monitoring/rules.yaml";
const DASHBOARD: &str = "deploy/helm/decree/files/monitoring/dashboard.json";
const CASES: &str = "tests/process/alerts.yaml";
const RUNBOOK: &str = "docs/alerts.md";
const LINK: &str = "https://github.com/decree-dev/decree/blob/main/docs/alerts.md#";

/// A Prometheus with the rules of this project that scrapes some addresses each second.
pub(crate) struct Prometheus {
    running: Running,
    /// The configuration and the data, removed on drop.
    _folder: TempDir,
}

fn checkout(path: &str) -> String {
    fs::read_to_string(binaries::checkout().join(path)).expect("it is in the checkout")
}

/// The groups of rules as Prometheus reads them.
fn groups() -> Value {
    let object: Value = serde_saphyr::from_str(&checkout(RULES)).expect("it is YAML");
    object["spec"].clone()
}

fn rules() -> Vec<Value> {
    let groups = groups();
    let groups = groups["groups"].as_array().expect("it has groups").clone();
    let rules = groups.iter().filter_map(|group| group["rules"].as_array());
    rules.flatten().cloned().collect()
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    let text = value.pointer(path).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("{path}: {value:#}"))
}

/// The dashboard's panels, each with its title and its expressions as Grafana sends them.
fn panels() -> Vec<(String, Vec<String>)> {
    let dashboard: Value = serde_json::from_str(&checkout(DASHBOARD)).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let filled = |target: &Value| {
        let expression = text(target, "/expr").replace("$__rate_interval", "1m");
        expression.replace("$instance", ".*")
    };
    let panels = panels.iter().filter_map(|panel| {
        let targets = panel["targets"].as_array()?.iter();
        Some((
            text(panel, "/title").to_owned(),
            targets.map(filled).collect(),
        ))
    });
    panels.collect()
}

/// The words of an expression that can only be metrics: those with a prefix of the project's metrics.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let prefixes = [
        "decree_",
        "workqueue_",
        "leader_election_",
        "process_",
        "grpc_",
        "replicaset_controller_",
    ];
    let ours = words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
    ours.map(str::to_owned).collect()
}

impl Prometheus {
    pub(crate) fn start(programs: &Path, targets: &[&str]) -> Self {
        let folder = TempDir::with_prefix("decree-prometheus-").expect("there is room");
        let write = |name: &str, content: &Value| {
            fs::write(folder.path().join(name), content.to_string()).expect("there is room");
        };
        // JSON is YAML.
        write("rules.yaml", &groups());
        write(
            "prometheus.yaml",
            &json!({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [{"job_name": "decree", "static_configs": [{"targets": targets}]}],
            }),
        );
        let mut command = Command::new(programs.join("prometheus"));
        command
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            .args(["--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .current_dir(folder.path());
        Self {
            running: Running::start(command, Voice::Stderr),
            _folder: folder,
        }
    }

    /// The address with its assigned port.
    pub(crate) fn address(&self) -> String {
        let line = self.running.line("port", |it| it["msg"] == "Listening on");
        text(&line, "/address").to_owned()
    }
}

/// Queries Prometheus with HTTP/1.0, in which an answer is one piece.
pub(crate) fn answer(address: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers text");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let found = body.and_then(|body| serde_json::from_str(body).ok());
    found.unwrap_or_else(|| panic!("{path}: {answer}"))
}

/// Repeats `find` until it succeeds.
pub(crate) fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    until_found(what, || find().ok_or("nothing of it"))
}

fn escaped(expression: &str) -> String {
    expression.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02X}");
        text
    })
}

#[test]
fn prometheus_scrapes_both_and_an_alert_fires() {
    tests::or_skip!(tools::openssl());
    let programs = tests::or_skip!(tools::prometheus());
    let folder = TempDir::with_prefix("decree-alerts-").expect("there is room");
    // Certificates that expire within the week of an alert.
    let lines = transport::set(folder.path(), 3);
    let (server, at) = transport::serving(&lines);
    let mut agent = transport::printed(&lines, "decree-agent", &at);
    agent.args(["--manifest", "docs/examples/web.yaml"]);
    let agent = Running::start(agent, Voice::Stderr);
    let targets = [server.address("admin"), agent.address("admin")];
    let prometheus = Prometheus::start(programs, &targets.each_ref().map(String::as_str));
    let address = prometheus.address();

    eventually("readiness", || admin::get(&address, "/-/ready").ok());
    eventually("scrape of both", || {
        let found = answer(&address, "/api/v1/targets");
        let targets = found["data"]["activeTargets"].as_array()?.clone();
        let up = |target: &Value| target["health"] == "up";
        (targets.len() == 2 && targets.iter().all(up)).then_some(())
    });
    eventually("evaluation of every rule", || {
        let found = answer(&address, "/api/v1/rules");
        let rules = found["data"]["groups"][0]["rules"].as_array()?.clone();
        let unhealthy = rules.iter().find(|rule| rule["health"] == "err");
        assert!(unhealthy.is_none(), "{unhealthy:#?}");
        let all = rules.len() == self::rules().len();
        (all && rules.iter().all(|rule| rule["health"] == "ok")).then_some(())
    });
    let alert = eventually("alert", || {
        let found = answer(&address, "/api/v1/alerts");
        let alerts = found["data"]["alerts"].as_array()?.clone();
        let mut firing = alerts
            .into_iter()
            .filter(|alert| alert["state"] == "firing");
        firing.find(|alert| alert["labels"]["alertname"] == "DecreeCertificateExpires")
    });
    let description = text(&alert, "/annotations/description");
    assert!(description.contains(" expires in 2d 23h "), "{description}");
    for (title, expressions) in panels() {
        eventually(&format!("data in the panel {title}"), || {
            let mut expressions = expressions.iter();
            let has_data = expressions.any(|expression| {
                let query = format!("/api/v1/query?query={}", escaped(expression));
                let found = answer(&address, &query);
                assert_eq!(found["status"], "success", "{expression}");
                let results = found["data"]["result"].as_array();
                results.is_some_and(|results| !results.is_empty())
            });
            has_data.then_some(())
        });
    }
}

#[test]
fn alerts_and_dashboard_name_only_metrics_that_are_documented() {
    let documented: BTreeSet<_> = ["server", "agent"]
        .into_iter()
        .flat_map(metrics::documented)
        .collect();
    let expressions = rules()
        .into_iter()
        .map(|rule| text(&rule, "/expr").to_owned());
    let panels = panels().into_iter().flat_map(|(_, panel)| panel);
    let all: Vec<_> = expressions.chain(panels).collect();
    assert!(all.len() > 30, "{all:?}");
    for expression in all {
        let named = metrics_in(&expression);
        assert!(!named.is_empty(), "{expression}");
        for metric in named {
            let family = metric.strip_suffix("_bucket").unwrap_or(&metric);
            assert!(documented.contains(family), "{metric} in {expression}");
        }
    }
}

/// Prometheus' own test of rules: each alert has a series that makes it fire at the right time, and a series that does not.
#[test]
fn each_alert_fires_when_it_should_and_only_then() {
    let programs = tests::or_skip!(tools::prometheus());
    let folder = TempDir::with_prefix("decree-rules-").expect("there is room");
    fs::write(folder.path().join("rules.yaml"), groups().to_string()).expect("there is room");
    let cases = checkout(CASES);
    fs::write(folder.path().join("alerts.yaml"), &cases).expect("there is room");
    let mut promtool = Command::new(programs.join("promtool"));
    promtool.args(["test", "rules", "alerts.yaml"]);
    output_of(promtool.current_dir(folder.path()));

    let cases: Value = serde_saphyr::from_str(&cases).expect("it is YAML");
    let cases = cases["tests"].as_array().expect("it has cases");
    let expected = cases
        .iter()
        .filter_map(|case| case["alert_rule_test"].as_array());
    let expected: Vec<_> = expected.flatten().collect();
    for rule in rules() {
        let name = text(&rule, "/alert");
        let of_it = expected.iter().filter(|case| case["alertname"] == name);
        let fired = of_it.map(|case| case["exp_alerts"].as_array().map_or(0, Vec::len));
        let fired: BTreeSet<usize> = fired.collect();
        assert_eq!(
            fired,
            BTreeSet::from([0, 1]),
            "{name} is calm once, and fires once"
        );
    }
}

/// The alerts have the same text about ReplicaSets as `decree explain`, the console and an event.
#[test]
fn alerts_about_causes_begin_with_the_words_of_the_cause() {
    let words = [
        ("DecreeBudgetHolds", causes::HELD_BY_BUDGET),
        ("DecreeOtherController", causes::OTHER_CONTROLLER),
        ("DecreePodsDoNotLast", causes::PODS_DO_NOT_LAST),
        ("DecreeReplicaSetsQuarantined", causes::QUARANTINED),
        ("DecreeReplicaSetsUnconverged", "Blocked or slow"),
    ];
    for (alert, cause) in words {
        let rules = rules();
        let rule = rules.iter().find(|rule| rule["alert"] == alert);
        let rule = rule.unwrap_or_else(|| panic!("there is no {alert}"));
        let summary = text(rule, "/annotations/summary");
        assert!(summary.starts_with(&format!("{cause}: ")), "{summary}");
    }
}

#[test]
fn each_alert_links_to_its_runbook() {
    let runbook = checkout(RUNBOOK);
    let headings: BTreeSet<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let rules = rules();
    let alerts: BTreeSet<&str> = rules.iter().map(|rule| text(rule, "/alert")).collect();
    assert_eq!(
        headings, alerts,
        "each alert has a heading, and each heading is one"
    );
    for rule in &rules {
        let anchor = text(rule, "/alert").to_lowercase();
        assert_eq!(
            text(rule, "/annotations/runbook_url"),
            format!("{LINK}{anchor}")
        );
        let severity = text(rule, "/labels/severity");
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{severity}"
        );
    }
}

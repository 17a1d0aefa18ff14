//! The metrics of an agent about its requests to an API server.

use std::collections::BTreeSet;

use serde_json::json;
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User};

use crate::{acts, objects};

fn label<'a>(series: &'a str, name: &str) -> &'a str {
    let value = series.split(&format!("{name}=\"")).nth(1);
    let value = value.and_then(|rest| rest.split('"').next());
    value.unwrap_or_else(|| panic!("{series} has no {name}"))
}

fn series<'a>(page: &'a str, metric: &str) -> Vec<(&'a str, u64)> {
    let of_metric = |line: &&str| line.starts_with(&format!("{metric}{{"));
    let parsed = page.lines().filter(of_metric).map(|line| {
        let (series, value) = line.rsplit_once(' ').expect("it has a value");
        (series, value.parse().expect("it is a count"))
    });
    parsed.collect()
}

#[tokio::test]
async fn requests_have_the_labels_of_client_go() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let name = "request-metrics";
    let namespace = Namespace::create(cluster.admin().await, name).await;
    let server = DecisionServer::start();
    let flags = ["--namespace", name, "--lease-namespace", name];
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    acts::create_set(&namespace, &objects::replica_set("web", 3)).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 3})).await;

    let page = agent.metrics();
    let requests = series(&page, "rest_client_requests_total");
    let durations = series(&page, "rest_client_request_duration_seconds_count");
    let host = cluster.url().trim_start_matches("https://").to_owned();
    for (series, _) in requests.iter().chain(&durations) {
        assert_eq!(label(series, "host"), host, "{series}");
    }
    let count = |code: &str, method: &str| {
        let those = requests.iter().filter(|(series, _)| {
            label(series, "code") == code && label(series, "method") == method
        });
        those.map(|(_, count)| count).sum::<u64>()
    };
    assert!(
        count("404", "GET") >= 2,
        "there was neither a probe nor a Lease: {requests:?}"
    );
    assert!(
        count("201", "POST") >= 5,
        "the probe, the Lease and 3 pods: {requests:?}"
    );
    assert!(
        count("200", "PATCH") >= 2,
        "the probe and the status: {requests:?}"
    );

    let verbs: BTreeSet<_> = durations.iter().map(|it| label(it.0, "verb")).collect();
    let methods: BTreeSet<_> = requests.iter().map(|it| label(it.0, "method")).collect();
    assert_eq!(verbs, methods);
    for (series, timed) in durations {
        let verb = label(series, "verb");
        let of_verb = requests.iter().filter(|it| label(it.0, "method") == verb);
        let counted: u64 = of_verb.map(|(_, count)| count).sum();
        let watches = if verb == "GET" { 3 } else { 0 };
        assert_eq!(
            timed + watches,
            counted,
            "pods, ReplicaSets and the probe are watched: {series}"
        );
    }
}

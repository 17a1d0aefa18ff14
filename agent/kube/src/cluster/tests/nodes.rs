//! The stream of nodes: lists, watches, and what it says of failures.

use agent_core::{
    cluster::{NodeFailure, NodeStream as _},
    nodes::{NodeEvent, NodeFields},
    pace::Backoff,
};

use super::*;

fn node(name: &str, version: &str, spec: Value) -> Value {
    let labels = json!({"topology.kubernetes.io/zone": "a", "other": "b"});
    json!({"kind": "Node", "metadata": {"name": name, "resourceVersion": version, "labels": labels}, "spec": spec})
}

fn page(next: &str, nodes: &[Value]) -> Answer {
    let metadata = json!({"resourceVersion": "7", "continue": next});
    Answer::json(
        200,
        json!({"kind": "NodeList", "metadata": metadata, "items": nodes}),
    )
}

fn line(verb: &str, object: &Value) -> Vec<u8> {
    format!("{}\n", json!({"type": verb, "object": object})).into_bytes()
}

/// What the next output of the stream says, in words.
async fn told(nodes: &mut Nodes) -> String {
    let next = timeout(Duration::from_secs(120), nodes.next()).await;
    let events = match next.expect("the stream goes on") {
        Ok(events) => events,
        Err(NodeFailure { verb, error }) => return format!("{verb}: {error}"),
    };
    let words = events.into_iter().map(|event| match event {
        NodeEvent::Begin => "begin".to_owned(),
        NodeEvent::Complete => "complete".to_owned(),
        NodeEvent::Deleted(name) => format!("-{name}"),
        NodeEvent::Applied(node) => {
            let flags = [(node.unschedulable, "cordoned"), (node.leaving, "leaving")];
            let flags = flags.into_iter().filter(|(is, _)| *is);
            let flags: String = flags.map(|(_, flag)| format!(":{flag}")).collect();
            format!("{}{flags} with {} labels", node.name, node.labels.len())
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn nodes_are_listed_in_pages_watched_and_listed_again_where_the_watch_is_too_old() {
    let taints = json!({"taints": [{"key": "a"}, {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]});
    let metadata = [field(1, b"c"), field(6, b"10")].concat();
    let in_protobuf = [field(1, &metadata), field(2, &[0x20, 1])].concat();
    let lines = [
        line("MODIFIED", &node("a", "8", json!({"unschedulable": true}))),
        line(
            "BOOKMARK",
            &json!({"kind": "Node", "metadata": {"resourceVersion": "9"}}),
        ),
    ];
    let frames = frame_in("ADDED", "Node", &in_protobuf);
    let gone = line("DELETED", &node("b", "11", json!(null)));
    let expired = json!({"kind": "Status", "code": 410, "message": "too old"});
    let forbidden = json!({"kind": "Status", "code": 403, "message": "nodes is forbidden"});
    let server = Server::start(vec![
        page("more", &[node("a", "1", json!({}))]),
        page("", &[node("b", "2", taints)]),
        Answer::stream(vec![lines.concat()]),
        Answer::stream(vec![frames]),
        Answer::json(403, forbidden),
        Answer::stream(vec![[gone, line("ERROR", &expired)].concat()]),
        Answer::json(500, json!({})),
        page("", &[]),
        Answer::json(410, expired.clone()),
        page("", &[]),
    ])
    .await;
    let mut nodes = server.cluster.nodes(&NodeFields::default());
    nodes.backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(1), 0);
    for expected in [
        "begin, a with 1 labels",
        "b:leaving with 1 labels, complete",
        "",
        "a:cordoned with 1 labels",
        "",
        "",
        "c:cordoned with 0 labels",
        "",
        "watch: nodes is forbidden",
        "",
        "watch: too old",
        "list: the cluster answers 500",
        "begin, complete",
        "watch: too old",
        "begin, complete",
    ] {
        assert_eq!(told(&mut nodes).await, expected);
    }
    let asked = server.asked().into_iter().map(|it| it.line);
    let list = "GET /api/v1/nodes?limit=500";
    let watch = |from: u8| {
        format!(
            "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={from}"
        )
    };
    let expected = [
        list.to_owned(),
        format!("{list}&continue=more"),
        watch(7),
        watch(9),
        watch(10),
        watch(10),
        list.to_owned(),
        list.to_owned(),
        watch(7),
        list.to_owned(),
    ];
    assert_eq!(asked.collect::<Vec<_>>(), expected);
}

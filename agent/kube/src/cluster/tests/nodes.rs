//! The stream of nodes: lists, watches, and what it says of failures.

use agent_core::{
    nodes::{NodeEvent, NodeFields, NodeNews},
    pace::Backoff,
};
use tokio::{select, sync::mpsc};

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

/// What the script tells.
const TOLD: [&str; 15] = [
    "all: a with 1 labels, b:leaving with 1 labels",
    "",
    "a:cordoned with 1 labels",
    "",
    "c:cordoned with 1 labels",
    "watch: nodes is forbidden",
    "all: ",
    "",
    "-b",
    "watch: too old",
    "list: the cluster answers 500",
    "list: a Status instead of what was asked for: too old",
    "all: ",
    "watch: too old",
    "all: ",
];

fn script() -> Vec<Answer> {
    let taints = json!({"taints": [{"key": "a"}, {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]});
    let lines = [
        line("MODIFIED", &node("a", "8", json!({"unschedulable": true}))),
        line(
            "BOOKMARK",
            &json!({"kind": "Node", "metadata": {"resourceVersion": "9"}}),
        ),
    ];
    let added = line("ADDED", &node("c", "10", json!({"unschedulable": true})));
    let gone = line("DELETED", &node("b", "11", json!(null)));
    let expired = json!({"kind": "Status", "code": 410, "message": "too old"});
    let forbidden = json!({"kind": "Status", "code": 403, "message": "nodes is forbidden"});
    vec![
        page("more", &[node("a", "1", json!({}))]),
        page("", &[node("b", "2", taints)]),
        Answer::stream(vec![lines.concat()]),
        Answer::stream(vec![added]),
        Answer::json(403, forbidden),
        page("", &[]),
        Answer::stream(vec![[gone, line("ERROR", &expired)].concat()]),
        Answer::json(500, json!({})),
        Answer::json(200, expired.clone()),
        page("", &[]),
        Answer::json(410, expired.clone()),
        page("", &[]),
    ]
}

/// News in words.
fn told(news: NodeNews) -> String {
    let events = match news {
        Ok(events) => events,
        Err((verb, error)) => return format!("{verb}: {error}"),
    };
    let of = |node: v1::Node| {
        let flags = [(node.unschedulable, "cordoned"), (node.leaving, "leaving")];
        let flags = flags.into_iter().filter(|(is, _)| *is);
        let flags: String = flags.map(|(_, flag)| format!(":{flag}")).collect();
        format!("{}{flags} with {} labels", node.name, node.labels.len())
    };
    let words = events.into_iter().map(|event| match event {
        NodeEvent::Listed(nodes) => {
            let nodes: Vec<_> = nodes.into_iter().map(of).collect();
            format!("all: {}", nodes.join(", "))
        }
        NodeEvent::Deleted(name) => format!("-{name}"),
        NodeEvent::Applied(node) => of(node),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn nodes_are_listed_in_pages_watched_and_listed_again_where_the_watch_is_too_old() {
    let server = Server::start(script()).await;
    let (sender, mut news) = mpsc::channel(1);
    let wait = Duration::from_millis(1);
    let tell = |news| {
        let (sender, news) = (sender.clone(), node_news(news, &NodeFields::default()));
        async move { drop(sender.send(told(news)).await) }
    };
    let reader = server.cluster.reader.clone();
    let mut nodes = Follower::new(reader, requests::nodes(), tell);
    nodes.backoff = Backoff::new(wait, wait, 0);
    let seen = async {
        for expected in TOLD {
            let next = timeout(Duration::from_secs(120), news.recv()).await;
            assert_eq!(next.expect("it goes on").as_deref(), Some(expected));
        }
    };
    select! {
        never = nodes.follow() => match never {},
        () = seen => {}
    }
    let asked = server.asked().into_iter().map(|it| it.line);
    let list = "GET /api/v1/nodes?limit=500&continue=".to_owned();
    let watch = |from: u8| {
        format!(
            "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={from}"
        )
    };
    let expected = [
        list.clone(),
        format!("{list}more"),
        watch(7),
        watch(9),
        watch(10),
        list.clone(),
        watch(7),
        list.clone(),
        list.clone(),
        list.clone(),
        watch(7),
        list,
    ];
    assert_eq!(asked.take(expected.len()).collect::<Vec<_>>(), expected);
}

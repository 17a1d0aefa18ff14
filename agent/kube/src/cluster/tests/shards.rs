//! What a shard reads of a cluster that is shared out.

use std::num::NonZeroU16;

use super::*;

const TWO: NonZeroU16 = NonZeroU16::new(2).expect("it is not 0");
/// Of two shards each has some of these.
const NAMESPACES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Returns those of the names that are in a shard, and asserts that not all of them are.
fn own(shard: Shard) -> Vec<&'static str> {
    let own = NAMESPACES.into_iter().filter(|name| shard.contains(name));
    let own: Vec<_> = own.collect();
    assert!(!own.is_empty() && own.len() < NAMESPACES.len(), "{own:?}");
    own
}

fn pod_of(namespace: &str) -> Value {
    json!({"kind": "Pod", "metadata": {
        "namespace": namespace, "name": namespace, "uid": namespace, "resourceVersion": "5",
    }})
}

fn pod_in_protobuf(namespace: &str) -> Vec<u8> {
    let metadata = [
        field(1, namespace.as_bytes()),
        field(3, namespace.as_bytes()),
        field(5, namespace.as_bytes()),
        field(6, b"5"),
    ];
    field(1, &metadata.concat())
}

fn added(namespace: &str) -> Vec<u8> {
    frame_of("ADDED", &pod_in_protobuf(namespace))
}

fn added_in_json(namespace: &str) -> Vec<u8> {
    let event = json!({"type": "ADDED", "object": pod_of(namespace)});
    format!("{event}\n").into_bytes()
}

#[tokio::test]
async fn list_of_a_shard_is_what_is_in_its_namespaces() {
    for shard in Shard::all(TWO) {
        let items = NAMESPACES.map(pod_of);
        let in_json =
            json!({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": items});
        let items = NAMESPACES.map(|namespace| field(2, &pod_in_protobuf(namespace)));
        let metadata = field(1, &field(2, b"7"));
        let in_protobuf = document("PodList", &[metadata, items.concat()].concat());
        let answers = vec![Answer::json(200, in_json), Answer::bytes(200, in_protobuf)];
        let server = Server::start(answers).await;
        let cluster = server.cluster.clone().of_shard(shard);
        for form in ["JSON", "protobuf"] {
            let list = list(&cluster).await.expect("it is read");
            assert_eq!(names(&list), own(shard), "{form}");
        }
    }
}

#[tokio::test]
async fn watch_of_a_shard_says_no_more_than_the_version_of_others() {
    for shard in Shard::all(TWO) {
        for form in [added, added_in_json] {
            let bytes = NAMESPACES.map(form).concat();
            let server = Server::start(vec![Answer::stream(vec![bytes])]).await;
            let cluster = server.cluster.clone().of_shard(shard);
            let events = cluster.watch(Kind::Pod, "4".into()).await;
            let seen = next(&mut events.expect("it opens")).await;
            let mut read = Vec::new();
            for (event, namespace) in seen.expect("there are events").iter().zip(NAMESPACES) {
                if let WatchEvent::Elsewhere(version) = event {
                    assert_eq!(version, "5", "{namespace}");
                } else {
                    read.push(name(event).to_owned());
                }
            }
            assert_eq!(read, own(shard));
        }
    }
}

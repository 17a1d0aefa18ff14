//! Successful answers that are not the requested objects.

use super::*;

const VERSION: &[u8] = b"7";

fn list_in_protobuf(kind: &str, version: &[u8], items: &[&str]) -> Answer {
    let item = |name: &&str| {
        let metadata = [field(1, name.as_bytes()), field(3, b"n"), field(5, b"u")];
        field(2, &field(1, &metadata.concat()))
    };
    let items: Vec<_> = items.iter().flat_map(item).collect();
    let metadata = field(1, &field(2, version));
    Answer::bytes(200, document(kind, &[metadata, items].concat()))
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "message": "etcd is away"})
}

async fn error_of(answer: Answer) -> ApiError {
    let server = Server::start(vec![answer]).await;
    let read = list(&server.cluster).await;
    read.expect_err("it says nothing about pods")
}

#[tokio::test]
async fn empty_list_is_one_only_where_it_says_so() {
    let metadata = json!({"resourceVersion": "7"});
    let empty = json!({"kind": "PodList", "metadata": metadata, "items": []});
    for answer in [
        Answer::json(200, empty),
        list_in_protobuf("PodList", VERSION, &[]),
    ] {
        let server = Server::start(vec![answer]).await;
        let list = list(&server.cluster).await.expect("it is a list");
        assert_eq!((list.count(), list.resource_version.as_str()), (0, "7"));
    }
    let json_with = |list: Value| Answer::json(200, list);
    let wrong = [
        json_with(json!({"kind": "PodList", "metadata": metadata, "items": null})),
        json_with(json!({"kind": "PodList", "metadata": metadata})),
        json_with(json!({"kind": "PodList", "metadata": {}, "items": []})),
        json_with(json!({"kind": "NodeList", "metadata": metadata, "items": []})),
        json_with(json!({"kind": "ReplicaSetList", "metadata": metadata, "items": []})),
        json_with(json!({"metadata": metadata, "items": []})),
        json_with(json!({})),
        Answer::text(200, ""),
        list_in_protobuf("NodeList", VERSION, &["a"]),
        list_in_protobuf("", VERSION, &[]),
        list_in_protobuf("PodList", b"", &[]),
        Answer::bytes(200, b"k8s\0".to_vec()),
    ];
    for answer in wrong {
        let error = error_of(answer).await;
        assert_eq!(error.code, None, "{error:?}");
        assert!(error.message.starts_with("unreadable answer: "), "{error}");
    }
}

#[tokio::test]
async fn status_in_place_of_a_list_is_the_refusal_that_it_says() {
    let words = [field(2, b"Failure"), field(3, b"etcd is away")].concat();
    let code = [0x30, 0xf4, 0x03];
    let in_protobuf = document("Status", &[&words[..], &code].concat());
    for answer in [
        Answer::json(200, status(500)),
        Answer::bytes(200, in_protobuf),
    ] {
        let error = error_of(answer).await;
        let expected = "a Status instead of what was asked for: etcd is away";
        assert_eq!((error.code, error.message.as_str()), (Some(500), expected));
    }
}

#[tokio::test]
async fn event_about_an_object_of_another_kind_asks_for_a_new_list() {
    let node =
        json!({"kind": "Node", "metadata": {"name": "a", "uid": "u", "resourceVersion": "9"}});
    let bare = json!({"metadata": pod("a")["metadata"]});
    let lines = [
        json!({"type": "ADDED", "object": node}),
        json!({"type": "BOOKMARK", "object": node}),
        json!({"type": "DELETED", "object": status(500)}),
        json!({"type": "MODIFIED", "object": bare}),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat().into_bytes();
    let frame = |verb| frame_in(verb, "Node", &field(1, &field(1, b"a")));
    let garbled = vec![0, 0, 0, 2, 0xff, 0xff];
    let frames = [frame("ADDED"), frame("BOOKMARK"), garbled].concat();
    for (bytes, count) in [(lines, 4), (frames, 3)] {
        let server = Server::start(vec![Answer::stream(vec![bytes])]).await;
        let events = server.cluster.watch(Kind::Pod, "7".into()).await;
        let chunk = next(&mut events.expect("it opens")).await;
        let chunk = chunk.expect("there are events");
        let asks = |event: &WatchEvent| matches!(event, WatchEvent::Error(it) if !it.is_everyday() && it.code == Some(410));
        assert!(chunk.len() == count && chunk.iter().all(asks), "{chunk:?}");
    }
}

#[tokio::test]
async fn call_that_is_answered_with_another_kind_leaves_its_effect_unknown() {
    let set = json!({"kind": "ReplicaSet", "metadata": pod("a")["metadata"]});
    for answer in [status(500), set] {
        let server = Server::start(vec![Answer::json(201, answer.clone())]).await;
        let error = server.cluster.call(create("a")).await;
        assert_eq!(error.expect_err("it is no pod").code, None);
        let server = Server::start(vec![Answer::json(200, answer)]).await;
        let error = server.cluster.call(delete()).await;
        assert_eq!(error.expect_err("it says not what became of it").code, None);
    }
}

#[tokio::test]
async fn lease_that_is_none_is_held_by_somebody() {
    let answers = vec![
        Answer::json(200, json!({"kind": "Status", "status": "Failure"})),
        Answer::json(
            200,
            json!({"kind": "Lease", "metadata": {"resourceVersion": "3"}}),
        ),
    ];
    let server = Server::start(answers).await;
    let read = || server.cluster.lease("n", "l", &Command::Read);
    let error = read().await.expect_err("nothing says that it is free");
    assert_eq!(error.code, None);
    let free = read().await.expect("it is one");
    assert_eq!(
        (free.holder.as_str(), free.resource_version.as_str()),
        ("", "3")
    );
}

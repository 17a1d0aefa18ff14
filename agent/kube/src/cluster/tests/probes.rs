//! The probe, and what leaves once its agent stands by.

use agent_core::take_over::{BuiltIn, Command as ProbeCommand, Declaration, ProbeState};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::Probe;

const PATH: &str = "/apis/apps/v1/namespaces/decree-system/replicasets";

fn probe(server: &Server) -> Probe {
    Probe {
        cluster: server.cluster.clone(),
        namespace: "decree-system".into(),
    }
}

fn object(version: u32, generation: u32) -> Value {
    let metadata = json!({"resourceVersion": version.to_string(), "generation": generation});
    json!({"kind": "ReplicaSet", "metadata": metadata})
}

fn event(verb: &str, object: Value) -> String {
    json!({"type": verb, "object": object}).to_string() + "\n"
}

fn generation(state: &ProbeState) -> i64 {
    state.generation
}

#[tokio::test(start_paused = true)]
async fn probe_is_followed_from_its_read_on_and_read_again_after_each_watch() {
    let events = [
        event("MODIFIED", object(8, 4)),
        event("BOOKMARK", object(9, 0)),
        event("DELETED", object(10, 4)),
        event("ERROR", json!({"code": 410})),
        event("MODIFIED", object(11, 9)),
    ];
    let forbidden = json!({"kind": "Status", "code": 403, "message": "no"});
    let server = Server::start(vec![
        Answer::json(200, object(7, 3)),
        Answer::stream(events.map(String::into_bytes).to_vec()),
        Answer::json(404, json!({"kind": "Status", "code": 404})),
        Answer::json(403, forbidden.clone()),
        Answer::json(200, object(12, 1)),
        Answer::json(403, forbidden),
    ])
    .await;
    let (news, mut states) = mpsc::channel(1);
    let following = tokio::spawn(probe(&server).follow(news));
    let mut seen = Vec::new();
    for _ in 0..7 {
        let state = states.recv().await.expect("it goes on");
        seen.push(match state {
            Ok(state) => state.as_ref().map_or(0, generation),
            Err(error) => -i64::from(error.code.unwrap_or(0)),
        });
    }
    following.abort();
    assert_eq!(seen, [3, 4, 0, 0, -403, 1, -403]);
    let lines: Vec<_> = server.asked().into_iter().map(|it| it.line).collect();
    assert_eq!(lines[0], format!("GET {PATH}/decree-probe"));
    assert_eq!(
        lines[1],
        format!(
            "GET {PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7&fieldSelector=metadata.name%3Ddecree-probe"
        )
    );
}

#[tokio::test]
async fn requests_of_agents_and_of_people_are_told_apart() {
    let answers = (0..4).map(|_| Answer::json(200, object(8, 4)));
    let server = Server::start(answers.collect()).await;
    let probe = probe(&server);
    let off = Declaration::parse("off");
    assert_eq!(off.built_in, BuiltIn::Off);
    for command in [
        ProbeCommand::Create(None),
        ProbeCommand::Ask,
        ProbeCommand::Record(off.clone(), "7".into()),
    ] {
        let state = probe.request(command).await;
        assert_eq!(state.as_ref().map(generation), Ok(4));
    }
    probe.declare(&off).await.expect("it is answered");
    let lines: Vec<_> = server.asked().into_iter().map(|it| it.line).collect();
    let patch = format!("PATCH {PATH}/decree-probe?fieldManager=decree");
    assert_eq!(
        lines,
        [
            format!("POST {PATH}?fieldManager=decree-agent"),
            format!("{patch}-agent"),
            format!("{patch}-agent"),
            patch,
        ]
    );
}

#[tokio::test]
async fn revoked_cluster_sends_nothing() {
    let server = Server::start(Vec::new()).await;
    let revoked = CancellationToken::new();
    let cluster = server.cluster.clone().until(revoked.clone());
    revoked.cancel();
    for call in [create("a"), delete()] {
        let refused = cluster.call(call).await.expect_err("it is revoked");
        assert_eq!(refused.code, Some(400), "it has no effect");
    }
    assert!(server.asked().is_empty());
}

//! A server of which one agent is not heard from, and of which one session does not answer.

use std::{net::SocketAddr, pin::Pin, sync::mpsc, thread};

use decree_api::v1::{
    self,
    inspection_service_server::{InspectionService, InspectionServiceServer},
};
use tokio::{net::TcpListener, runtime::Builder};
use tokio_stream::{Stream, wrappers::TcpListenerStream};
use tonic::{Code, Request, Response, Status, transport::Server};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::decree;
use crate::Exit;

struct HalfServer;

type Answer<T> = Result<Response<T>, Status>;

fn view(cluster: &str, missing: bool) -> v1::StaleView {
    v1::StaleView {
        cluster: cluster.to_owned(),
        cluster_uid: format!("{cluster}-uid"),
        age: Some(prost_types::Duration {
            seconds: 12,
            nanos: 0,
        }),
        missing,
        shard: if cluster == "south" { "2" } else { "" }.to_owned(),
    }
}

#[tonic::async_trait]
impl InspectionService for HalfServer {
    type WatchDecisionsStream =
        Pin<Box<dyn Stream<Item = Result<v1::WatchDecisionsResponse, Status>> + Send>>;

    async fn list_replica_sets(
        &self,
        request: Request<v1::ListReplicaSetsRequest>,
    ) -> Answer<v1::ListReplicaSetsResponse> {
        let web = v1::ReplicaSetSummary {
            cluster: "north".to_owned(),
            replica_set: Some(v1::ObjectRef {
                namespace: "default".to_owned(),
                name: "web".to_owned(),
                uid: "web-uid".to_owned(),
            }),
            ..v1::ReplicaSetSummary::default()
        };
        let is_asked = |cluster: &str| ["", cluster].contains(&&*request.get_ref().cluster);
        let mut answer = v1::ListReplicaSetsResponse::default();
        if is_asked("north") {
            if request.get_ref().page_token.is_empty() {
                answer.replica_sets.push(web);
            }
            answer.stale_views.push(view("north", false));
        }
        if is_asked("south") {
            // Of two pages, one lacks what the session knows.
            let is_first = request.get_ref().page_token.is_empty();
            answer.stale_views.push(view("south", !is_first));
            let next = if is_first { "next" } else { "" };
            next.clone_into(&mut answer.next_page_token);
        }
        Ok(Response::new(answer))
    }

    async fn list_sessions(
        &self,
        _: Request<v1::ListSessionsRequest>,
    ) -> Answer<v1::ListSessionsResponse> {
        let session = |cluster: &str| v1::SessionSummary {
            cluster_name: cluster.to_owned(),
            cluster_uid: format!("{cluster}-uid"),
            ..v1::SessionSummary::default()
        };
        Ok(Response::new(v1::ListSessionsResponse {
            sessions: ["north", "south"].map(session).into(),
            stale_views: ["north", "south"].map(|it| view(it, false)).into(),
            ..v1::ListSessionsResponse::default()
        }))
    }

    async fn simulate_cluster(
        &self,
        _: Request<v1::SimulateClusterRequest>,
    ) -> Answer<v1::SimulateClusterResponse> {
        Ok(Response::new(v1::SimulateClusterResponse {
            stale_views: vec![view("south", true)],
            ..v1::SimulateClusterResponse::default()
        }))
    }

    async fn get_replica_set(
        &self,
        _: Request<v1::GetReplicaSetRequest>,
    ) -> Answer<v1::GetReplicaSetResponse> {
        Ok(Response::new(v1::GetReplicaSetResponse {
            stale_view: Some(view("north", false)),
            ..v1::GetReplicaSetResponse::default()
        }))
    }

    /// Each watch ends after one decision. The second can continue after the first, and a third cannot.
    async fn watch_decisions(
        &self,
        request: Request<v1::WatchDecisionsRequest>,
    ) -> Answer<Self::WatchDecisionsStream> {
        let (action, token) = match &*request.get_ref().resume_token {
            "" => (v1::Action::Create, "first"),
            "first" => (v1::Action::Delete, "second"),
            _ => {
                let reason = "RESUME_TOKEN_EXPIRED";
                let details = ErrorDetails::with_error_info(reason, "decree.dev", []);
                let code = Code::OutOfRange;
                return Err(Status::with_error_details(code, "too late", details));
            }
        };
        let decision = v1::DecisionRecord {
            action: action.into(),
            ..v1::DecisionRecord::default()
        };
        let one = v1::WatchDecisionsResponse {
            decision: Some(decision),
            missed: 0,
            resume_token: token.to_owned(),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(one)))))
    }

    async fn list_differences(
        &self,
        request: Request<v1::ListDifferencesRequest>,
    ) -> Answer<v1::ListDifferencesResponse> {
        // Of two pages, one lacks what the session knows.
        let is_first = request.get_ref().page_token.is_empty();
        Ok(Response::new(v1::ListDifferencesResponse {
            shadows: 1,
            stale_views: vec![view("south", is_first)],
            next_page_token: if is_first { "next" } else { "" }.to_owned(),
            ..v1::ListDifferencesResponse::default()
        }))
    }
}

/// Starts the server, which ends with the test.
fn start() -> SocketAddr {
    let (started, address) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let _ = started.send(listener.local_addr().expect("it listens"));
            let server = Server::builder().add_service(InspectionServiceServer::new(HalfServer));
            let incoming = TcpListenerStream::new(listener);
            server.serve_with_incoming(incoming).await
        })
    });
    address.recv().expect("it starts")
}

#[test]
fn stale_views_are_named_and_missing_ones_are_no_success() {
    const NORTH: &str =
        "notice: cluster north may have changed: the server last heard from its agent 12s ago\n";
    const SOUTH: &str = "notice: cluster south, shard 2, is missing: its session does not answer; the server last heard from its agent 12s ago\n";
    const ABSENT: &str = "error: cluster south, shard 2, is missing: its session does not answer; the server last heard from its agent 12s ago\n";
    let both = format!("{NORTH}{SOUTH}");
    let url = format!("http://{}", start());
    for (words, exit, notices) in [
        ("get rs -A", Exit::Unreachable, &*both),
        ("get rs -A -o name", Exit::Unreachable, &both),
        ("get rs -A --cluster north", Exit::Done, NORTH),
        ("get rs -A --cluster south", Exit::Unreachable, SOUTH),
        // It is not said that a ReplicaSet does not exist.
        ("get rs web absent", Exit::Unreachable, &both),
        ("get rs deployment/absent", Exit::Unreachable, ABSENT),
        ("explain pod/absent-abcde", Exit::Unreachable, ABSENT),
        ("explain web", Exit::Done, NORTH),
        ("simulate --drain node-a", Exit::Unreachable, SOUTH),
        ("diff", Exit::Unreachable, SOUTH),
    ] {
        let words: Vec<_> = words.split(' ').chain(["--server", &url]).collect();
        let ended = decree(&words);
        assert_eq!((ended.exit, &*ended.err), (exit, notices), "{words:?}");
    }
    let listed = decree(&["get", "rs", "-A", "-o", "name", "--server", &url]);
    assert_eq!(listed.out, "replicaset.apps/web\n");
    let sessions = decree(&["get", "sessions", "--cluster", "south", "--server", &url]);
    assert_eq!(sessions.exit, Exit::Done);
    let text = "cluster south, shard 2, may have changed";
    assert!(
        sessions.out.contains("south") && sessions.err.contains(text),
        "{sessions:?}"
    );
}

#[test]
fn watch_that_breaks_goes_on_after_its_last_decision_or_says_that_it_cannot() {
    let url = format!("http://{}", start());
    let words = ["watch", "--count", "3", "--server", &url];
    let ended = decree(&words);
    const BROKEN: &str = "notice: the server ended the watch; trying again\n";
    const MISSED: &str = "notice: decisions before now may have been missed\n";
    assert_eq!(ended.err, [BROKEN, BROKEN, MISSED].concat());
    let actions = ended
        .out
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(2));
    let actions: Vec<_> = actions.flatten().collect();
    assert_eq!(actions, ["create", "delete", "create"], "{}", ended.out);
    assert_eq!(ended.exit, Exit::Done);
}

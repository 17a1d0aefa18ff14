//! Sessions that do not answer are named, and delay no other answer.

use std::{future::pending, sync::Arc, time::Duration};

use decree_api::v1::{inspection_service_server::InspectionService as _, reconcile_request::Frame};
use server_access::{Identity, Permissions};
use tokio::{
    task::{JoinHandle, yield_now},
    time::Instant,
};
use tonic::Request;

use super::*;
use crate::{
    clock::Clock, inspection::Inspection, registry::SessionHandle, session::tests::shared,
};

/// A session, and its task.
type Opened = (LiveSession, JoinHandle<()>);

/// A session of this shard of the cluster `c1`.
fn session(shard: &str, clock: Clock) -> Session {
    let hello = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(Frame::Hello(v1::Hello {
            protocol_min: 1,
            protocol_max: 1,
            agent_instance: "agent-0".to_owned(),
            cluster_uid: "c1".to_owned(),
            shard: shard.to_owned(),
            ..v1::Hello::default()
        })),
    };
    let config = shared().session_config();
    let session = Session::open(clock.now(), config, format!("id-{shard}"), hello);
    session.expect("a Hello")
}

/// Opens a session whose task does nothing but answer questions; a stuck one does not do that either.
fn open(shard: &str, is_stuck: bool) -> Opened {
    let clock = Clock::start();
    let session = session(shard, clock);
    let (handle, mut questions) = SessionHandle::new();
    let registered = LiveSession {
        identity: Arc::clone(session.identity()),
        handle,
    };
    let task = async move {
        if !is_stuck {
            questions.during(&session, clock, pending()).await
        }
        pending::<()>().await;
        drop(questions);
    };
    (registered, tokio::spawn(task))
}

fn viewer() -> Caller {
    Caller::new(
        Identity::Anonymous,
        std::net::Ipv4Addr::LOCALHOST.into(),
        Permissions::unrestricted(),
        None,
    )
}

#[tokio::test(start_paused = true)]
async fn sessions_that_do_not_answer_are_named_and_delay_no_answer() {
    let opened = [("a", false), ("b", true), ("c", false), ("d", true)];
    let (sessions, _tasks): (Vec<_>, Vec<_>) = opened
        .map(|(shard, is_stuck)| open(shard, is_stuck))
        .into_iter()
        .unzip();
    let (begun, viewer) = (Instant::now(), viewer());
    let answers = ask_all(&sessions, &viewer, |session, _| {
        Some(session.identity().shard.clone())
    });
    let Answers { given, missing } = answers.await;
    let given: Vec<_> = given.into_iter().map(|(_, shard)| shard).collect();
    assert_eq!(given, ["a", "c"]);
    assert_eq!(missing, ["id-b", "id-d"]);
    assert_eq!(
        begun.elapsed(),
        Duration::from_secs(3),
        "all are asked at once"
    );
}

#[tokio::test(start_paused = true)]
async fn session_that_knows_the_answer_does_not_wait_for_one_that_is_stuck() {
    let (sessions, _tasks): (Vec<_>, Vec<_>) =
        [open("a", true), open("b", false)].into_iter().unzip();
    let begun = Instant::now();
    let found = ask_first(sessions.clone(), &viewer(), |_, _| Some(Some(7))).await;
    let (session, answer) = found.expect("b answers").expect("it knows");
    assert_eq!((&*session.identity.shard, answer), ("b", 7));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // The stuck session may know what the other does not.
    let unknown = ask_first(sessions, &viewer(), |_, _| Some(None::<()>)).await;
    let refusal = unknown.expect_err("a has not answered");
    assert_eq!(refusal.reason(), "DEADLINE_EXCEEDED");
}

#[tokio::test(start_paused = true)]
async fn lists_have_every_session_and_name_the_one_that_is_stuck() {
    let shared = shared();
    let (sessions, _tasks): (Vec<_>, Vec<_>) =
        [open("a", true), open("b", false)].into_iter().unzip();
    let registrations = sessions.iter().map(|session| {
        let registry = Arc::clone(&shared.registry);
        registry
            .register(session.clone(), viewer().owner())
            .expect("it is the newest")
    });
    let _registrations: Vec<_> = registrations.collect();
    let inspection = Inspection(Arc::clone(&shared));
    let mut request = Request::new(v1::ListSessionsRequest::default());
    request.extensions_mut().insert(viewer());
    let listed = inspection
        .list_sessions(request)
        .await
        .expect("valid")
        .into_inner();
    let shards: Vec<_> = listed.sessions.iter().map(|it| &*it.shard).collect();
    assert_eq!(shards, ["a", "b"]);

    let mut request = Request::new(v1::ListReplicaSetsRequest::default());
    request.extensions_mut().insert(viewer());
    let listed = inspection
        .list_replica_sets(request)
        .await
        .expect("valid")
        .into_inner();
    let stale: Vec<_> = listed
        .stale_views
        .iter()
        .map(|it| (&*it.shard, it.missing))
        .collect();
    // Neither session has taken a frame for three seconds.
    assert_eq!(stale, [("a", true), ("b", false)]);
    assert_eq!(listed.stale_views[0].age.map(|age| age.seconds), Some(3));
}

#[tokio::test]
async fn question_without_end_keeps_its_session_from_nothing() {
    let (clock, (handle, mut questions)) = (Clock::start(), SessionHandle::new());
    let asked = tokio::spawn(async move { handle.ask(&viewer(), |_, _| None::<()>).await });
    let own_steps = async {
        for _ in 0..5 {
            yield_now().await;
        }
    };
    let session = session("a", clock);
    questions.during(&session, clock, own_steps).await;
    questions.work(&session, clock);
    assert!(!asked.is_finished(), "it is still asked");
    asked.abort();
}

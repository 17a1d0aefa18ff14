//! The conformance kit gives our agents a full score, and naive agents and servers a low one. The tier `grpc` runs the kit against our server.

use std::{pin::Pin, process::Command, time::Duration};

use conformance::{Program, Score, Target};
use decree::v1::{
    DecideRequest, DecideResponse, Limits, ReconcileRequest, ReconcileResponse,
    RenewSessionRequest, RenewSessionResponse, SimulateRequest, SimulateResponse, Welcome,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_response::Frame,
};
use tempfile::TempDir;
use tests::{binaries, tools};
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt as _, wrappers::TcpListenerStream};
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Endpoint, Server},
};

use crate::{embedded::Embedded, keeper, language::Examples, world};

#[tokio::test]
async fn our_agent_keeps_each_rule() {
    let score = conformance::run_agent(&Embedded::new()).await;
    let score = score.expect("a port is free");
    assert!(score.is_full(), "{score}");
    assert!(score.rows().len() > 25, "{score}");
    for row in score.rows() {
        let link = row.link();
        assert!(
            link.ends_with(&format!("/docs/protocol.md#{}", row.section)),
            "{link}"
        );
    }
}

#[tokio::test]
async fn server_that_says_welcome_and_no_more_keeps_what_that_suffices_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let serving = Server::builder()
        .add_service(DecisionServiceServer::new(Welcomes))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    let score = score_of(&address, "true").await;
    let kept = score.rows().iter().filter(|row| row.is_kept());
    let kept: Vec<_> = kept.map(|row| row.rule).collect();
    assert_eq!(
        kept,
        [
            "the first frame of the server is a Welcome with the session and its limits",
            "fields of a later version are ignored",
        ],
        "{score}"
    );
}

/// All agents run concurrently, because each of them mostly waits.
#[tokio::test]
async fn agents_in_all_languages_keep_each_rule() {
    let (go, python) = (Examples::go(), Examples::python());
    let (typescript, java) = (Examples::typescript(), Examples::java());
    tokio::join!(
        keep_each_rule("Go", go),
        keep_each_rule("Python", python),
        keep_each_rule("TypeScript", typescript),
        keep_each_rule("Java", java),
    );
}

async fn keep_each_rule(language: &str, examples: Option<Examples>) {
    let Some(examples) = examples else { return };
    let folder = TempDir::new().expect("a folder");
    let command = examples.subject(folder.path());
    let score = conformance::run_agent(&Program { command }).await;
    let score = score.expect("it starts");
    keeper::end_processes(folder.path());
    assert!(score.is_full(), "{language}: {score}");
    assert!(score.rows().len() > 25, "{language}: {score}");
}

#[tokio::test]
async fn naive_agent_breaks_the_rules_that_it_does_not_know() {
    let (Some(python), Some(packages)) = (tools::python(), tools::python_client()) else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let program = binaries::checkout().join("tests/clients/naive.py");
    let words = [
        "env".to_owned(),
        format!("PYTHONPATH={}", packages.display()),
        python.display().to_string(),
        program.display().to_string(),
        "{address}".to_owned(),
        "{replicas}".to_owned(),
        folder.path().display().to_string(),
    ];
    let subject = Program {
        command: words.into(),
    };
    let score = conformance::run_agent(&subject).await.expect("it starts");
    let broken = score.rows().iter().filter(|row| !row.is_kept());
    let broken: Vec<_> = broken.map(|row| row.rule).collect();
    // A kill loses a pod because of the deletion that hit another pod, and because of the create of an ended session. A server
    // that reads late misses outcomes because of adoptions, which have none.
    assert_eq!(
        broken,
        [
            "a batch of another session has no effect",
            "a batch of another epoch has no effect",
            "a superseded agent does not come back at once",
            "a gap in the numbers of the server ends the session",
            "a number of the server that comes twice ends the session",
            "a Resync is answered with a list, which contains what was written",
            "a batch of a ReplicaSet that is not known by name and uid has no effect",
            "a create of a name that exists makes no second pod",
            "each operation has exactly one outcome",
            "an adoption of a missing pod has an outcome other than Done",
            "a deletion hits the pod of its uid and no other",
            "a quiet agent sends heartbeats",
            "a server that reads late gets each outcome, once",
            "calls that are in flight at a cut end before the next Hello, and the lists show what they did",
            "a drained agent sends its outcomes, closes the stream and comes back",
            "a drained agent stays away for as long as the Drain asks",
            "an agent that is stopped closes its stream and ends",
            "a server that is silent for four intervals is left",
            "an agent that was killed comes back with what it had made, and no more",
            "an agent that is refused comes back after the delay it was told",
        ],
        "{score}"
    );
}

#[test]
fn only_rules_with_a_text_are_tested() {
    let server = world::server("127.0.0.1:0");
    let target = format!("http://{}", server.address("grpc"));
    let test = |only: &str| {
        let mut command = Command::new(binaries::folder().join("decree-conformance"));
        command.args(["server", "--target", &target, "-o", "json"]);
        command
            .args(["--only", only])
            .output()
            .expect("it is built")
    };
    let output = test("lower epoch");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("an array");
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        let verdict = (
            &row["kept"],
            row["fault"].is_null(),
            row["skipped"].is_null(),
        );
        assert_eq!(verdict, (&true.into(), true, true), "{row}");
    }
    let skipped = test("sends Drain with a deadline");
    assert_eq!(skipped.status.code(), Some(0), "{skipped:?}");
    let rows: serde_json::Value = serde_json::from_slice(&skipped.stdout).expect("JSON");
    assert_eq!(rows[0]["skipped"], "no command stops the server");
    assert_eq!(rows[0]["kept"], false);
    assert_eq!(test("no rule says this").status.code(), Some(2));
}

async fn score_of(address: &str, stop: &str) -> Score {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let endpoint = conformance::narrow(endpoint.expect("it is an address"));
    let target = Target {
        channel: endpoint.connect().await.expect("it listens"),
        stop: Some(stop.to_owned()),
        only: String::new(),
    };
    conformance::run_server(&target).await
}

/// Sends a Welcome to every client, whatever the Hello.
struct Welcomes;

#[tonic::async_trait]
impl DecisionService for Welcomes {
    type ReconcileStream = Pin<Box<dyn Stream<Item = Result<ReconcileResponse, Status>> + Send>>;

    async fn reconcile(
        &self,
        _request: Request<Streaming<ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let welcome = Welcome {
            protocol: 2_000,
            session_id: "the only one".to_owned(),
            limits: Some(Limits {
                max_frame_bytes: 4 << 20,
                ..Limits::default()
            }),
            heartbeat_interval: Duration::from_secs(1).try_into().ok(),
            ..Welcome::default()
        };
        let frame = ReconcileResponse {
            sequence: 1,
            frame: Some(Frame::Welcome(welcome)),
        };
        let rest = tokio_stream::pending();
        Ok(Response::new(Box::pin(
            tokio_stream::once(Ok(frame)).chain(rest),
        )))
    }

    async fn renew_session(
        &self,
        _request: Request<RenewSessionRequest>,
    ) -> Result<Response<RenewSessionResponse>, Status> {
        Ok(Response::new(RenewSessionResponse::default()))
    }

    async fn decide(
        &self,
        _request: Request<DecideRequest>,
    ) -> Result<Response<DecideResponse>, Status> {
        Ok(Response::new(DecideResponse::default()))
    }

    async fn simulate(
        &self,
        _request: Request<SimulateRequest>,
    ) -> Result<Response<SimulateResponse>, Status> {
        Ok(Response::new(SimulateResponse::default()))
    }
}

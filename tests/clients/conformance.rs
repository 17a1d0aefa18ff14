//! The conformance kit gives our server a full score, and one that does nothing a poor one.

use std::{pin::Pin, time::Duration};

use conformance::Score;
use decree::v1::{
    DecideRequest, DecideResponse, Limits, ReconcileRequest, ReconcileResponse,
    RenewSessionRequest, RenewSessionResponse, SimulateRequest, SimulateResponse, Welcome,
    decision_service_server::{DecisionService, DecisionServiceServer},
    reconcile_response::Frame,
};
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt as _, wrappers::TcpListenerStream};
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Endpoint, Server},
};

use crate::world;

#[tokio::test]
async fn our_server_keeps_each_rule() {
    let server = world::server("127.0.0.1:0");
    let score = score_of(&server.address("grpc")).await;
    assert!(score.is_full(), "{score}");
    assert!(score.rows.len() > 40, "{score}");
}

#[tokio::test]
async fn server_that_says_welcome_and_no_more_keeps_what_that_suffices_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let serving = Server::builder()
        .add_service(DecisionServiceServer::new(Welcomes))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    let score = score_of(&address).await;
    let kept = score.rows.iter().filter(|row| row.fault.is_none());
    let kept: Vec<_> = kept.map(|row| row.rule).collect();
    assert_eq!(
        kept,
        ["the first frame of the server is a Welcome with the session and its limits"],
        "{score}"
    );
}

async fn score_of(address: &str) -> Score {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let endpoint = endpoint.expect("it is an address");
    conformance::run(endpoint.connect().await.expect("it listens")).await
}

/// Says Welcome to everyone, whatever they say.
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

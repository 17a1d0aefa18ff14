//! Services that answer as they should, and services that do not.

use std::net::SocketAddr;

use decree_api::v1::scale_in_service_server::{ScaleInService, ScaleInServiceServer};
use service::transport::ListenEndpoint;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Response, Status, transport::Server};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Answers about `default/web` with these costs, and never about any other ReplicaSet.
#[derive(Clone, Debug)]
struct Service(Result<Vec<v1::PodCost>, Status>);

#[tonic::async_trait]
impl ScaleInService for Service {
    async fn rank(
        &self,
        request: Request<v1::RankRequest>,
    ) -> Result<Response<v1::RankResponse>, Status> {
        if request.get_ref().replica_set.is_none() {
            std::future::pending::<()>().await;
        }
        let costs = self.0.clone()?;
        Ok(Response::new(v1::RankResponse { costs }))
    }
}

async fn start(service: Service) -> Connector {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = Server::builder().add_service(ScaleInServiceServer::new(service));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    connector(address)
}

fn connector(address: SocketAddr) -> Connector {
    Connector::local(&ListenEndpoint::Tcp(address))
}

fn request(pods: &[&str]) -> v1::RankRequest {
    let pod = |uid: &&str| v1::ObjectRef {
        uid: (*uid).to_owned(),
        ..v1::ObjectRef::default()
    };
    v1::RankRequest {
        replica_set: Some(v1::ObjectRef::default()),
        pods: pods.iter().map(pod).collect(),
    }
}

fn cost(uid: &str, cost: Option<i32>, failure: &str) -> v1::PodCost {
    v1::PodCost {
        uid: uid.to_owned(),
        cost,
        failure: failure.to_owned(),
    }
}

#[tokio::test]
async fn each_pod_has_the_first_cost_that_the_service_gives() {
    let costs = vec![
        cost("b", Some(7), ""),
        cost("x", Some(1), ""),
        cost("a", None, "unknown"),
        cost("b", Some(8), ""),
    ];
    let service = start(Service(Ok(costs))).await;
    let none = Err("the service gave no cost".to_owned());
    let ranked = rank(Some(service), request(&["a", "b", "c"]), SECOND).await;
    assert_eq!(ranked, [Err("unknown".to_owned()), Ok(7), none]);
}

#[tokio::test]
async fn pods_of_a_service_that_fails_have_its_reason() {
    let why = async |service: Option<Connector>, request: v1::RankRequest| {
        let mut ranked = rank(service, request, SECOND / 4).await;
        assert!(ranked.len() == 2 && ranked[0] == ranked[1], "{ranked:?}");
        ranked.remove(0).expect_err("there is no cost")
    };
    let both = || request(&["a", "b"]);
    let refuses = start(Service(Err(Status::unavailable("no jobs yet")))).await;
    assert_eq!(why(Some(refuses), both()).await, "Unavailable: no jobs yet");
    let huge = vec![cost("a", None, &"x".repeat(RESPONSE_BYTES_MAX))];
    let huge = why(Some(start(Service(Ok(huge))).await), both()).await;
    assert!(huge.contains("message length too large"), "{huge}");
    let silent = v1::RankRequest {
        replica_set: None,
        ..both()
    };
    let service = start(Service(Ok(Vec::new()))).await;
    assert_eq!(why(Some(service), silent).await, NO_ANSWER);
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = nobody.local_addr().expect("it is bound");
    drop(nobody);
    let refused = why(Some(connector(address)), both()).await;
    assert!(refused.contains("refused"), "{refused}");
    assert_eq!(why(None, both()).await, "the agent has no service");
}

//! Health and reflection.

use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1alpha::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::running::{Running, soon};

const SERVICES: [&str; 3] = [
    "",
    "decree.v1.DecisionService",
    "decree.v1.InspectionService",
];

async fn check(channel: Channel, service: &str) -> Result<ServingStatus, tonic::Status> {
    let service = service.to_owned();
    let answer = HealthClient::new(channel)
        .check(HealthCheckRequest { service })
        .await?;
    Ok(answer.into_inner().status())
}

#[tokio::test]
async fn health_of_every_service_is_serving_and_an_unknown_one_is_not_found() {
    let server = Running::start().await;
    for service in SERVICES {
        let status = check(server.channel().await, service).await;
        assert_eq!(status.expect(service), ServingStatus::Serving);
    }
    let status = check(server.channel().await, "nobody.Here").await;
    assert_eq!(status.expect_err("unknown").code(), Code::NotFound);
    let handled = "grpc_server_handled_total{grpc_type=\"unary\",grpc_service=\"grpc.health.v1.Health\",\
                   grpc_method=\"Check\",grpc_code=\"OK\"}";
    let count = server.metric(handled).await;
    assert!((count - 3.0).abs() < f64::EPSILON, "{count}");
}

/// grpcurl asks v1, and older clients v1alpha. A larger request than any client makes ends the stream.
#[tokio::test]
async fn reflection_v1alpha_knows_every_service() {
    let server = Running::start().await;
    let ask = |request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let symbol = "decree.v1.DecisionService.Reconcile".to_owned();
    let questions = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(symbol)),
        ask(MessageRequest::ListServices("x".repeat(5 << 10))),
    ];
    let mut client = ServerReflectionClient::new(server.channel().await);
    let answers = client.server_reflection_info(tokio_stream::iter(questions));
    let mut answers = answers.await.expect("it is served").into_inner();
    let mut next = async || {
        let answer = soon(answers.message()).await.expect("an answer");
        answer.expect("one of two").message_response
    };
    let Some(MessageResponse::ListServicesResponse(list)) = next().await else {
        panic!("services were asked for")
    };
    let names: Vec<_> = list.service.iter().map(|it| it.name.as_str()).collect();
    for service in [SERVICES[1], SERVICES[2], "grpc.health.v1.Health"] {
        assert!(names.contains(&service), "{names:?}");
    }
    let second = next().await;
    assert!(matches!(
        second,
        Some(MessageResponse::FileDescriptorResponse(_))
    ));
    let third = soon(answers.message()).await;
    assert!(!matches!(third, Ok(Some(_))), "{third:?}");
}

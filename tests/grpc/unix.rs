//! A server on a Unix socket.

use decree_server::Config;
use service::transport::{Connector, ListenEndpoint};

use crate::running::{Running, soon, unhurried};

#[tokio::test]
async fn server_on_a_unix_socket_answers_there_and_takes_the_file_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.sock");
    let listen = ListenEndpoint::Unix(path.clone());
    let mut server = Running::start_with(Config {
        listen: listen.clone(),
        ..unhurried()
    })
    .await;
    assert_eq!(server.addresses.grpc, listen);
    let connector = Connector::local(&listen);
    let endpoint = tonic::transport::Endpoint::from(connector.endpoint().uri());
    let channel = soon(endpoint.connect_with_connector(connector)).await;
    let mut health =
        tonic_health::pb::health_client::HealthClient::new(channel.expect("it listens"));
    let asked = tonic_health::pb::HealthCheckRequest::default();
    soon(health.check(asked)).await.expect("it answers");
    drop(health);
    server.begin_stop();
    server.ended().await;
    assert!(!path.exists(), "the socket is gone");
}

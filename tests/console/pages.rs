//! Pages of other origins than that of the server, which ask it by gRPC-web.

use std::net::SocketAddr;

use decree_api::v1;
use prost::Message as _;
use serde_json::{Value, json};
use tests::objects::replica_set;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

const EMPTY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves an empty page. Returns its origin.
pub(crate) async fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // One read has a whole request of a browser.
                let _ = stream.read(&mut [0; 8_192]).await;
                let _ = stream.write_all(EMPTY).await;
            });
        }
    });
    format!("http://{address}")
}

/// What a story needs to ask: the server, the origins, and a message of `Decide`.
pub(crate) fn described(grpc: SocketAddr, [named, other]: &[String; 2]) -> Value {
    let request = v1::DecideRequest {
        replica_set: Some(replica_set("web").replicas(2).build()),
        ..v1::DecideRequest::default()
    };
    let server = format!("http://{grpc}");
    json!({"server": server, "named": named, "other": other, "decide": request.encode_to_vec()})
}

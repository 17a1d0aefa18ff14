//! gRPC-web: calls of pages in browsers, over HTTP/1.1.

use decree_api::v1;
use prost::Message as _;
use tests::objects::replica_set;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    access::Guarded,
    agent::hello,
    running::{Running, soon},
};

const PAGE: &str = "http://localhost:3000";
const SESSIONS: &str = "/decree.v1.InspectionService/ListSessions";
const WEB: &str = "application/grpc-web+proto";

/// Sends a request of a page. Returns everything that the server writes until it closes the connection.
async fn ask(server: &Running, line: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let mut stream = server.socket().await;
    let mut request = format!("{line} HTTP/1.1\r\nhost: server\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let request = [(request + "\r\n").as_bytes(), body].concat();
    // A server that speaks no HTTP/1.1 may close the connection before.
    let _ = stream.write_all(&request).await;
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).to_lowercase()
}

/// A message with the header of gRPC.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("few");
    [&[0], &length.to_be_bytes()[..], message].concat()
}

async fn call(server: &Running, path: &str, origin: &str, token: &str, message: &[u8]) -> String {
    let bearer = format!("Bearer {token}");
    let body = framed(message);
    let length = body.len().to_string();
    let headers = [
        ("origin", origin),
        ("content-type", WEB),
        ("authorization", &bearer),
        ("content-length", &length),
    ];
    let line = format!("POST {path}");
    ask(server, &line, &headers[..], &body).await
}

async fn start() -> Guarded {
    let page = PAGE.parse().expect("printable");
    Guarded::start_with(|access| access.grpc_web_origins = vec![page]).await
}

#[tokio::test]
async fn pages_of_declared_origins_ask_with_a_token() {
    let guarded = start().await;
    let server = &guarded.server;
    let named = v1::Hello {
        agent_instance: "agent-0".to_owned(),
        ..hello("a")
    };
    let _agent = guarded.open("agent-a", named).await.expect("its own");
    let token = guarded.issuer.token("viewer-a");
    let allowed = format!("access-control-allow-origin: {PAGE}\r\n");

    let listed = call(server, SESSIONS, PAGE, &token, &[]).await;
    assert!(listed.starts_with("http/1.1 200 "), "{listed}");
    for part in [&*allowed, "agent-0", "grpc-status:0"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    // The identity and the policy count as for every call.
    for (token, status) in [("", "16"), (&*guarded.issuer.token("stranger"), "7")] {
        let refused = call(server, SESSIONS, PAGE, token, &[]).await;
        let status = format!("grpc-status: {status}\r\n");
        assert!(refused.contains(&status), "{refused}");
        assert!(refused.contains(&allowed), "the page may read why");
    }
    let asked = v1::DecideRequest {
        replica_set: Some(replica_set("web").replicas(2).build()),
        ..v1::DecideRequest::default()
    };
    let decide = "/decree.v1.DecisionService/Decide";
    let decided = call(server, decide, PAGE, &token, &asked.encode_to_vec()).await;
    let pods = decided.replace("web-uid", "").matches("web-").count();
    assert_eq!(pods, 2, "{decided}");

    let before = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization,content-type",
        ),
    ];
    let permission = ask(server, &format!("OPTIONS {SESSIONS}"), &before, &[]).await;
    assert!(permission.starts_with("http/1.1 204 "), "{permission}");
    for part in [
        &*allowed,
        "allow-methods: post\r\n",
        "authorization, content-type",
    ] {
        assert!(permission.contains(part), "{part}: {permission}");
    }
    assert!(!permission.contains("credentials"), "{permission}");
}

#[tokio::test]
async fn other_pages_and_what_pages_do_not_need_is_refused() {
    let guarded = start().await;
    let server = &guarded.server;
    let token = guarded.issuer.token("admin");
    for origin in ["http://localhost:3001", "https://localhost:3000", "null"] {
        let refused = call(server, SESSIONS, origin, &token, &[]).await;
        assert!(refused.starts_with("http/1.1 403 "), "{refused}");
        let before = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
        ];
        let line = format!("OPTIONS {SESSIONS}");
        let permission = ask(server, &line, &before, &[]).await;
        assert!(permission.starts_with("http/1.1 403 "), "{permission}");
        for answer in [refused, permission] {
            assert!(!answer.contains("access-control-allow"), "{answer}");
        }
    }
    let token = guarded.issuer.token("agent-a");
    for method in ["Reconcile", "RenewSession"] {
        let path = format!("/decree.v1.DecisionService/{method}");
        let refused = call(server, &path, PAGE, &token, &[]).await;
        assert!(refused.starts_with("http/1.1 403 "), "{refused}");
    }
    // A form of a page needs no permission to be sent.
    let plain = [("content-type", "text/plain"), ("content-length", "0")];
    let refused = ask(server, &format!("POST {SESSIONS}"), &plain, &[]).await;
    assert!(refused.starts_with("http/1.1 400 "), "{refused}");
}

#[tokio::test]
async fn message_in_chunks_is_whole_at_its_end() {
    let guarded = start().await;
    let bearer = format!("Bearer {}", guarded.issuer.token("viewer-a"));
    let headers = [
        ("content-type", WEB),
        ("authorization", &bearer),
        ("transfer-encoding", "chunked"),
    ];
    let line = format!("POST {SESSIONS}");
    let body = b"5\r\n\0\0\0\0\0\r\n0\r\n\r\n";
    let listed = ask(&guarded.server, &line, &headers, body).await;
    assert!(listed.contains("grpc-status:0"), "{listed}");
}

#[tokio::test]
async fn server_without_declared_origins_speaks_no_http_1() {
    let server = Running::start().await;
    let answer = call(&server, SESSIONS, PAGE, "", &[]).await;
    assert!(!answer.starts_with("http/1"), "{answer}");
}

//! Invalid handshakes, other versions, and handshakes with a wrong server.

use std::time::{Duration, SystemTime};

use decree_server::Config;
use rcgen::ExtendedKeyUsagePurpose;
use service::transport::ClientAuth;
use tests::pki::{Authority, Files, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{HOUR, Stand, agent};
use crate::running::{Running, soon, unhurried};

/// The first message of a client that supports TLS 1.2 and no later version: two of its ciphers, and no list of versions.
const HELLO_OF_TLS_1_2: [u8; 76] = [
    0x16, 3, 1, 0, 71, 1, 0, 0, 67, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0, 0, 6, 0xc0, 0x2b, 0xc0, 0x2f, 0,
    0x9c, 1, 0, 0, 20, 0, 10, 0, 6, 0, 4, 0, 29, 0, 23, 0, 13, 0, 6, 0, 4, 4, 3, 8, 4,
];
/// The alert `protocol_version`.
const PROTOCOL_VERSION: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 70];

#[tokio::test]
async fn what_is_no_handshake_of_tls_1_3_ends_soon_and_is_counted() {
    let authority = Authority::new("CA of the tests");
    let files = Files::new(&authority.issue(&Request::server()), &authority.pem);
    let server = Running::start_with(Config {
        tls: files.server(ClientAuth::Require),
        hello_deadline: Duration::from_millis(200),
        ..unhurried()
    })
    .await;
    for (bytes, reason) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], "not_tls"),
        (&HELLO_OF_TLS_1_2, "incompatible"),
        (&[], "deadline"),
    ] {
        let mut stream = server.socket().await;
        stream.write_all(bytes).await.expect("it reads");
        let mut answer = Vec::new();
        // An alert may come first, and the end may be a reset.
        let _ = soon(stream.read_to_end(&mut answer)).await;
        if reason == "incompatible" {
            assert_eq!(answer, PROTOCOL_VERSION);
        }
        let series = format!("decree_tls_handshake_failures_total{{reason=\"{reason}\"}}");
        server.until(&series, |count| count >= 1.0).await;
    }
}

#[tokio::test]
async fn server_is_refused_by_name_time_and_ca() {
    let now = SystemTime::now();
    let authority = Authority::new("CA of the tests");
    let mut named = Request::server();
    named.names = vec!["elsewhere.example".to_owned()];
    let expired = Request::server().valid(now - 2 * HOUR, now - HOUR);
    let purpose = Request::server().usage(ExtendedKeyUsagePurpose::ClientAuth);
    let stranger = Authority::new("another");
    for (pair, word) in [
        (authority.issue(&named), "127.0.0.1"),
        (authority.issue(&expired), "expired at"),
        (authority.issue(&purpose), "extended key usage"),
        (stranger.issue(&Request::server()), "--tls-ca"),
    ] {
        let stand = Stand::start_with(ClientAuth::Require, |_, files| {
            files.write("tls.crt", &pair.cert);
            files.write("tls.key", &pair.key);
        })
        .await;
        let files = Files::new(&authority.issue(&agent()), &authority.pem);
        let error = stand.call(&files.client()).await.expect_err(word);
        assert!(error.contains(word), "{error}");
    }
}

#[tokio::test]
async fn server_can_be_known_by_another_name_than_its_address() {
    let stand = Stand::start().await;
    let files = stand.client(&stand.authority.issue(&agent()));
    let mut args = files.client();
    args.tls_server_name = Some("localhost".to_owned());
    stand.call(&args).await.expect("it is one of its names");
    args.tls_server_name = Some("decree.example".to_owned());
    stand
        .call(&args)
        .await
        .expect_err("it is none of its names");
}

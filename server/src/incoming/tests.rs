//! Ends of connections whose peers do not read.

use std::{fs, path::PathBuf};

use http::Uri;
use service::transport::{ClientArgs, Connector, ServerArgs, TlsArgs};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt,
    time::{pause, timeout},
};
use tower::Service;

use super::*;
use crate::session::tests::shared;

const PATIENCE: Duration = Duration::from_mins(1);

/// A certificate for `localhost`, and its key.
fn files(folder: &TempDir) -> (PathBuf, PathBuf) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let pair = pair.expect("it can be made");
    let file = |name, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    };
    (
        file("certificate", pair.cert.pem()),
        file("key", pair.signing_key.serialize_pem()),
    )
}

/// A connection over TLS, and its client.
async fn connected(folder: &TempDir) -> (Connection, impl Sized) {
    let (certificate, key) = files(folder);
    let shared = shared();
    let settings = AcceptSettings {
        cut: CancellationToken::new(),
        stop: CancellationToken::new(),
        shared,
    };
    let metrics = settings.shared.metrics.tls.clone();
    let client = ClientArgs {
        files: TlsArgs {
            tls_ca: Some(certificate.clone()),
            ..TlsArgs::default()
        },
        ..ClientArgs::default()
    };
    let server = ServerArgs {
        files: TlsArgs {
            tls_cert: Some(certificate),
            tls_key: Some(key),
            ..TlsArgs::default()
        },
        ..ServerArgs::default()
    };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&listen).await.expect("a free port");
    let endpoint = listener.endpoint().clone();
    let deadline = settings.shared.config.hello_deadline;
    let acceptor = Acceptor::new(&endpoint, &server, deadline, metrics.clone());
    let port = endpoint.tcp().expect("it is TCP").port();
    let url = format!("https://localhost:{port}");
    let connector = Connector::new(url.parse().expect("a URL"), &client, metrics);
    let mut connector = connector.expect("the files are valid");
    let connecting = connector.call(Uri::default());
    let accepting = async {
        let socket = listener.accept().await.expect("a connection");
        let owner = Owner::Unproven(socket.address.ip().into());
        let slot = settings
            .shared
            .connections
            .take(owner, 1, EndSignal::default());
        let slot = slot.expect("there are more");
        let acceptor = acceptor.expect("the files are valid");
        Connection::open(socket, acceptor, settings.clone(), slot).await
    };
    let (client, connection) = tokio::join!(connecting, accepting);
    let connection = connection.expect("a handshake");
    (connection, client.expect("a handshake"))
}

#[tokio::test]
async fn connection_that_is_flushed_or_closed_ends_although_its_peer_does_not_read() {
    let folder = TempDir::new().expect("a folder");
    let (mut connection, _client) = connected(&folder).await;
    // The deadlines of the connection pass at once when nothing else can happen.
    pause();
    let unread = connection.write_all(&vec![0; 64 << 20]).await;
    let flushed = timeout(PATIENCE, connection.flush()).await;
    let closed = timeout(PATIENCE, connection.shutdown()).await;
    for ended in [Ok(unread), flushed, closed] {
        let ended = ended.expect("it ends").map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::TimedOut));
    }
}

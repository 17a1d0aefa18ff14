//! An API server that only proxies with a password can reach: with CONNECT over TCP and over TLS, and with SOCKS.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::json;
use tempfile::TempDir;
use tests::real::{Agent, ApiServer, DecisionServer, Namespace, User};
use tokio::{
    io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Result, copy_bidirectional,
    },
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::{acts, objects};

/// The name of the API server at the proxy: no resolver knows a host of this domain.
const HOST: &str = "api.invalid:443";
const USER: &str = "agent";
const PASSWORD: &str = "let me in";

/// A proxy, which ends when this is dropped.
struct Proxy {
    address: SocketAddr,
    folder: TempDir,
    task: JoinHandle<()>,
}

#[derive(Clone)]
enum Protocol {
    /// CONNECT.
    Http,
    /// CONNECT, over TLS.
    Https(TlsAcceptor),
    /// SOCKS 5.
    Socks,
}

impl Proxy {
    /// Starts a proxy that connects requests for [`HOST`] to an API server, and refuses all other requests.
    async fn start(cluster: &ApiServer, protocol: Protocol) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there are free ports");
        let address = listener.local_addr().expect("it is bound");
        let target = cluster.url().trim_start_matches("https://").to_owned();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (protocol, target) = (protocol.clone(), target.clone());
                tokio::spawn(async move { serve(stream, &protocol, &target).await });
            }
        });
        Self {
            address,
            folder: TempDir::with_prefix("decree-proxy-").expect("there is room"),
            task,
        }
    }

    /// The kubeconfig of a user with all permissions that uses this proxy.
    fn kubeconfig(&self, cluster: &ApiServer, scheme: &str) -> PathBuf {
        let text = fs::read_to_string(cluster.kubeconfig(User::Admin)).expect("it is there");
        let direct = format!("server: \"{}\"", cluster.url());
        assert!(text.contains(&direct), "{text}");
        let proxy = format!(
            "{scheme}://{USER}:{}@{}",
            PASSWORD.replace(' ', "%20"),
            self.address
        );
        let through = format!(
            "server: \"https://{HOST}\", tls-server-name: \"127.0.0.1\", proxy-url: \"{proxy}\""
        );
        let file = self.folder.path().join("proxied.kubeconfig");
        fs::write(&file, text.replace(&direct, &through)).expect("there is room");
        file
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connects a client to the API server.
async fn serve(mut stream: TcpStream, protocol: &Protocol, target: &str) -> Result<()> {
    match protocol {
        Protocol::Http => connect(stream, target).await,
        Protocol::Https(acceptor) => connect(acceptor.accept(stream).await?, target).await,
        Protocol::Socks => {
            if greet(&mut stream).await? != HOST {
                // Not allowed by the rules.
                return stream.write_all(&[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]).await;
            }
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            lead(stream, target).await
        }
    }
}

/// Speaks HTTP, and connects a client that knows the password.
async fn connect(mut stream: impl AsyncRead + AsyncWrite + Unpin, target: &str) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let password = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let is_right = head.contains(&format!("Basic {password}\r\n"));
    if !is_right || !head.starts_with(&format!("CONNECT {HOST} HTTP/1.1\r\n")) {
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    lead(stream, target).await
}

/// Speaks SOCKS 5 up to the answer (RFC 1928 and 1929), and returns the requested host and port; empty if the password is wrong.
async fn greet(stream: &mut TcpStream) -> Result<String> {
    let _version = stream.read_u8().await?;
    let methods = text(stream).await?;
    assert!(methods.as_bytes().contains(&2), "it offers a password");
    stream.write_all(&[5, 2]).await?;
    let _version = stream.read_u8().await?;
    let (user, password) = (text(stream).await?, text(stream).await?);
    let is_right = user == USER && password == PASSWORD;
    stream.write_all(&[1, u8::from(!is_right)]).await?;
    if !is_right {
        return Ok(String::new());
    }
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    assert_eq!(head, [5, 1, 0, 3], "it asks to connect to a name");
    let host = text(stream).await?;
    Ok(format!("{host}:{}", stream.read_u16().await?))
}

/// Reads a text with a length prefix.
async fn text(stream: &mut TcpStream) -> Result<String> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn lead(mut stream: impl AsyncRead + AsyncWrite + Unpin, target: &str) -> Result<()> {
    let mut api = TcpStream::connect(target).await?;
    copy_bidirectional(&mut stream, &mut api).await.map(drop)
}

/// TLS with the certificate of the API server, which clients of the proxy trust.
fn tls(cluster: &ApiServer) -> TlsAcceptor {
    let certificate = cluster.ca();
    let key = PrivateKeyDer::from_pem_file(certificate.with_extension("key"));
    let chain: Vec<_> = CertificateDer::pem_file_iter(&certificate)
        .expect("it is there")
        .collect::<std::result::Result<_, _>>()
        .expect("they are certificates");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key.expect("it is there"));
    TlsAcceptor::from(Arc::new(config.expect("they belong together")))
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_acts_through_each_kind_of_proxy() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    for (scheme, protocol) in [
        ("http", Protocol::Http),
        ("https", Protocol::Https(tls(cluster))),
        ("socks5", Protocol::Socks),
    ] {
        let proxy = Proxy::start(cluster, protocol).await;
        let name = format!("behind-{scheme}");
        let namespace = Namespace::create(cluster.admin().await, &name).await;
        let server = DecisionServer::start();
        let kubeconfig = proxy.kubeconfig(cluster, scheme);
        let flags = ["--leader-elect=false", "--namespace", &name];
        let _agent = Agent::start(&server, &kubeconfig, &flags);
        acts::create_set(&namespace, &objects::replica_set("web", 3)).await;
        acts::pods_become(&namespace, 3).await;
        let status = json!({"replicas": 3, "fullyLabeledReplicas": 3});
        acts::status_becomes(&namespace, "web", &status).await;
    }
}

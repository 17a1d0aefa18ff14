//! Certificates, users of a Unix socket and tokens as identities: their permissions under one policy.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use decree::v1::{self, decision_service_client::DecisionServiceClient, reconcile_request::Frame};
use decree_server::{AccessArgs, Config};
use service::transport::{ClientAuth, Connector, Endpoint, ListenEndpoint, Metrics};
use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    pki::{Authority, Files, Request},
};
use tonic::{Code, Status, transport::Channel};

use crate::{
    agent::{Agent, bearing, hello},
    refusal::assert_refusal,
    running::{Running, soon, unhurried},
};

const POLICY: &str = r#"
[[grant]]
identities = ["spiffe://decree.test/agent/a", "sub:agent-a"]
role = "agent"
clusters = ["a"]

[[grant]]
identities = ["spiffe://decree.test/agent/b", "dns:agent-b.decree.test"]
role = "agent"
clusters = ["b"]
"#;

/// A server with certificates and a policy, and their issuer.
struct Stand {
    server: Running,
    authority: Authority,
    issuer: Issuer,
    _files: Files,
    _folder: TempDir,
}

impl Stand {
    async fn start() -> Self {
        Self::start_with(Some(POLICY)).await
    }

    async fn start_with(policy: Option<&str>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::new(folder.path());
        let authority = Authority::new("CA of the tests");
        let files = Files::new(&authority.issue(&Request::server()), &authority.pem);
        let access = AccessArgs {
            policy: policy.map(|text| write(folder.path(), text)),
            token_keys: Some(issuer.file().display().to_string()),
            token_issuer: Some(ISSUER.to_owned()),
            ..AccessArgs::default()
        };
        let config = Config {
            access,
            tls: files.server(ClientAuth::Optional),
            ..unhurried()
        };
        Self {
            server: Running::start_with(config).await,
            authority,
            issuer,
            _files: files,
            _folder: folder,
        }
    }

    /// Connects with a certificate of these names.
    async fn channel(&self, uris: &[&str], names: &[&str]) -> Channel {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let pair = self.authority.issue(&Request {
            uris: owned(uris),
            names: owned(names),
            ..Request::client("")
        });
        let files = Files::new(&pair, &self.authority.pem);
        let url = format!("https://{}", self.server.addresses.grpc);
        let endpoint: Endpoint = url.parse().expect("a URL");
        let connector = Connector::new(endpoint, &files.client(), Metrics::default());
        connect(connector.expect("the files are right")).await
    }

    /// Sends a Hello for a cluster with a certificate of these names.
    async fn open(&self, uris: &[&str], names: &[&str], cluster: &str) -> Result<Agent, Status> {
        open(self.channel(uris, names).await, None, cluster).await
    }
}

fn write(folder: &Path, policy: &str) -> std::path::PathBuf {
    let path = folder.join("policy.toml");
    fs::write(&path, policy).expect("it can be written");
    path
}

async fn connect(connector: Connector) -> Channel {
    let endpoint = tonic::transport::Endpoint::from(connector.endpoint().uri());
    let channel = soon(endpoint.connect_with_connector(connector)).await;
    channel.expect("it is let in")
}

async fn open(channel: Channel, token: Option<&str>, cluster: &str) -> Result<Agent, Status> {
    let mut agent = Agent::stream(DecisionServiceClient::new(channel), token).await?;
    agent.send(Frame::Hello(hello(cluster))).await;
    agent.next_message().await.map(|_| agent)
}

const A: &str = "spiffe://decree.test/agent/a";
const B: &str = "spiffe://decree.test/agent/b";

#[tokio::test]
async fn spiffe_id_of_one_cluster_opens_no_session_of_another() {
    let stand = Stand::start().await;
    let mut owner = stand.open(&[A], &[], "a").await.expect("its own");
    let denied = stand.open(&[B], &[], "a").await.err().expect("a's");
    assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    assert!(denied.message().starts_with(B), "{denied:?}");
    assert!(!denied.message().contains(A), "{denied:?}");
    owner.snapshot(vec![], vec![]).await;
    owner.prove_alive().await;
    assert!(stand.open(&[B], &[], "b").await.is_ok());
}

#[tokio::test]
async fn certificate_with_no_name_or_with_two_is_nobody_with_and_without_a_policy() {
    for policy in [Some(POLICY), None] {
        let stand = Stand::start_with(policy).await;
        let names = ["x.decree.test", "y.decree.test"];
        for (uris, names, reason) in [
            (&[][..], &[][..], "IDENTITY_MISSING"),
            (&[A, B], &[], "IDENTITY_AMBIGUOUS"),
            (&[], &names, "IDENTITY_AMBIGUOUS"),
        ] {
            let denied = stand.open(uris, names, "a").await.err().expect(reason);
            assert_refusal(&denied, Code::PermissionDenied, reason);
        }
    }
}

#[tokio::test]
async fn certificate_that_no_grant_names_may_nothing() {
    let stand = Stand::start().await;
    for (uri, name) in [
        ("spiffe://decree.test/other", "x"),
        ("spiffe://elsewhere.test/agent/a", "y"),
    ] {
        let denied = stand.open(&[uri], &[name], "a").await.err().expect(uri);
        assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    }
}

#[tokio::test]
async fn dns_name_of_a_certificate_without_a_uri_is_its_identity() {
    let stand = Stand::start().await;
    let name = "agent-b.decree.test";
    assert!(stand.open(&[], &[name], "b").await.is_ok());
    let denied = stand.open(&[A], &[name], "b").await;
    let denied = denied.err().expect("the URI counts");
    assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
}

#[tokio::test]
async fn token_counts_before_the_certificate_it_comes_with() {
    let stand = Stand::start().await;
    let token = stand.issuer.token("agent-a");
    let channel = stand.channel(&[B], &[]).await;
    assert!(open(channel.clone(), Some(&token), "a").await.is_ok());
    for (token, code, reason) in [
        (&*token, Code::PermissionDenied, "NOT_ALLOWED"),
        ("no.to.ken", Code::Unauthenticated, "TOKEN_INVALID"),
    ] {
        let denied = open(channel.clone(), Some(token), "b").await;
        assert_refusal(&denied.err().expect(reason), code, reason);
    }
}

#[tokio::test]
async fn user_at_a_unix_socket_is_an_identity() {
    let folder = TempDir::new().expect("a folder");
    let us = fs::metadata(folder.path()).expect("it is ours").uid();
    for (uid, is_allowed) in [(us, true), (us.wrapping_add(1), false)] {
        let policy = format!(
            "[[grant]]\nidentities = [\"uid:{uid}\"]\nrole = \"viewer\"\nnames = [\"*\"]\n"
        );
        let listen = ListenEndpoint::Unix(folder.path().join(format!("{uid}.sock")));
        let access = AccessArgs {
            policy: Some(write(folder.path(), &policy)),
            ..AccessArgs::default()
        };
        let config = Config {
            listen: listen.clone(),
            access,
            ..unhurried()
        };
        let _server = Running::start_with(config).await;
        let channel = connect(Connector::local(&listen)).await;
        let mut inspection =
            v1::inspection_service_client::InspectionServiceClient::new(channel.clone());
        let list = bearing(v1::ListSessionsRequest::default(), None);
        let listed = inspection.list_sessions(list).await;
        assert_eq!(listed.is_ok(), is_allowed, "{listed:?}");
        let denied = open(channel, None, "a").await.err().expect("no agent");
        assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    }
}

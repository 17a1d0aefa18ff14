//! Certificates, users of a Unix socket and tokens as identities: their permissions under one policy.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient, reconcile_request::Frame,
};
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
    refusal::{assert_refusal, reason},
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
async fn certificate_or_token_opens_sessions_of_its_own_clusters_only() {
    let stand = Stand::start_with(Some(POLICY)).await;
    let token = stand.issuer.token("agent-a");
    let name = "agent-b.decree.test";
    for (uris, names, token, cluster, refusal) in [
        (&[A][..], &[][..], None, "a", ""),
        (&[B], &[], None, "a", "NOT_ALLOWED"),
        (&[B], &[], None, "b", ""),
        (
            &["spiffe://decree.test/other"],
            &["x"],
            None,
            "a",
            "NOT_ALLOWED",
        ),
        (
            &["spiffe://elsewhere.test/agent/a"],
            &[],
            None,
            "a",
            "NOT_ALLOWED",
        ),
        (&[A, B], &[], None, "a", "IDENTITY_AMBIGUOUS"),
        (&[], &[name, "x"], None, "b", "IDENTITY_AMBIGUOUS"),
        (&[], &[], None, "a", "IDENTITY_MISSING"),
        // A DNS name is an identity only if there is no URI.
        (&[], &[name], None, "b", ""),
        (&[A], &[name], None, "b", "NOT_ALLOWED"),
        // A token counts before the certificate that it comes with.
        (&[B], &[], Some(&*token), "a", ""),
        (&[B], &[], Some(&token), "b", "NOT_ALLOWED"),
        (&[B], &[], Some("no.to.ken"), "b", "TOKEN_INVALID"),
    ] {
        let channel = stand.channel(uris, names).await;
        let denied = open(channel, token, cluster).await.err();
        let reason = denied.as_ref().map_or_else(String::new, reason);
        assert_eq!(reason, refusal, "{uris:?} {names:?} {cluster}");
        // A refusal names the caller, and not the owner.
        let told = denied.map_or_else(String::new, |it| it.message().to_owned());
        assert!(uris.contains(&A) || !told.contains(A), "{told}");
    }
    let denials = "decree_access_denials_total{reason=\"NOT_ALLOWED\"}";
    assert!(stand.server.metric(denials).await >= 1.0);
}

#[tokio::test]
async fn certificates_count_without_a_policy() {
    let stand = Stand::start_with(None).await;
    for (uris, refusal) in [
        (&[A][..], None),
        (&[B], None),
        (&[], Some("IDENTITY_MISSING")),
    ] {
        let denied = open(stand.channel(uris, &[]).await, None, "c").await.err();
        assert_eq!(denied.as_ref().map(reason).as_deref(), refusal, "{uris:?}");
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

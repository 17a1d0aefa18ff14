//! Permissions: the server checks every method, nobody sees the clusters of others, and a cluster that the policy names belongs to its agents.

use std::{
    collections::BTreeSet, fs, os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration,
};

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient,
};
use decree_server::{AccessArgs, Config};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use server_access::method::METHODS;
use service::transport::{Connector, ListenEndpoint};
use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    objects::replica_set,
};
use tokio_stream::StreamExt as _;
use tonic::Code;

use crate::{
    agent::{Agent, bearing, get_web, hello, named},
    refusal::assert_refusal,
    running::{Running, soon, unhurried},
};

/// The permissions in these tests.
const POLICY: &str = include_str!("policy.toml");

/// A server with a policy, and an issuer whose tokens it accepts.
pub(crate) struct Guarded {
    pub(crate) server: Running,
    pub(crate) issuer: Issuer,
    policy: PathBuf,
    _folder: TempDir,
}

impl Guarded {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut AccessArgs)) -> Self {
        Self::start_of(unhurried(), change).await
    }

    /// Starts a server with this config and changed access settings.
    pub(crate) async fn start_of(config: Config, change: impl FnOnce(&mut AccessArgs)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::new(folder.path());
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, POLICY).expect("it can be written");
        let mut access = AccessArgs {
            policy: Some(policy.clone()),
            access_interval: Duration::from_millis(20),
            token_keys: Some(issuer.file().display().to_string()),
            token_issuer: Some(ISSUER.to_owned()),
            ..AccessArgs::default()
        };
        change(&mut access);
        let config = Config { access, ..config };
        Self {
            server: Running::start_with(config).await,
            issuer,
            policy,
            _folder: folder,
        }
    }

    /// Replaces the policy in one step.
    pub(crate) fn replace_policy(&self, text: &str) {
        let next = self.policy.with_extension("next");
        fs::write(&next, text).expect("it can be written");
        fs::rename(&next, &self.policy).expect("it can be written");
    }

    /// Opens a session of a cluster as an agent.
    pub(crate) async fn open(
        &self,
        subject: &str,
        hello: v1::Hello,
    ) -> Result<Agent, tonic::Status> {
        let token = self.issuer.token(subject);
        let opened = Agent::open_as(&self.server, &token, hello).await;
        opened.map(|(agent, _)| agent)
    }

    /// Opens a session of a cluster that has the ReplicaSet `web`.
    async fn open_on_web(&self, subject: &str, hello: v1::Hello) -> Agent {
        let mut agent = self.open(subject, hello).await.expect("its own");
        let sets = vec![replica_set("web").build()];
        agent.snapshot(sets, vec![]).await;
        agent
    }
}

/// The path of each method that a server of this project describes.
fn described() -> BTreeSet<String> {
    let sets = [
        decree_api::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let files = sets
        .into_iter()
        .flat_map(|set| FileDescriptorSet::decode(set).expect("valid").file);
    let methods = files.flat_map(|file| {
        let package = file.package().to_owned();
        file.service.into_iter().flat_map(move |service| {
            let prefix = format!("/{package}.{}", service.name());
            let path = move |method: prost_types::MethodDescriptorProto| {
                format!("{prefix}/{}", method.name())
            };
            service.method.into_iter().map(path)
        })
    });
    methods.collect()
}

#[test]
fn every_method_that_is_served_says_what_it_needs() {
    let known: BTreeSet<_> = METHODS.iter().map(|it| it.path.to_owned()).collect();
    assert_eq!(known, described());
}

#[tokio::test]
async fn name_that_another_cluster_has_is_not_made_ambiguous() {
    let guarded = Guarded::start().await;
    let _owner = guarded.open_on_web("agent-a", named("a", "prod")).await;
    let _thief = guarded.open_on_web("agent-b", named("b", "prod")).await;
    let _impostor = guarded.open_on_web("agent-c", named("c", "a")).await;
    let admin = guarded.issuer.token("admin");
    let mut client = guarded.server.inspection().await;
    for name in ["prod", "a"] {
        let get = bearing(get_web(name), Some(&admin));
        let found = client.get_replica_set(get).await;
        let summary = found.expect(name).into_inner().summary.expect("found");
        assert_eq!(summary.cluster, "prod");
    }
}

#[tokio::test]
async fn viewer_sees_its_clusters_alone() {
    let guarded = Guarded::start().await;
    let _a = guarded.open_on_web("agent-a", hello("a")).await;
    let _b = guarded.open_on_web("agent-b", hello("b")).await;
    let viewer = guarded.issuer.token("viewer-a");
    let mut inspection = guarded.server.inspection().await;
    let list = bearing(v1::ListSessionsRequest::default(), Some(&viewer));
    let sessions = inspection.list_sessions(list).await.expect("a viewer");
    let [session] = &sessions.into_inner().sessions[..] else {
        panic!("one is visible")
    };
    assert_eq!(session.cluster_uid, "a");
    let list = bearing(v1::ListReplicaSetsRequest::default(), Some(&viewer));
    let sets = inspection.list_replica_sets(list).await;
    let sets = sets.expect("a viewer").into_inner().replica_sets;
    assert!(sets.iter().all(|set| set.cluster == "a"), "{sets:?}");
}

#[tokio::test]
async fn watch_shows_decisions_of_visible_clusters_alone() {
    let guarded = Guarded::start().await;
    let viewer = guarded.issuer.token("viewer-a");
    let mut inspection = guarded.server.inspection().await;
    let watch = bearing(v1::WatchDecisionsRequest::default(), Some(&viewer));
    let watch = inspection.watch_decisions(watch).await.expect("a viewer");
    let mut watch = watch.into_inner();
    for (subject, cluster) in [("agent-b", "b"), ("agent-a", "a")] {
        let opened = guarded.open(subject, hello(cluster)).await;
        let mut agent = opened.expect("its own");
        agent
            .snapshot(vec![replica_set(cluster).replicas(1).build()], vec![])
            .await;
        agent.batches().await;
    }
    let first = soon(watch.next()).await.expect("open").expect("a decision");
    let decided = first.decision.expect("one").replica_set.expect("named");
    assert_eq!(decided.name, "a");
    guarded.replace_policy(&POLICY.replace("sub:viewer-a", "sub:someone-else"));
    loop {
        match soon(watch.next()).await.expect("it says how it ends") {
            Ok(_) => {}
            Err(status) => {
                assert_refusal(&status, Code::PermissionDenied, "NOT_ALLOWED");
                break;
            }
        }
    }
}

#[tokio::test]
async fn policy_that_is_wrong_or_a_pipe_leaves_the_last_in_force_and_is_counted() {
    let guarded = Guarded::start().await;
    let mut a = guarded.open("agent-a", hello("a")).await.expect("its own");
    guarded.replace_policy("[[grant]]\nidentities = [\"sub:agent-a\"]\nrole = \"root\"\n");
    let errors = "decree_access_reload_errors_total{file=\"policy\"}";
    guarded.server.until(errors, |count| count >= 1.0).await;
    a.snapshot(vec![], vec![]).await;
    a.prove_alive().await;
    assert!(guarded.open("agent-b", hello("a")).await.is_err());
    let denials = "decree_access_denials_total{reason=\"NOT_ALLOWED\"}";
    assert!(guarded.server.metric(denials).await >= 1.0);
    let counted = guarded.server.metric(errors).await;
    assert!(counted < 2.0, "one file is wrong once");
    fs::remove_file(&guarded.policy).expect("it is there");
    let mut pipe = std::process::Command::new("mkfifo");
    let made = pipe.arg(&guarded.policy).status();
    assert!(made.expect("mkfifo runs").success());
    guarded.server.until(errors, |count| count >= 2.0).await;
    assert!(guarded.open("agent-b", hello("b")).await.is_ok());
    guarded.replace_policy("[[grant]]\nidentities = [\"sub:nobody\"]\nrole = \"admin\"\n");
    let refusal = a.refusal().await;
    assert_refusal(&refusal, Code::PermissionDenied, "NOT_ALLOWED");
}

#[tokio::test]
async fn user_at_a_unix_socket_is_an_identity() {
    let folder = TempDir::new().expect("a folder");
    let us = fs::metadata(folder.path()).expect("it is ours").uid();
    for (uid, is_allowed) in [(us, true), (us.wrapping_add(1), false)] {
        let policy = folder.path().join("policy.toml");
        let grant = format!(
            "[[grant]]\nidentities = [\"uid:{uid}\"]\nrole = \"viewer\"\nnames = [\"*\"]\n"
        );
        fs::write(&policy, grant).expect("it can be written");
        let listen = ListenEndpoint::Unix(folder.path().join(format!("{uid}.sock")));
        let access = AccessArgs {
            policy: Some(policy),
            ..AccessArgs::default()
        };
        let config = Config {
            listen: listen.clone(),
            access,
            ..unhurried()
        };
        let _server = Running::start_with(config).await;
        let connector = Connector::local(&listen);
        let endpoint = tonic::transport::Endpoint::from(connector.endpoint().uri());
        let channel = soon(endpoint.connect_with_connector(connector)).await;
        let channel = channel.expect("it is let in");
        let mut inspection = InspectionServiceClient::new(channel.clone());
        let list = bearing(v1::ListSessionsRequest::default(), None);
        let listed = inspection.list_sessions(list).await;
        assert_eq!(listed.is_ok(), is_allowed, "{listed:?}");
        let opened = Agent::stream(DecisionServiceClient::new(channel), None).await;
        let denied = opened.err().expect("no agent");
        assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    }
}

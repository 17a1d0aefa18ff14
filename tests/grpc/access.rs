//! Permissions: the server checks every method, nobody sees the clusters of others, and a cluster that the policy names belongs to its agents.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use decree::v1;
use decree_server::{AccessArgs, Config};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use server_access::method::METHODS;
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

    async fn metric(&self, series: &str) -> f64 {
        self.server.metric(series).await
    }
}

/// A hello whose epoch supersedes all others.
fn of_the_last_epoch(cluster: &str) -> v1::Hello {
    v1::Hello {
        epoch: i64::MAX,
        ..hello(cluster)
    }
}

/// The path of each method that a server of this project describes.
fn described() -> BTreeSet<String> {
    let sets = [
        decree::FILE_DESCRIPTOR_SET,
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
async fn agent_of_one_cluster_opens_no_session_of_another() {
    let guarded = Guarded::start().await;
    let mut owner = guarded.open("agent-a", hello("a")).await.expect("its own");
    let denied = guarded.open("agent-b", of_the_last_epoch("a")).await;
    let denied = denied.err().expect("a's");
    assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    assert!(!denied.message().contains("agent-a"), "{denied:?}");
    let denials = "decree_access_denials_total{reason=\"NOT_ALLOWED\"}";
    assert!(guarded.metric(denials).await >= 1.0);
    owner.snapshot(vec![], vec![]).await;
    owner.prove_alive().await;
    assert!(guarded.open("agent-b", hello("b")).await.is_ok());
}

#[tokio::test]
async fn cluster_that_no_policy_names_is_served_by_the_newest_epoch_of_any_identity() {
    let guarded = Guarded::start_with(|access| access.policy = None).await;
    let mut first = guarded.open("eu", hello("c")).await.expect("it is free");
    let second = guarded.open("us", of_the_last_epoch("c")).await;
    second.expect("it may serve any cluster");
    assert_refusal(&first.refusal().await, Code::Aborted, "SESSION_SUPERSEDED");
}

#[tokio::test]
async fn name_that_another_cluster_has_is_not_made_ambiguous() {
    let guarded = Guarded::start().await;
    let _owner = guarded.open_on_web("agent-a", named("a", "prod")).await;
    let _thief = guarded.open_on_web("agent-b", named("b", "prod")).await;
    let impostor = guarded.open("agent-c", named("c", "a")).await;
    impostor.expect("it is served");
    for uid in ["prod", "a"] {
        let thief = guarded.open("agent-c", hello(uid)).await;
        let denied = thief.err().expect("it is the owner's word");
        assert_refusal(&denied, Code::PermissionDenied, "NOT_ALLOWED");
    }
    let admin = guarded.issuer.token("admin");
    for name in ["prod", "a"] {
        let mut client = guarded.server.inspection().await;
        let get = bearing(get_web(name), Some(&admin));
        let found = client.get_replica_set(get).await;
        let summary = found.expect(name).into_inner().summary.expect("found");
        assert_eq!(summary.cluster, "prod");
    }
}

#[tokio::test]
async fn viewer_sees_its_clusters_and_calls_nothing_else() {
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
    let get = bearing(get_web("b"), Some(&viewer));
    let hidden = inspection.get_replica_set(get).await;
    assert_refusal(&hidden.expect_err("b's"), Code::NotFound, "CLUSTER_UNKNOWN");
    let simulate = v1::SimulateRequest {
        cluster: "b".to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        ..v1::SimulateRequest::default()
    };
    let mut decisions = guarded.server.decisions().await;
    let hidden = decisions.simulate(bearing(simulate, Some(&viewer))).await;
    assert_refusal(&hidden.expect_err("b's"), Code::NotFound, "CLUSTER_UNKNOWN");
    let denied = Agent::connect_as(&guarded.server, Some(&viewer)).await;
    assert_refusal(
        &denied.err().expect("no agent"),
        Code::PermissionDenied,
        "NOT_ALLOWED",
    );
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
async fn policy_that_is_wrong_leaves_the_last_in_force_and_is_counted() {
    let guarded = Guarded::start().await;
    let mut a = guarded.open("agent-a", hello("a")).await.expect("its own");
    guarded.replace_policy("[[grant]]\nidentities = [\"sub:agent-a\"]\nrole = \"root\"\n");
    let errors = "decree_access_reload_errors_total{file=\"policy\"}";
    guarded.server.until(errors, |count| count >= 1.0).await;
    a.snapshot(vec![], vec![]).await;
    a.prove_alive().await;
    assert!(guarded.open("agent-b", hello("b")).await.is_ok());
    assert!(guarded.metric(errors).await < 2.0, "one file is wrong once");
}

#[tokio::test]
async fn pipe_in_place_of_the_policy_is_not_waited_for() {
    let guarded = Guarded::start().await;
    let opened = guarded.open("agent-a", hello("a")).await;
    let mut agent = opened.expect("the policy grants it");
    fs::remove_file(&guarded.policy).expect("it is there");
    let made = std::process::Command::new("mkfifo")
        .arg(&guarded.policy)
        .status();
    assert!(made.expect("mkfifo runs").success());
    let errors = "decree_access_reload_errors_total{file=\"policy\"}";
    guarded.server.until(errors, |count| count >= 1.0).await;
    let other = guarded.open("agent-b", hello("b")).await;
    other.expect("the last policy is in force");
    guarded.replace_policy("[[grant]]\nidentities = [\"sub:nobody\"]\nrole = \"admin\"\n");
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::PermissionDenied, "NOT_ALLOWED");
}

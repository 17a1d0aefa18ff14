//! A cluster whose etcd is restored from a backup: agents notice that versions went back, report it, and start anew; there is
//! never a surplus pod.

use std::time::Instant;

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, Backup, DecisionServer, Namespace, Restored, Sightings, User};

use crate::{
    acts,
    growth::{FEW_AT_A_TIME, Growth},
    objects,
};

const NAME: &str = "restored";
const WANTED: usize = 3;
/// The number of other writes between the backup and the restore, which is the number of lost versions.
const LOST: usize = 400;
const WENT_BACK: &str = "the versions of the cluster went back: it was restored from a backup, or another cluster answers at its \
                         address; the agent forgets its view and lists the cluster again";

const OLD_HISTORY: &str = "the API server lists a state that was lost, without pods that it has created since: restart it; until \
                           then nothing is decided";

/// A cluster with a ReplicaSet that has desired pods, and a backup of the cluster from before its pods.
struct Stage {
    cluster: ApiServer,
    namespace: Namespace,
    backup: Backup,
    server: DecisionServer,
}

impl Stage {
    /// Makes the cluster and the backup, without an agent.
    async fn new() -> Option<Self> {
        let stage = Self::before_backup().await?;
        acts::create_set(&stage.namespace, &objects::replica_set("web", 3)).await;
        let backup = stage.cluster.back_up().await;
        Some(Self { backup, ..stage })
    }

    async fn before_backup() -> Option<Self> {
        let cluster = ApiServer::start().await?;
        let namespace = Namespace::create(cluster.admin().await, NAME).await;
        let backup = cluster.back_up().await;
        Some(Self {
            cluster,
            namespace,
            backup,
            server: DecisionServer::start_with(&["--backoff-max", "2s"]),
        })
    }

    fn agent(&self, flags: &[&str]) -> Agent {
        let kubeconfig = self.cluster.kubeconfig(User::Admin);
        Agent::start(&self.server, &kubeconfig, flags)
    }

    /// Makes unrelated writes, so that versions grow.
    async fn versions_grow(&self) {
        let api = self.namespace.api();
        let maps = self.namespace.path("/api/v1", "configmaps", "");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "noise"}});
        api.create(&maps, &map).await.expect("it is valid");
        let noise = format!("{maps}/noise");
        for count in 0..LOST {
            let patch = json!({"data": {"count": count.to_string()}});
            api.change(&noise, &patch).await;
        }
        // The agent has seen only this write.
        let pod = acts::create_pod(&self.namespace, &another()).await;
        acts::remove_pod(&self.namespace, &pod).await;
    }

    /// Restores the backup, and returns the time.
    async fn restore(&mut self) -> Instant {
        self.cluster.restore(&self.backup, Restored::Stopped).await;
        Instant::now()
    }

    /// Waits until the ReplicaSet has all its pods, and one more that is requested then; checks that there was never another.
    async fn heals(&self, sightings: &Sightings, since: Instant) {
        acts::pods_become(&self.namespace, WANTED).await;
        eprintln!("healed {:?} after the restore", since.elapsed());
        has_all(&self.namespace, WANTED).await;
        acts::scale(&self.namespace, "web", 4).await;
        acts::pods_become(&self.namespace, WANTED + 1).await;
        has_all(&self.namespace, WANTED + 1).await;
        sightings.reach(WANTED + 1).await;
        assert_eq!(sightings.gone(), Vec::<String>::new(), "none had to go");
        assert_eq!(sightings.count(), WANTED + 1, "none was made twice");
    }

    /// Checks the reports: an event, and the metric.
    async fn is_told_by(&self, agent: &Agent) {
        let api = self.namespace.api();
        let event = api.wait_for("told", "/api/v1/namespaces/default/events", |list| {
            let mut events = list["items"].as_array()?.iter();
            let is_it = |event: &&Value| event["reason"] == "VersionsWentBack";
            events.find(is_it).cloned()
        });
        let event = event.await;
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["involvedObject"]["kind"], "Namespace");
        assert_eq!(event["involvedObject"]["name"], "kube-system");
        let metric = |kind| {
            agent.metric(&format!(
                "decree_agent_versions_went_back_total{{kind=\"{kind}\"}}"
            ))
        };
        assert!(metric("pods") + metric("replicasets") > 0);
    }
}

/// Waits until the status of the ReplicaSet has `count` pods.
async fn has_all(namespace: &Namespace, count: usize) {
    let all = json!({"replicas": count, "fullyLabeledReplicas": count});
    acts::status_becomes(namespace, "web", &all).await;
}

/// A pod that no ReplicaSet selects.
fn another() -> Value {
    let mut pod = objects::pod("another");
    pod["metadata"]["labels"] = json!({"app": "another"});
    pod
}

/// The quota refuses creates until the restore: then the first create gets a version far below what the agent has seen.
#[tokio::test(flavor = "multi_thread")]
async fn creates_that_a_quota_refuses_are_made_once_after_a_restore() {
    let mut stage = tests::or_skip!(Stage::before_backup().await);
    stage.namespace.allow_pods(1).await;
    acts::create_set(&stage.namespace, &objects::replica_set("web", 3)).await;
    stage.backup = stage.cluster.back_up().await;
    stage.versions_grow().await;
    let agent = stage.agent(&["--leader-elect=false"]);
    let path = stage.namespace.replica_set("web");
    let some = |set: &Value| set["status"]["conditions"].is_array().then_some(());
    stage.namespace.wait_for("refused", &path, some).await;
    let since = stage.restore().await;
    let sightings = Sightings::begin(&stage.namespace);
    stage.namespace.raise_quota(50).await;
    agent.says(WENT_BACK, 1).await;
    stage.heals(&sightings, since).await;
    stage.is_told_by(&agent).await;
    assert_eq!(agent.calls("delete_pod"), 0);
}

/// Nothing happens in the cluster after the restore, and its pods are lost.
#[tokio::test(flavor = "multi_thread")]
async fn quiet_cluster_is_healed_after_a_restore() {
    let mut stage = tests::or_skip!(Stage::new().await);
    let agent = stage.agent(&["--leader-elect=false"]);
    acts::pods_become(&stage.namespace, WANTED).await;
    stage.versions_grow().await;
    has_all(&stage.namespace, WANTED).await;
    let since = stage.restore().await;
    let sightings = Sightings::begin(&stage.namespace);
    agent.says(WENT_BACK, 1).await;
    stage.heals(&sightings, since).await;
    stage.is_told_by(&agent).await;
    assert_eq!(agent.calls("delete_pod"), 0);
}

/// The API server lists the lost history until its restart, while created pods are in the new history.
#[tokio::test(flavor = "multi_thread")]
async fn etcd_that_is_restored_behind_its_api_server_makes_no_pod_too_many() {
    const PODS: u32 = 300;
    let mut cluster = tests::or_skip!(ApiServer::start().await);
    let growth = Growth::new(&cluster, NAME).await;
    acts::create_set(&growth.namespace, &objects::replica_set("web", PODS)).await;
    let backup = cluster.back_up().await;
    let server = DecisionServer::start();
    let flags = [&["--leader-elect=false"], FEW_AT_A_TIME.as_slice()].concat();
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    growth.is_held().await;
    cluster.restore(&backup, Restored::Serving).await;
    let before = agent.calls("create_pod");
    growth.opens();
    agent.says(WENT_BACK, 1).await;
    agent.says(OLD_HISTORY, 3).await;
    assert_eq!(agent.calls("create_pod"), before, "nothing is decided");

    cluster.restart().await;
    let since = Instant::now();
    let sightings = Sightings::begin(&growth.namespace);
    has_all(&growth.namespace, PODS as usize).await;
    eprintln!("healed {:?} after the restart", since.elapsed());
    acts::pods_become(&growth.namespace, PODS as usize).await;
    sightings.reach(PODS as usize).await;
    assert_eq!(sightings.gone(), Vec::<String>::new(), "none had to go");
    assert_eq!(sightings.count(), PODS as usize, "none was made twice");
    assert_eq!(agent.calls("delete_pod"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_of_which_the_backup_knows_nothing_goes_on() {
    let mut stage = tests::or_skip!(Stage::new().await);
    // The Lease lasts longer than any absence of the API server.
    let flags = ["--lease-namespace", NAME, "--lease-duration", "15m"];
    let leader = stage.agent(&flags);
    leader.says("leading", 1).await;
    let standby = stage.agent(&flags);
    standby.says("waiting for the lease", 1).await;
    acts::pods_become(&stage.namespace, WANTED).await;
    stage.versions_grow().await;
    let since = stage.restore().await;
    let sightings = Sightings::begin(&stage.namespace);
    stage.heals(&sightings, since).await;
    assert!(leader.said(WENT_BACK) > 0, "it leads and goes on");
    assert_eq!(standby.said("leading"), 0, "no two lead");
}

/// The restore returns the Lease to an agent that died before the leader led.
#[tokio::test(flavor = "multi_thread")]
async fn leader_that_the_backup_contradicts_gives_way_and_no_two_lead() {
    let mut stage = tests::or_skip!(Stage::before_backup().await);
    acts::create_set(&stage.namespace, &objects::replica_set("web", 3)).await;
    let flags = ["--lease-namespace", NAME];
    stage.namespace.allow_pods(0).await;
    let dead = stage.agent(&flags);
    dead.says("leading", 1).await;
    stage.backup = stage.cluster.back_up().await;
    dead.kill();
    let first = stage.agent(&flags);
    first.says("leading", 1).await;
    let transitions = transitions(&stage.namespace).await;
    let second = stage.agent(&flags);
    second.says("waiting for the lease", 1).await;
    stage.namespace.raise_quota(50).await;
    acts::pods_become(&stage.namespace, WANTED).await;
    stage.versions_grow().await;
    let since = stage.restore().await;
    let sightings = Sightings::begin(&stage.namespace);
    stage.namespace.raise_quota(50).await;
    assert_eq!(first.wait().code(), Some(1), "it says that it is no leader");
    second.says("leading", 1).await;
    stage.heals(&sightings, since).await;
    let after = self::transitions(&stage.namespace).await;
    assert!(after > transitions, "{after} after {transitions}");
}

/// The number of holders that the Lease has had.
async fn transitions(namespace: &Namespace) -> i64 {
    let path = namespace.path("/apis/coordination.k8s.io/v1", "leases", "decree-agent");
    let lease = namespace.get(&path).await.expect("an agent leads");
    lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0)
}

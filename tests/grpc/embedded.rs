//! The inspection of an embedded cluster with its nodes and kubelets, while an agent acts on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use agent_fake::{ClusterConfig, DeleteOptions, Kind, NodeLoss, Object};
use decree::v1::{self, simulate_cluster_request::Change};
use decree_agent::FakeCluster;
use serde_json::{Value, json};
use service::transport::Connector;
use tests::builders::{brisk_cluster, replica_set};
use tokio::{task::JoinHandle, time};
use tokio_util::sync::CancellationToken;

use crate::running::{Running, soon};

/// An embedded cluster, its agent, and the server.
struct World {
    server: Running,
    cluster: FakeCluster,
    stop: CancellationToken,
    _agent: JoinHandle<()>,
}

impl World {
    /// Starts everything with ReplicaSets of these sizes, and waits until they have converged.
    async fn start(sets: &[(&str, i32)]) -> Self {
        let config = ClusterConfig {
            // The effects of a loss are noticed at once, and the loss has no further effects.
            node_loss: NodeLoss {
                unknown_after: Duration::from_millis(20),
                evict_after: Duration::MAX,
                remove_after: Duration::MAX,
            },
            ..brisk_cluster()
        };
        let cluster = FakeCluster::start(config, Vec::new()).expect("no objects");
        for (name, replicas) in sets {
            let set = replica_set(name).replicas(*replicas).build();
            cluster.with(|it| it.create(set)).expect("valid");
        }
        let server = Running::start().await;
        let config = decree_agent::ShellConfig::new(Connector::local(&server.tcp().into()));
        let stop = CancellationToken::new();
        let agent = decree_agent::run(config, cluster.clone(), stop.clone());
        let world = Self {
            _agent: tokio::spawn(async { drop(agent.await) }),
            server,
            cluster,
            stop,
        };
        let count = sets.len();
        world
            .until(|sets| {
                sets.len() == count && sets.values().all(|set| cause(set).text == "In sync")
            })
            .await;
        world
    }

    /// Waits until `is_it` holds for the server's ReplicaSets, and returns them by name.
    async fn until(
        &self,
        is_it: impl Fn(&BTreeMap<String, v1::ReplicaSetSummary>) -> bool,
    ) -> BTreeMap<String, v1::ReplicaSetSummary> {
        let mut client = self.server.inspection().await;
        soon(async {
            loop {
                let request = v1::ListReplicaSetsRequest::default();
                let answer = client.list_replica_sets(request).await.expect("valid");
                let sets = answer.into_inner().replica_sets.into_iter();
                let sets = sets.map(|set| (set.replica_set.clone().unwrap_or_default().name, set));
                let sets = sets.collect();
                if is_it(&sets) {
                    return sets;
                }
                time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }
}

fn cause(set: &v1::ReplicaSetSummary) -> v1::Cause {
    set.cause.clone().unwrap_or_default()
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_node_is_the_cause_of_the_replica_sets_with_pods_on_it() {
    let world = World::start(&[("api", 4), ("shop", 5), ("web", 3)]).await;
    let on_node = |pod: &&Object| pod["spec"]["nodeName"] == "node-b";
    let lost = world
        .cluster
        .with(|it| it.objects(Kind::Pod).filter(on_node).count());
    assert!(lost >= 2, "pods are spread over three nodes");
    world
        .cluster
        .with(|it| it.fail_node("node-b"))
        .expect("it is there");
    let sentence = format!("None of the {lost} known active pods on node-b is ready");
    let told = world
        .until(|sets| sets.values().any(|set| cause(set).text == sentence))
        .await;
    for set in told.values().filter(|set| cause(set).text == sentence) {
        let v1::Cause {
            group,
            next_command,
            ..
        } = cause(set);
        assert_eq!(group, sentence);
        assert_eq!(next_command, "kubectl describe node node-b");
    }
    world
        .cluster
        .with(|it| it.recover_node("node-b"))
        .expect("it is there");
    world
        .until(|sets| sets.values().all(|set| cause(set).text == "In sync"))
        .await;
}

/// The whole answer to a question about a change.
async fn simulate(world: &World, change: Change) -> v1::SimulateClusterResponse {
    let request = v1::SimulateClusterRequest {
        change: Some(change),
        ..v1::SimulateClusterRequest::default()
    };
    let mut client = world.server.inspection().await;
    let answer = client.simulate_cluster(request).await.expect("valid");
    let answer = answer.into_inner();
    assert_eq!(answer.next_page_token, "");
    answer
}

/// The names of the pods by ReplicaSet, without pods in deletion.
fn pods(world: &World, is_it: impl Fn(&Value) -> bool) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    world.cluster.with(|cluster| {
        let pods = cluster.objects(Kind::Pod);
        let stays = |pod: &&Object| pod["metadata"]["deletionTimestamp"].is_null() && is_it(pod);
        for pod in pods.filter(stays) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let set = text(&pod["metadata"]["labels"]["app"]);
            let name = text(&pod["metadata"]["name"]);
            names.entry(set).or_default().insert(name);
        }
    });
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_happens_as_foretold() {
    let world = World::start(&[("api", 4), ("shop", 9), ("solo", 1), ("web", 3)]).await;
    let before = pods(&world, |_| true);
    let there = pods(&world, |pod| pod["spec"]["nodeName"] == "node-b");
    let drain = v1::NodeDrain {
        node: "node-b".to_owned(),
    };
    let foretold = simulate(&world, Change::NodeDrain(drain)).await;
    let name = |set: &v1::ReplicaSetEffect| set.replica_set.clone().unwrap_or_default().name;
    let deleted = foretold.replica_sets.iter().map(|set| {
        assert_eq!(set.replicas, set.active, "all have converged");
        (name(set), set.deleted_pods.iter().cloned().collect())
    });
    assert_eq!(deleted.collect::<BTreeMap<_, BTreeSet<_>>>(), there);

    let options = DeleteOptions::default();
    for pod in there.values().flatten() {
        let deleted = world
            .cluster
            .with(|it| it.delete(Kind::Pod, "default", pod, &options));
        deleted.expect("it is there");
    }
    let desired: usize = before.values().map(BTreeSet::len).sum();
    world
        .until(|sets| {
            let now = pods(&world, |_| true);
            let is_whole = now.values().map(BTreeSet::len).sum::<usize>() == desired;
            is_whole && sets.values().all(|set| cause(set).text == "In sync")
        })
        .await;
    let after = pods(&world, |_| true);
    for set in &foretold.replica_sets {
        let created = after[&name(set)].difference(&before[&name(set)]).count();
        assert_eq!(usize::try_from(set.creates), Ok(created), "{set:?}");
    }
    let untouched = before.keys().filter(|name| !there.contains_key(*name));
    for name in untouched {
        assert_eq!(after[name], before[name]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_refuses_as_many_creates_as_foretold() {
    let world = World::start(&[("api", 2), ("shop", 3), ("web", 2)]).await;
    let quota = |pods: i32| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": "default", "name": "pods"},
            "spec": {"hard": {"pods": pods.to_string()}},
        })
    };
    world.cluster.with(|it| {
        it.create(quota(7)).expect("there is none yet");
        it.scale("default", "api", 5).expect("it is there");
        it.scale("default", "web", 4).expect("it is there");
    });
    world
        .until(|sets| {
            ["api", "web"]
                .iter()
                .all(|name| cause(&sets[*name]).text.starts_with("Quota"))
        })
        .await;
    let change = v1::PodQuota {
        namespace: "default".to_owned(),
        pods: 9,
    };
    let foretold = simulate(&world, Change::PodQuota(change)).await;
    let sums = foretold.quota.expect("the sums of the namespace");
    assert_eq!((sums.pods, sums.creates, sums.refused), (7, 5, 3));
    let ranges: Vec<_> = foretold
        .replica_sets
        .iter()
        .map(|set| {
            let name = set.replica_set.clone().unwrap_or_default().name;
            (name, set.creates, set.refused_min..=set.refused_max)
        })
        .collect();
    let expected = [("api".to_owned(), 3, 1..=3), ("web".to_owned(), 2, 0..=2)];
    assert_eq!(ranges, expected);

    let patch = json!({"spec": {"hard": {"pods": "9"}}});
    let patched = world
        .cluster
        .with(|it| it.patch(Kind::ResourceQuota, "default", "pods", &patch));
    patched.expect("it is there");
    let refused = |sets: &BTreeMap<String, v1::ReplicaSetSummary>, name: &str| {
        sets[name].replicas - sets[name].active
    };
    let told = world
        .until(|sets| refused(sets, "api") + refused(sets, "web") == 3)
        .await;
    for (name, _, range) in ranges {
        assert!(range.contains(&refused(&told, &name)), "{name}");
    }
}

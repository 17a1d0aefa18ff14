//! Beside the built-in ReplicaSet controller: an agent stands by until the controller is off, takes over by itself, and leaves
//! the cluster to it again.

use serde_json::{Value, json};
use tests::real::{
    Agent, Api, ApiServer, ControllerManager, DecisionServer, Namespace, Sightings, User,
};

use crate::{
    acts, objects,
    rendered::{Rendered, SYSTEM},
    workload::ACCOUNT,
};

const WAITS: [&str; 2] = ["--built-in-controller", "wait"];
const STANDS_BY: &str = "standing by, because the built-in ReplicaSet controller is on: the agent takes over within a minute of when \
                         kube-controller-manager runs with --controllers=*,-replicaset-controller";
const TAKES_OVER: &str = "the built-in ReplicaSet controller is off: the agent takes over";
const CANNOT_TELL: &str = "it cannot be found out whether the built-in ReplicaSet controller is on: the agent goes on as if it were off";
const UNREACHED: &str = "no server can be reached: the agent could not work if it led";
const SET: &str = "web";

/// The part of the probe by which agents inform each other.
async fn mark(api: &Api) -> Value {
    let path = format!("/apis/apps/v1/namespaces/{SYSTEM}/replicasets/decree-probe");
    let probe = api.get(&path).await.expect("an agent has made it");
    assert_eq!(probe["spec"]["replicas"], 0, "nothing runs for it");
    probe["metadata"]["annotations"]["decree.dev/built-in-controller"].clone()
}

async fn scales(namespace: &Namespace, replicas: usize) {
    let wanted = u32::try_from(replicas).expect("it is small");
    acts::scale(namespace, SET, wanted).await;
    acts::pods_become(namespace, replicas).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_stands_by_until_the_built_in_controller_is_off() {
    let rendered = tests::or_skip!(Rendered::of("base"));
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let namespace = Namespace::create(admin.clone(), "standby").await;
    let mut built_in = ControllerManager::start(&cluster, &[]);
    acts::create_set(&namespace, &objects::replica_set(SET, 3)).await;
    acts::pods_become(&namespace, 3).await;
    let sightings = Sightings::begin(&namespace);

    // The agent needs only the shipped permissions.
    let kubeconfig = cluster.service_account(SYSTEM, ACCOUNT).await;
    let server = DecisionServer::start();
    let flags = [&WAITS[..], &["--lease-namespace", SYSTEM]].concat();
    let agent = Agent::start(&server, &kubeconfig, &flags);
    agent.says(STANDS_BY, 1).await;
    agent.becomes_ready().await;
    assert_eq!(agent.metric("decree_agent_standing_by"), 1);
    scales(&namespace, 5).await;
    assert_eq!(agent.calls("create_pod"), 0);

    built_in.stop();
    let mut others = ControllerManager::start_others(&cluster);
    agent.says(TAKES_OVER, 1).await;
    agent.says("leading", 1).await;
    scales(&namespace, 7).await;
    assert_eq!(agent.calls("create_pod"), 2);
    assert_eq!(agent.metric("decree_agent_standing_by"), 0);
    assert_eq!(mark(&admin).await, "off");

    // The next agent knows, and does not wait for long.
    assert_eq!(agent.terminate().code(), Some(0));
    let agent = Agent::start(&server, &kubeconfig, &flags);
    agent.says("leading", 1).await;
    assert_eq!((agent.said(STANDS_BY), agent.said(CANNOT_TELL)), (0, 0));
    scales(&namespace, 8).await;

    // The way back.
    assert_eq!(agent.terminate().code(), Some(0));
    others.stop();
    let _built_in = ControllerManager::start(&cluster, &[]);
    scales(&namespace, 10).await;
    let agent = Agent::start(&server, &kubeconfig, &flags);
    agent.says(STANDS_BY, 1).await;
    scales(&namespace, 11).await;
    assert_eq!(agent.calls("create_pod"), 0);
    assert_eq!(mark(&admin).await, json!(null));
    assert_eq!(sightings.most(SET), 11, "none was made twice");
    assert!(sightings.gone().is_empty(), "and none was deleted");
}

#[tokio::test]
async fn agent_that_may_not_probe_says_so_and_goes_on() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let server = DecisionServer::start();
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Nobody), &WAITS);
    agent.says(CANNOT_TELL, 1).await;
    agent.says("waiting for the lease", 1).await;
}

#[tokio::test]
async fn agent_that_stands_by_and_reaches_no_server_is_not_ready() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let name = "unreached";
    let _namespace = Namespace::create(cluster.admin().await, name).await;
    let (server, kubeconfig) = (DecisionServer::start(), cluster.kubeconfig(User::Admin));
    let flags = ["--namespace", name, "--lease-namespace", name];
    let leader = Agent::start(&server, &kubeconfig, &flags);
    leader.says("leading", 1).await;
    // A port without a listener.
    let lost = Agent::start_at("http://127.0.0.1:1", &kubeconfig, &flags);
    lost.says(UNREACHED, 1).await;
    lost.stops_being_ready().await;
    let able = Agent::start(&server, &kubeconfig, &flags);
    able.becomes_ready().await;
    assert_eq!(able.said("leading") + lost.said("leading"), 0);
    leader.becomes_ready().await;
    server.kill();
    able.says(UNREACHED, 1).await;
    able.stops_being_ready().await;
}

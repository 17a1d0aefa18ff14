//! Faults during a scale-up: all pods come, and none comes twice.

use tests::real::{Agent, ApiServer, DecisionServer, Proxy, User, found};

use crate::growth::{FEW_AT_A_TIME, Growth};

#[tokio::test]
async fn an_api_server_whose_etcd_restarts_gets_each_pod_once() {
    let mut cluster = tests::or_skip!(ApiServer::start().await);
    let growth = Growth::new(&cluster, "etcd-restarts").await;
    let (agent, _server) = attend(&cluster, &growth);
    growth.begin().await;
    // The held creates wait for etcd, and more come.
    cluster.pause_etcd().await;
    growth.goes_on();
    cluster.restart_etcd().await;
    ends_without_deletes(&growth, &agent).await;
}

#[tokio::test]
async fn connections_that_are_cut_lose_no_pod_and_make_none_twice() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let growth = Growth::new(cluster, "cut").await;
    let (proxy, agent, _server) = attend_through_a_proxy(cluster, &growth);
    growth.begin().await;
    for count in [90, 150, 210] {
        assert!(proxy.cut() > 0, "there was a connection");
        growth.reach(count).await;
    }
    ends_without_deletes(&growth, &agent).await;
}

#[tokio::test]
async fn a_connection_that_is_half_open_is_noticed() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let growth = Growth::new(cluster, "half-open").await;
    let (proxy, agent, _server) = attend_through_a_proxy(cluster, &growth);
    growth.begin().await;
    // Requests are lost without notice.
    proxy.hold_requests();
    let before = proxy.accepted();
    found(async || {
        let is_noticed = proxy.accepted() != before;
        let failure = || "nothing is noticed".to_owned();
        is_noticed.then_some(()).ok_or_else(failure)
    })
    .await;
    assert!(proxy.cut() > 0, "there was a connection");
    ends_without_deletes(&growth, &agent).await;
}

/// Waits for all pods. The agent would delete pods that came and went without a watch.
async fn ends_without_deletes(growth: &Growth, agent: &Agent) {
    growth.ends_well().await;
    assert_eq!(agent.calls("delete_pod"), 0);
}

fn attend(cluster: &ApiServer, growth: &Growth) -> (Agent, DecisionServer) {
    let server = DecisionServer::start();
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags(growth));
    (agent, server)
}

fn attend_through_a_proxy(cluster: &ApiServer, growth: &Growth) -> (Proxy, Agent, DecisionServer) {
    let url = cluster.url();
    let proxy = Proxy::start(url.trim_start_matches("https://"));
    let kubeconfig = proxy.kubeconfig(&cluster.kubeconfig(User::Admin), &url);
    let server = DecisionServer::start();
    let agent = Agent::start(&server, &kubeconfig, &flags(growth));
    (proxy, agent, server)
}

fn flags(growth: &Growth) -> Vec<&str> {
    let name = growth.namespace.name();
    let mut flags = vec!["--leader-elect=false", "--namespace", name];
    flags.extend(FEW_AT_A_TIME);
    flags
}

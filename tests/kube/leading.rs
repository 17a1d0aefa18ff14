//! Two agents for one cluster, of which one leads: no pod twice, and no wrong deletion, whatever becomes of it.

use std::time::{Duration, Instant};

use serde_json::Value;
use tests::real::{Agent, ApiServer, DecisionServer, User};

use crate::growth::{Growth, SLOWLY};

/// How long after the end of a lease another agent leads at the latest.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(2);

/// Whether an agent leads, in the metric that upstream has for it.
const LEADS: &str = "leader_election_master_status{name=\"decree-agent\"}";

/// A growth, the agent that began it, and one that stands by.
struct Pair {
    growth: Growth,
    first: Agent,
    second: Agent,
    _server: DecisionServer,
}

// === impl Pair ===

impl Pair {
    async fn new(name: &str, lease: Duration) -> Option<Self> {
        let cluster = ApiServer::shared().await?;
        let growth = Growth::new(cluster, name).await;
        let server = DecisionServer::start();
        let lease = format!("{}s", lease.as_secs());
        let start = || {
            let mut flags = vec!["--namespace", name, "--lease-namespace", name];
            flags.extend(["--lease-duration", &lease]);
            flags.extend(SLOWLY);
            Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags)
        };
        let first = start();
        first.says("leading", 1).await;
        let second = start();
        second.says("waiting for the lease", 1).await;
        growth.begin().await;
        assert_eq!(second.said("leading"), 0, "the first leads");
        assert_eq!([first.metric(LEADS), second.metric(LEADS)], [1, 0]);
        Some(Self {
            growth,
            first,
            second,
            _server: server,
        })
    }
}

#[tokio::test]
async fn when_the_leader_is_killed_the_other_takes_over() {
    let lease = Duration::from_secs(3);
    let Some(pair) = Pair::new("leader-killed", lease).await else {
        return;
    };
    let before = spec_of_lease(&pair.growth).await;
    let death = Instant::now();
    pair.first.kill();
    assert!(pair.growth.is_under_way(), "it died before it was done");
    pair.second.says("leading", 1).await;
    let took = death.elapsed();
    assert!(took < lease + TAKE_OVER_WITHIN, "it took {took:?}");
    pair.growth.ends_well().await;
    assert_eq!(pair.second.metric(LEADS), 1);
    assert_eq!(pair.second.calls("delete_pod"), 0);
    let after = spec_of_lease(&pair.growth).await;
    assert_ne!(after["holderIdentity"], before["holderIdentity"]);
    assert_eq!(
        (&before["leaseTransitions"], &after["leaseTransitions"]),
        (&0.into(), &1.into())
    );
}

#[tokio::test]
async fn a_leader_that_sleeps_past_its_lease_writes_nothing_when_it_wakes() {
    let Some(pair) = Pair::new("leader-sleeps", Duration::from_secs(3)).await else {
        return;
    };
    // It sleeps over many creates that it was told to make.
    pair.first.pause();
    assert!(pair.growth.is_under_way(), "it slept before it was done");
    pair.second.says("leading", 1).await;
    pair.growth.ends_well().await;
    pair.first.wake();
    let ended = pair.first.wait();
    assert_eq!(ended.code(), Some(1), "it says that it is no leader");
    pair.growth.ends_well().await;
    assert_eq!(pair.second.calls("delete_pod"), 0);
}

#[tokio::test]
async fn a_leader_that_is_asked_to_end_gives_the_lease_back() {
    let lease = Duration::from_secs(30);
    let Some(pair) = Pair::new("leader-ends", lease).await else {
        return;
    };
    let asked = Instant::now();
    let ended = pair.first.terminate();
    assert_eq!(ended.code(), Some(0), "it drained");
    assert!(pair.growth.is_under_way(), "it ended before it was done");
    pair.second.says("leading", 1).await;
    let took = asked.elapsed();
    assert!(took < lease / 3, "it took {took:?}");
    pair.growth.ends_well().await;
    assert_eq!(pair.second.calls("delete_pod"), 0);
}

async fn spec_of_lease(growth: &Growth) -> Value {
    let namespace = &growth.namespace;
    let group = "/apis/coordination.k8s.io/v1";
    let path = namespace.path(group, "leases", "decree-agent");
    let lease = namespace.api().get(&path).await;
    lease.expect("an agent leads")["spec"].take()
}

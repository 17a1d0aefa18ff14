//! Two agents for one cluster, of which one leads: no pod is created twice, and no wrong pod is deleted, in any failure of the
//! leader.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tests::real::{Agent, ApiServer, DecisionServer, User};

use crate::growth::{FEW_AT_A_TIME, Growth};

/// Long enough that a busy machine causes no loss of a Lease.
const LEASE: Duration = Duration::from_secs(20);
/// Longer than any wait for a free Lease; a standby agent checks after two fifteenths of it.
const LONG_LEASE: Duration = Duration::from_secs(180);

/// Whether an agent leads, in the metric of upstream for leadership.
const LEADS: &str = "leader_election_master_status{name=\"decree-agent\"}";

/// A growth, the agent that began it, and a standby agent.
struct Pair {
    growth: Growth,
    first: Agent,
    second: Agent,
    _server: DecisionServer,
}

impl Pair {
    async fn new(name: &str, lease: Duration) -> Option<Self> {
        let cluster = ApiServer::shared().await?;
        let growth = Growth::new(cluster, name).await;
        let lease = format!("{}s", lease.as_secs());
        let mut flags = vec!["--namespace", name, "--lease-namespace", name];
        flags.extend(["--lease-duration", &lease]);
        flags.extend(FEW_AT_A_TIME);
        let (server, kubeconfig) = (DecisionServer::start(), cluster.kubeconfig(User::Admin));
        let first = Agent::start(&server, &kubeconfig, &flags);
        first.says("leading", 1).await;
        let second = Agent::start(&server, &kubeconfig, &flags);
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
async fn a_leader_that_sleeps_past_its_lease_writes_nothing_when_it_wakes() {
    let pair = tests::or_skip!(Pair::new("leader-sleeps", LEASE).await);
    let before = spec_of_lease(&pair.growth).await;
    // The agent sleeps during many requested creates, and during those that the API server holds.
    pair.first.pause();
    pair.second.says("leading", 1).await;
    pair.growth.ends_well().await;
    assert_eq!(pair.second.metric(LEADS), 1);
    let after = spec_of_lease(&pair.growth).await;
    assert_ne!(after["holderIdentity"], before["holderIdentity"]);
    let transitions = [&before, &after].map(|it| it["leaseTransitions"].clone());
    assert_eq!(transitions, [0, 1]);
    let waited = between(&before, &after);
    assert!(waited >= LEASE, "it took {waited:?}");
    pair.first.wake();
    let ended = pair.first.wait();
    assert_eq!(ended.code(), Some(1), "it says that it is no leader");
    pair.growth.ends_well().await;
    assert_eq!(pair.second.calls("delete_pod"), 0);
}

#[tokio::test]
async fn a_leader_that_is_asked_to_end_gives_the_lease_back() {
    let pair = tests::or_skip!(Pair::new("leader-ends", LONG_LEASE).await);
    let before = spec_of_lease(&pair.growth).await;
    pair.first.ask_to_end();
    pair.first.stops_being_ready().await;
    pair.growth.goes_on();
    let ended = pair.first.wait();
    assert_eq!(ended.code(), Some(0), "it drained");
    pair.second.says("leading", 1).await;
    pair.growth.ends_well().await;
    assert!(
        pair.second.calls("create_pod") > 0,
        "some were still to come"
    );
    assert_eq!(pair.second.calls("delete_pod"), 0);
    let waited = between(&before, &spec_of_lease(&pair.growth).await);
    assert!(waited < LONG_LEASE, "it took {waited:?}");
}

async fn spec_of_lease(growth: &Growth) -> Value {
    let namespace = &growth.namespace;
    let group = "/apis/coordination.k8s.io/v1";
    let path = namespace.path(group, "leases", "decree-agent");
    let lease = namespace.get(&path).await;
    lease.expect("an agent leads")["spec"].take()
}

/// The time from the last renewal by the old holder to the takeover of a Lease.
fn between(before: &Value, after: &Value) -> Duration {
    let [renewed, taken] = [&before["renewTime"], &after["acquireTime"]].map(|time| {
        let time = time.as_str().expect("it is text");
        time.parse::<Timestamp>().expect("it is a time")
    });
    let waited = taken.duration_since(renewed);
    waited.try_into().expect("it was taken later")
}

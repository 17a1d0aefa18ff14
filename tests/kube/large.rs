//! 3,000 pods with a template of 200 KB: an agent creates and deletes them all, and keeps its Lease. The figures are in
//! docs/reliability.md.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tests::{
    depth,
    real::{Agent, ApiServer, DecisionServer, LOOK_EVERY, Namespace, PATIENCE, User},
};
use tokio::time;

use crate::{acts, objects};

const PODS: u64 = 3_000;
/// The API server accepts annotations of up to 256 KB.
const TEMPLATE_BYTES: usize = 200_000;
/// Long enough that a busy machine causes no loss of the Lease: the test prints the longest time without a renewal.
const LEASE_DURATION: &str = "--lease-duration=60s";
const NAME: &str = "large";

/// The history of the Lease of the agent.
struct Renewals<'a> {
    namespace: &'a Namespace,
    last: Option<Timestamp>,
    longest: Duration,
}

impl Renewals<'_> {
    /// Reads the Lease, and returns how often it changed hands.
    async fn look(&mut self) -> Value {
        let path = self
            .namespace
            .path("/apis/coordination.k8s.io/v1", "leases", "decree-agent");
        let lease = self.namespace.api().get(&path).await;
        let spec = lease.expect("the agent leads")["spec"].clone();
        let renewed = spec["renewTime"].as_str().expect("it was renewed");
        let renewed: Timestamp = renewed.parse().expect("it is a time");
        if let Some(last) = self.last.replace(renewed) {
            let apart = renewed.duration_since(last).unsigned_abs();
            self.longest = self.longest.max(apart);
        }
        json!({"holder": spec["holderIdentity"], "transitions": spec["leaseTransitions"]})
    }

    /// Waits until there are `pods` pods. The API server counts them, because a list would be too long.
    async fn last_until(&mut self, pods: u64) -> Duration {
        let begun = Instant::now();
        let mut looks = time::interval(4 * LOOK_EVERY);
        let path = format!("{}?limit=1", self.namespace.pod(""));
        loop {
            looks.tick().await;
            self.look().await;
            let page = self.namespace.api().get(&path).await.expect("it lists");
            let shown = page["items"].as_array().map_or(0, Vec::len) as u64;
            let others = page["metadata"]["remainingItemCount"].as_u64();
            let there = shown + others.unwrap_or(0);
            assert!(there <= PODS, "{there} pods");
            if there == pods {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < PATIENCE, "{there} pods of {pods}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "the figures are for who runs the test")]
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_large_pods_come_and_go_and_the_lease_is_kept() {
    if !depth::is_full() {
        return;
    }
    let cluster = tests::or_skip!(ApiServer::start().await);
    let namespace = Namespace::create(cluster.admin().await, NAME).await;
    let server = DecisionServer::start();
    let flags = [
        "--namespace",
        NAME,
        "--lease-namespace",
        NAME,
        LEASE_DURATION,
    ];
    let agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    agent.says("leading", 1).await;
    let mut set = objects::replica_set("web", 0);
    let ballast = "x".repeat(TEMPLATE_BYTES);
    set["spec"]["template"]["metadata"]["annotations"] = json!({"ballast": ballast});
    acts::create_set(&namespace, &set).await;

    let mut renewals = Renewals {
        namespace: &namespace,
        last: None,
        longest: Duration::ZERO,
    };
    let lead = renewals.look().await;
    acts::scale(&namespace, "web", 3_000).await;
    let up = renewals.last_until(PODS).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": PODS})).await;
    acts::scale(&namespace, "web", 0).await;
    let down = renewals.last_until(0).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 0})).await;
    assert_eq!(renewals.look().await, lead, "nobody else has led");
    assert!(agent.calls("create_pod") >= PODS && agent.calls("delete_pod") >= PODS);
    println!(
        "up in {up:?}, down in {down:?}, the Lease renewed after {:?} at most",
        renewals.longest
    );
}

//! A scale-up that is under way until its test lets it end.

use serde_json::json;
use tests::real::{ApiServer, Namespace, Sightings};

use crate::{acts, gate::Gate, objects};

/// How an agent always has creates of a batch that it has yet to send.
pub(crate) const FEW_AT_A_TIME: [&str; 1] = ["--calls-max=8"];

const PODS: usize = 300;
/// Enough that the slow start is over, and many creates of one batch are still to come.
pub(crate) const AMID: usize = 60;

/// A namespace in which a ReplicaSet gets many pods, and all that were ever seen there. The last of them come at the end of the test.
pub(crate) struct Growth {
    pub(crate) namespace: Namespace,
    sightings: Sightings,
    gate: Gate,
}

// === impl Growth ===

impl Growth {
    /// Makes the namespace.
    pub(crate) async fn new(cluster: &ApiServer, name: &str) -> Self {
        let namespace = Namespace::create(cluster.admin().await, name).await;
        Self {
            sightings: Sightings::begin(&namespace),
            gate: Gate::before(&namespace, AMID).await,
            namespace,
        }
    }

    /// Asks for the pods, and returns amid their creation: the API server has creates in flight, and holds them.
    pub(crate) async fn begin(&self) {
        acts::create_set(&self.namespace, &objects::replica_set("web", replicas())).await;
        self.is_held().await;
    }

    /// Lets pods come up to so many, and waits until further creates are held.
    pub(crate) async fn reach(&self, count: usize) {
        self.goes_on_to(count);
        self.is_held().await;
    }

    /// Lets pods come up to so many.
    pub(crate) fn goes_on_to(&self, count: usize) {
        assert!(count < PODS, "some are still to come");
        self.gate.let_through(count);
    }

    /// Lets all pods come but the last.
    pub(crate) fn goes_on(&self) {
        self.goes_on_to(PODS - 1);
    }

    /// Lets all pods come.
    pub(crate) fn opens(&self) {
        self.gate.open();
    }

    /// Waits until creates are held.
    pub(crate) async fn is_held(&self) {
        self.gate.holds_one().await;
    }

    /// Waits until the pods are there and said to be, and checks that there never was another.
    pub(crate) async fn ends_well(&self) {
        self.gate.open();
        let all = json!({"replicas": PODS, "fullyLabeledReplicas": PODS});
        acts::status_becomes(&self.namespace, "web", &all).await;
        acts::pods_become(&self.namespace, PODS).await;
        self.sightings.reach(PODS).await;
        assert_eq!(
            self.sightings.gone(),
            Vec::<String>::new(),
            "none had to go"
        );
        assert_eq!(self.sightings.count(), PODS, "none was made twice");
    }
}

fn replicas() -> u32 {
    u32::try_from(PODS).expect("it is small")
}

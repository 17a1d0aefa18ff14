//! A scale-up that runs until its test lets it end.

use serde_json::json;
use tests::real::{ApiServer, Namespace, Sightings};

use crate::{acts, gate::Gate, objects};

/// Limits calls, so that an agent always has unsent creates of a batch.
pub(crate) const FEW_AT_A_TIME: [&str; 1] = ["--calls-max=8"];

const PODS: usize = 300;
/// Enough pods for the end of the slow start, with many creates of the batch left.
pub(crate) const AMID: usize = 60;

/// A namespace in which a ReplicaSet gets many pods, and all pods that were ever seen there. The last of them come at the end of
/// the test.
pub(crate) struct Growth {
    pub(crate) namespace: Namespace,
    sightings: Sightings,
    gate: Gate,
}

impl Growth {
    pub(crate) async fn new(cluster: &ApiServer, name: &str) -> Self {
        let namespace = Namespace::create(cluster.admin().await, name).await;
        Self {
            sightings: Sightings::begin(&namespace),
            gate: Gate::before(&namespace, AMID).await,
            namespace,
        }
    }

    /// Scales up, and returns during the creation: the API server holds creates in flight.
    pub(crate) async fn begin(&self) {
        acts::create_set(&self.namespace, &objects::replica_set("web", replicas())).await;
        self.is_held().await;
    }

    /// Admits `count` pods, and waits until further creates are held.
    pub(crate) async fn reach(&self, count: usize) {
        self.goes_on_to(count);
        self.is_held().await;
    }

    /// Admits `count` pods.
    pub(crate) fn goes_on_to(&self, count: usize) {
        assert!(count < PODS, "some are still to come");
        self.gate.let_through(count);
    }

    /// Admits all pods but the last.
    pub(crate) fn goes_on(&self) {
        self.goes_on_to(PODS - 1);
    }

    /// Admits all pods.
    pub(crate) fn opens(&self) {
        self.gate.open();
    }

    /// Waits until creates are held.
    pub(crate) async fn is_held(&self) {
        self.gate.holds_one().await;
    }

    /// Waits until all pods exist and the status reports them, and checks that there was never another.
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

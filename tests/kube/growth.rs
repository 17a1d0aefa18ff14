//! A scale-up that is slow enough for something to happen in it.

use serde_json::json;
use tests::real::{ApiServer, Namespace, Sightings};

use crate::{acts, objects};

/// How an agent makes the pods of a growth in about 3 s.
pub(crate) const SLOWLY: [&str; 2] = ["--api-qps=100", "--api-burst=10"];

const PODS: u32 = 300;
/// Enough that the slow start is over, and many creates of one batch are still to come.
const AMID: usize = 60;

/// A namespace in which a ReplicaSet gets many pods, and all that were ever seen there.
pub(crate) struct Growth {
    pub(crate) namespace: Namespace,
    pub(crate) sightings: Sightings,
}

// === impl Growth ===

impl Growth {
    /// Makes the namespace.
    pub(crate) async fn new(cluster: &ApiServer, name: &str) -> Self {
        let namespace = Namespace::create(cluster.admin().await, name).await;
        let sightings = Sightings::begin(&namespace);
        Self {
            namespace,
            sightings,
        }
    }

    /// Asks for the pods, and returns amid their creation.
    pub(crate) async fn begin(&self) {
        acts::create_set(&self.namespace, &objects::replica_set("web", PODS)).await;
        self.reach(AMID).await;
    }

    /// Waits until so many pods were there, and checks that more are to come.
    pub(crate) async fn reach(&self, count: usize) {
        self.sightings.reach(count).await;
        assert!(self.is_under_way(), "it went too fast");
    }

    /// Returns whether there are pods still to come.
    pub(crate) fn is_under_way(&self) -> bool {
        self.sightings.count() < wanted()
    }

    /// Waits until the pods are there and said to be, and checks that there never was another.
    pub(crate) async fn ends_well(&self) {
        let all = json!({"replicas": PODS, "fullyLabeledReplicas": PODS});
        acts::status_becomes(&self.namespace, "web", &all).await;
        acts::pods_become(&self.namespace, wanted()).await;
        self.sightings.reach(wanted()).await;
        assert_eq!(
            self.sightings.gone(),
            Vec::<String>::new(),
            "none had to go"
        );
        assert_eq!(self.sightings.count(), wanted(), "none was made twice");
    }
}

fn wanted() -> usize {
    usize::try_from(PODS).expect("it is small")
}

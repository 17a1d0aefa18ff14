//! The settings of a cluster: its nodes, the pace of its parts, and its bounds.

use std::time::Duration;

use jiff::Timestamp;

/// Describes a cluster. The default is a small healthy one: three nodes and a quick kubelet.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The seed of UIDs and jitter. The same seed and the same calls give the same cluster.
    pub seed: u64,
    /// The time at which the cluster begins.
    pub start: Timestamp,
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// The pace of the scheduler and the kubelets.
    pub kubelet: Kubelet,
    /// The consequences of a node that stops responding.
    pub node_loss: NodeLoss,
    /// How many changes of one kind a watch may start behind; older changes answer 410. Bounds the memory of the log.
    pub watch_log_max: usize,
    /// The interval of bookmarks on a quiet watch. A poll gives the bookmark, so a bookmark never makes
    /// [`crate::Cluster::next_due`] earlier.
    pub bookmark_every: Duration,
}

/// Sets the pace of the scheduler and the kubelets. `Duration::MAX` means never.
#[derive(Clone, Debug)]
pub struct Kubelet {
    /// From creation to the assignment to a node.
    pub schedule_after: Duration,
    /// From the assignment to Running.
    pub start_after: Duration,
    /// From Running to Ready.
    pub ready_after: Duration,
    /// From the deletion to the end; a shorter grace period of the pod has priority.
    pub grace: Duration,
    /// The most jitter that is added to each of the steps above, drawn from the seed.
    pub jitter: Duration,
}

/// Sets the consequences of a lost node, as delays from the moment when it stops responding. `Duration::MAX` means never.
#[derive(Clone, Debug)]
pub struct NodeLoss {
    /// Its pods are marked Unknown and not ready.
    pub unknown_after: Duration,
    /// Its pods are deleted, without a kubelet to stop them.
    pub evict_after: Duration,
    /// The node is removed with its pods.
    pub remove_after: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            start: Timestamp::constant(1_767_225_600, 0),
            nodes: ["node-a", "node-b", "node-c"].map(str::to_owned).to_vec(),
            kubelet: Kubelet::default(),
            node_loss: NodeLoss::default(),
            watch_log_max: 100_000,
            bookmark_every: Duration::from_secs(60),
        }
    }
}

impl Default for Kubelet {
    fn default() -> Self {
        Self {
            schedule_after: Duration::from_millis(20),
            start_after: Duration::from_millis(200),
            ready_after: Duration::from_millis(300),
            grace: Duration::from_millis(500),
            jitter: Duration::ZERO,
        }
    }
}

impl Default for NodeLoss {
    fn default() -> Self {
        Self {
            unknown_after: Duration::from_secs(40),
            evict_after: Duration::from_secs(340),
            remove_after: Duration::from_secs(640),
        }
    }
}

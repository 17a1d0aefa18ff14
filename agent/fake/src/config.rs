//! What a cluster is made of: its nodes, the pace of its parts, and its bounds.

use std::time::Duration;

use jiff::Timestamp;

/// Describes a cluster. The default is a sound small one: three nodes and a brisk kubelet.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Where uids, generated names, jitter and probable faults come from. Same seed and same calls, same cluster.
    pub seed: u64,
    /// The time at which the cluster begins.
    pub start: Timestamp,
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// How many pods a node takes; `None` for any number. Pods beyond stay Pending, unassigned.
    pub pods_per_node_max: Option<usize>,
    /// The pace of the scheduler and the kubelets.
    pub kubelet: Kubelet,
    /// What happens to a node that does not answer.
    pub node_loss: NodeLoss,
    /// How long the garbage collector takes to look at an object whose owner has gone.
    pub collect_after: Duration,
    /// How long the namespace controller takes to empty a namespace that is being deleted.
    pub empty_namespace_after: Duration,
    /// How many changes of one kind a watch may start behind; older ones answer 410. Bounds the memory of the log.
    pub watch_log_max: usize,
    /// How often a quiet watch gets a bookmark; `None` for never. A bookmark is given when it is polled for, so it never
    /// makes [`crate::Cluster::next_due`] earlier.
    pub bookmark_every: Option<Duration>,
}

/// Sets the pace of the scheduler and the kubelets. `Duration::MAX` means never.
#[derive(Clone, Debug)]
pub struct Kubelet {
    /// From created to assigned to a node.
    pub schedule_after: Duration,
    /// From assigned to Running.
    pub start_after: Duration,
    /// From Running to Ready.
    pub ready_after: Duration,
    /// From being asked to stop to gone; a pod's own grace period is used where it is shorter.
    pub grace: Duration,
    /// Up to so much, drawn from the seed, is added to each of the steps above.
    pub jitter: Duration,
}

/// Sets what happens, counted from the moment a node stops to answer. `Duration::MAX` means never.
#[derive(Clone, Debug)]
pub struct NodeLoss {
    /// Its pods are marked Unknown and not ready.
    pub unknown_after: Duration,
    /// Its pods are asked to go; no kubelet is there to obey.
    pub evict_after: Duration,
    /// The node is removed, and with it its pods.
    pub remove_after: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            start: Timestamp::constant(1_767_225_600, 0),
            nodes: ["node-a", "node-b", "node-c"].map(str::to_owned).to_vec(),
            pods_per_node_max: None,
            kubelet: Kubelet::default(),
            node_loss: NodeLoss::default(),
            collect_after: Duration::from_millis(100),
            empty_namespace_after: Duration::from_millis(200),
            watch_log_max: 100_000,
            bookmark_every: Some(Duration::from_secs(60)),
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

impl Kubelet {
    /// Returns a kubelet that does nothing: pods stay as they were created until a test says otherwise.
    #[must_use]
    pub const fn idle() -> Self {
        Self {
            schedule_after: Duration::MAX,
            start_after: Duration::MAX,
            ready_after: Duration::MAX,
            grace: Duration::MAX,
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

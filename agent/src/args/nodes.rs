//! The flags of nodes.

use agent_core::nodes::NodeFields;
use clap::Args;

/// Nodes, for preferences that depend on them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Nodes")]
pub struct NodeArgs {
    /// Read the nodes, and follow the preferences that depend on them: `surge-on-eviction`, and of `scale-in` the rules `leaving-node` and
    /// `spread`. The agent needs permission to list and watch nodes. Without effect in shadow mode.
    #[arg(long, env = "DECREE_NODES", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub nodes: bool,

    /// The key of a taint of nodes whose pods will be evicted; repeatable. The agent may delete such a pod once its replacement is
    /// available.
    #[arg(
        long = "leaving-taint",
        env = "DECREE_LEAVING_TAINT",
        value_delimiter = ',',
        default_values_t = NodeFields::default().leaving_taints,
        value_name = "KEY"
    )]
    pub leaving_taints: Vec<String>,

    /// A label of nodes that `spread` can name, at most 8; repeatable.
    #[arg(
        long = "node-label",
        env = "DECREE_NODE_LABEL",
        value_delimiter = ',',
        default_values_t = NodeFields::default().labels,
        value_name = "KEY"
    )]
    pub node_labels: Vec<String>,
}

impl NodeArgs {
    /// Returns the fields of nodes to read; `None` to read no nodes. Empty keys are left out.
    pub fn fields(&self) -> Option<NodeFields> {
        let keys = |keys: &[String]| keys.iter().filter(|it| !it.is_empty()).cloned().collect();
        self.nodes.then(|| NodeFields {
            leaving_taints: keys(&self.leaving_taints),
            labels: keys(&self.node_labels),
        })
    }
}

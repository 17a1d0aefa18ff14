//! The settings of an agent.

use std::{collections::BTreeSet, time::Duration};

use decree_api::v1;

use crate::{
    asking, budget,
    execute::creates::CreateLimits,
    lease::shard::Shard,
    nodes::{self, NodeFields},
    preferences::PreferencePolicy,
};

/// The identity and the settings of an agent. The defaults suit one agent of one cluster.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The unique name of this process.
    pub instance: String,
    /// The uid of the namespace kube-system.
    pub cluster_uid: String,
    /// The cluster's name for people.
    pub cluster_name: String,
    /// The part of the cluster; empty for all.
    pub shard: String,
    /// The number of lease transitions.
    pub epoch: i64,
    /// The mode of the agent.
    pub mode: v1::Mode,
    /// In mode ADVISE: whether the agent ends once its advice is taken away. Its policy must then follow no preferences.
    pub withdraw: bool,
    /// The options of decisions.
    pub options: v1::Options,
    /// The annotations of ReplicaSets that the agent follows, except in shadow mode.
    pub preferences: PreferencePolicy,
    /// The fields of nodes that the agent sends, except in shadow mode; `None` to read no nodes.
    pub nodes: Option<NodeFields>,
    /// The group and version of the ReplicaSets, such as `apps/v1`.
    pub api_version: String,
    /// The namespaces in which the agent acts; empty for all.
    pub namespaces: BTreeSet<String>,
    /// The shard whose namespaces are served; `None` for the whole cluster.
    pub namespaces_of: Option<Shard>,
    /// The namespace and the name of a ReplicaSet that no server gets to know: the [probe](crate::take_over).
    pub left_out: Option<(String, String)>,
    /// The most calls in flight. One round of slow start in a burst of 500 fits.
    pub calls_max: usize,
    /// How many events may wait for the server one by one. If more wait, a later event of an object replaces an earlier one. So a server
    /// that reads slowly costs bounded memory. Such a server sees states that never were: one pod replaced, and both present.
    pub events_max: usize,
    /// How long a create may take, and how much later it may still take effect.
    pub creates: CreateLimits,
    /// The most creates and deletes in a minute.
    pub budget: budget::BudgetConfig,
    /// The shortest wait before reconnecting.
    pub backoff_min: Duration,
    /// The longest wait before reconnecting.
    pub backoff_max: Duration,
    /// The seed of all jitter.
    pub seed: u64,
    /// Whether operations start that break the rules of `execute`: for tests of the effects of a broken server.
    pub lenient: bool,
}

impl AgentConfig {
    pub(crate) fn allows_all_namespaces(&self) -> bool {
        self.namespaces.is_empty() && self.namespaces_of.is_none()
    }

    /// Returns whether objects of a namespace concern this agent.
    pub fn allows_namespace(&self, namespace: &str) -> bool {
        let Self {
            namespaces,
            namespaces_of,
            ..
        } = self;
        let is_listed = namespaces.is_empty() || namespaces.contains(namespace);
        is_listed && namespaces_of.is_none_or(|shard| shard.contains(namespace))
    }

    pub(super) fn hello(&self) -> v1::Hello {
        let asks = !self.preferences.cost_sources.is_empty() && self.mode != v1::Mode::Shadow;
        let capabilities = [
            asks.then(|| asking::CAPABILITY.to_owned()),
            self.nodes().map(|_| nodes::CAPABILITY.to_owned()),
        ];
        v1::Hello {
            capabilities: capabilities.into_iter().flatten().collect(),
            agent_instance: self.instance.clone(),
            cluster_uid: self.cluster_uid.clone(),
            cluster_name: self.cluster_name.clone(),
            shard: self.shard.clone(),
            epoch: self.epoch,
            mode: self.mode.into(),
            options: Some(self.options),
            ..v1::Hello::default()
        }
    }

    /// The fields of nodes that are read. In shadow mode, no preference needs them.
    pub(crate) fn nodes(&self) -> Option<&NodeFields> {
        let needs = self.mode != v1::Mode::Shadow;
        self.nodes.as_ref().filter(|_| needs)
    }
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            instance: "agent".into(),
            cluster_uid: String::new(),
            cluster_name: String::new(),
            shard: String::new(),
            epoch: 0,
            mode: v1::Mode::Enforce,
            withdraw: false,
            options: v1::Options::default(),
            preferences: PreferencePolicy::default(),
            nodes: None,
            api_version: "apps/v1".into(),
            namespaces: BTreeSet::new(),
            namespaces_of: None,
            left_out: None,
            calls_max: 256,
            events_max: 4_096,
            creates: CreateLimits::default(),
            budget: budget::BudgetConfig::default(),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(2),
            seed: 0,
            lenient: false,
        }
    }
}

//! The flags of the preferences that owners of ReplicaSets state by annotations.

use std::collections::BTreeSet;

use agent_core::preferences::{self, DefaultPreference, Preference, PreferencePolicy};
use clap::Args;

/// The preferences that the agent follows.
#[derive(Clone, Debug, Args)]
pub struct PreferenceArgs {
    /// The annotations of ReplicaSets that the agent follows beyond Kubernetes' rules, separated by commas, or `none`.
    #[arg(long, env = "DECREE_PREFERENCES", default_value = "create,keep-ended,scale-in,scale-in-cost,surge-on-eviction", value_parser = preferences::names, value_name = "NAMES")]
    pub preferences: BTreeSet<Preference>,

    /// A preference of the ReplicaSets of a namespace, or of all with `*`, that have no such annotation; repeatable. Example:
    /// `batch:keep-ended=5`.
    #[arg(
        long = "default-preference",
        env = "DECREE_DEFAULT_PREFERENCE",
        value_delimiter = ';',
        value_name = "NAMESPACE:NAME=VALUE"
    )]
    pub default_preferences: Vec<DefaultPreference>,

    /// The sources from which pods may be asked for their deletion costs, separated by commas: `http` sends a GET to the pod's own address.
    /// Without a source, the annotation `decree.dev/scale-in-cost` is not followed.
    #[arg(
        long = "scale-in-costs",
        env = "DECREE_SCALE_IN_COSTS",
        value_delimiter = ',',
        value_parser = ["http"],
        value_name = "SOURCES"
    )]
    pub scale_in_costs: Vec<String>,
}

impl PreferenceArgs {
    pub(super) fn policy(&self) -> PreferencePolicy {
        PreferencePolicy {
            asks_costs: !self.scale_in_costs.is_empty(),
            ..PreferencePolicy::new(self.preferences.clone(), &self.default_preferences)
        }
    }
}

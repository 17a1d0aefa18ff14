//! The flags of the budget: how many pods may be created and deleted in a minute.

use agent_core::budget::{Action, BudgetConfig, Limit, Limits};
use clap::{Args, ValueEnum};

/// How much may be created and deleted in a minute.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Budget")]
pub struct BudgetArgs {
    /// What happens where a limit of the budget is exceeded.
    #[arg(long, env = "DECREE_BUDGET_ACTION", value_enum, default_value_t)]
    pub budget_action: BudgetAction,

    /// The number of pods that a percentage allows at least.
    #[arg(
        long,
        env = "DECREE_BUDGET_FLOOR",
        default_value_t = 20,
        value_name = "COUNT"
    )]
    pub budget_floor: u32,

    /// The maximum number of pods that are deleted in a minute for a ReplicaSet: a number, a percentage of its pods such as `50%`, or `off`.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET_REPLICASET",
        default_value = "off",
        value_name = "LIMIT"
    )]
    pub delete_budget_replicaset: Limit,

    /// The maximum number of pods that are deleted in a minute for a namespace: a number, a percentage of its pods such as `50%`, or `off`. A percentage leaves out the ReplicaSet with the most of them.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET_NAMESPACE",
        default_value = "off",
        value_name = "LIMIT"
    )]
    pub delete_budget_namespace: Limit,

    /// The maximum number of pods that are deleted in a minute for the cluster: a number, a percentage of its pods such as `50%`, or `off`. A percentage leaves out the ReplicaSet with the most of them.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET_CLUSTER",
        default_value = "50%",
        value_name = "LIMIT"
    )]
    pub delete_budget_cluster: Limit,

    /// The maximum number of pods that are created in a minute for a ReplicaSet: a number, a percentage of its pods such as `50%`, a multiple of
    /// the pods that it wants such as `3x+20`, or `off`.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET_REPLICASET",
        default_value_t = BudgetConfig::default().creates.replica_set,
        value_name = "LIMIT"
    )]
    pub create_budget_replicaset: Limit,

    /// The maximum number of pods that are created in a minute for a namespace: a number, a percentage of its pods such as `50%`, a
    /// multiple of the pods that are wanted there such as `3x+20`, or `off`. A percentage leaves out the ReplicaSet with the most of them.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET_NAMESPACE",
        default_value = "off",
        value_name = "LIMIT"
    )]
    pub create_budget_namespace: Limit,

    /// The maximum number of pods that are created in a minute for the cluster: a number, a percentage of its pods such as `50%`, a
    /// multiple of the pods that are wanted there such as `3x+20`, or `off`. A percentage leaves out the ReplicaSet with the most of them.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET_CLUSTER",
        default_value_t = BudgetConfig::default().creates.cluster,
        value_name = "LIMIT"
    )]
    pub create_budget_cluster: Limit,
}

/// What happens where a limit is exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BudgetAction {
    /// Go on, with a Kubernetes event, a line of the log, and a metric.
    #[default]
    Warn,
    /// Start no further operation of that kind there, until `decree resume` or an annotation.
    Hold,
}

// === impl BudgetArgs ===

impl BudgetArgs {
    /// Returns the configuration of the budget.
    #[must_use]
    pub const fn config(&self) -> BudgetConfig {
        let Self {
            budget_action,
            budget_floor,
            delete_budget_replicaset,
            delete_budget_namespace,
            delete_budget_cluster,
            create_budget_replicaset,
            create_budget_namespace,
            create_budget_cluster,
        } = self;
        BudgetConfig {
            action: budget_action.to_action(),
            floor: *budget_floor,
            creates: Limits {
                replica_set: *create_budget_replicaset,
                namespace: *create_budget_namespace,
                cluster: *create_budget_cluster,
            },
            deletes: Limits {
                replica_set: *delete_budget_replicaset,
                namespace: *delete_budget_namespace,
                cluster: *delete_budget_cluster,
            },
        }
    }
}

// === impl BudgetAction ===

impl BudgetAction {
    const fn to_action(self) -> Action {
        match self {
            Self::Warn => Action::Warn,
            Self::Hold => Action::Hold,
        }
    }
}

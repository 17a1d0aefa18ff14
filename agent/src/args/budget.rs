//! The flags of the budget: how many pods may be created and deleted in a minute.

use agent_core::budget::{Action, BudgetConfig, Limits};
use clap::{Args, ValueEnum};

/// How much may be created and deleted in a minute.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Budget")]
pub struct BudgetArgs {
    /// What happens where a limit of the budget is exceeded.
    #[arg(long, env = "DECREE_BUDGET_ACTION", value_enum, default_value_t)]
    pub budget_action: BudgetAction,

    /// The maximum number of pods that are created in a minute for a ReplicaSet and for the cluster: a number, a percentage of the desired
    /// pods, or both, such as `replicaset=300%+20,cluster=1000`. A scope without a limit is left out; `off` has no limit at all.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET",
        default_value_t = BudgetConfig::default().creates,
        value_name = "LIMITS"
    )]
    pub create_budget: Limits,

    /// The maximum number of pods that are deleted in a minute, written as for `--create-budget`; a percentage is of the active pods. A
    /// percentage of the cluster leaves out the ReplicaSet with the most operations.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET",
        default_value_t = BudgetConfig::default().deletes,
        value_name = "LIMITS"
    )]
    pub delete_budget: Limits,
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
        BudgetConfig {
            action: match self.budget_action {
                BudgetAction::Warn => Action::Warn,
                BudgetAction::Hold => Action::Hold,
            },
            creates: self.create_budget,
            deletes: self.delete_budget,
        }
    }
}

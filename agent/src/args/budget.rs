//! The flags of the budget: how many pods may be created and deleted in a minute.

use agent_core::budget::{Action, BudgetConfig, Limits};
use clap::{Args, ValueEnum};

/// Budget of creates and deletes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Budget")]
pub struct BudgetArgs {
    /// The action if a limit of the budget is exceeded.
    #[arg(long, env = "DECREE_BUDGET_ACTION", value_enum, default_value_t)]
    pub budget_action: BudgetAction,

    /// The maximum number of creates in a minute for a ReplicaSet and for the cluster. A limit is a number, a percentage of the desired
    /// pods, or both, such as `replicaset=300%+20,cluster=1000`. Leave out a scope without a limit; `off` sets no limit.
    #[arg(
        long,
        env = "DECREE_CREATE_BUDGET",
        default_value_t = BudgetConfig::default().creates,
        value_name = "LIMITS"
    )]
    pub create_budget: Limits,

    /// The maximum number of deletes in a minute, as for `--create-budget`, with percentages of the active pods. A percentage of the
    /// cluster leaves out the ReplicaSet with the most deletes.
    #[arg(
        long,
        env = "DECREE_DELETE_BUDGET",
        default_value_t = BudgetConfig::default().deletes,
        value_name = "LIMITS"
    )]
    pub delete_budget: Limits,
}

/// The action if a limit is exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BudgetAction {
    /// Continue, with a Kubernetes event, a log line and a metric.
    #[default]
    Warn,
    /// Start no further operation of that kind in that scope, until `decree resume` or an annotation.
    Hold,
}

impl BudgetArgs {
    /// Returns the configuration of the budget.
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

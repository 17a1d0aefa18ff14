//! The subject of a check, and the link to its documentation.

use clap::ValueEnum;

const DOCUMENTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");

/// A group of checks, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// Whether the decision server answers, and its version
    Server,
    /// Whether the API server answers, and its version
    Cluster,
    /// What an agent does that these credentials do not allow
    Permissions,
    /// The agent's session, its Lease, and what its budget holds
    Agent,
    /// Whether the agent has seen resource versions go back
    History,
    /// Whether the built-in controller acts
    Others,
}

// === impl Section ===

impl Section {
    pub(super) const ALL: [Self; 6] = [
        Self::Server,
        Self::Cluster,
        Self::Permissions,
        Self::Agent,
        Self::History,
        Self::Others,
    ];

    /// The section of a check by its name. An unknown check belongs to the agent, as most checks do.
    pub(super) fn of(check: &str) -> Self {
        match check {
            "server" | "versions" => Self::Server,
            "credentials" | "api server" => Self::Cluster,
            "permissions" => Self::Permissions,
            "history" => Self::History,
            "built-in controller" => Self::Others,
            check if check.starts_with("may ") => Self::Permissions,
            _ => Self::Agent,
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Server => "decision server",
            Self::Cluster => "cluster",
            Self::Permissions => "permissions",
            Self::Agent => "agent",
            Self::History => "history of the cluster",
            Self::Others => "other controllers",
        }
    }

    pub(super) fn link(self) -> String {
        let page = match self {
            Self::Server => "cli.md#querying-a-server",
            Self::Cluster => "operations.md#choose-the-cluster",
            Self::Permissions => "operations.md#on-a-cluster",
            Self::Agent => "operations.md#starting",
            Self::History => "safeguards.md#after-a-restore-of-etcd",
            Self::Others => "operations.md#migrating-and-back",
        };
        format!("{DOCUMENTS}{page}")
    }
}

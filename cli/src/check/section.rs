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
    /// Acts of an agent that these credentials do not allow
    Permissions,
    /// The agent's session, its Lease, and what its budget holds
    Agent,
    /// Whether the built-in controller is declared off, and whether other controllers act
    Others,
}

impl Section {
    /// The section of a check by its name. An unknown check belongs to the agent, as most checks do.
    pub(super) fn of(check: &str) -> Self {
        match check {
            "server" | "versions" => Self::Server,
            "credentials" | "api server" => Self::Cluster,
            "permissions" => Self::Permissions,
            "built-in controller" | "other controllers" => Self::Others,
            check if check.starts_with("may ") => Self::Permissions,
            _ => Self::Agent,
        }
    }

    pub(super) const fn title(self) -> &'static str {
        self.about().0
    }

    /// The page about a check of this section.
    pub(super) fn link(self, check: &str) -> String {
        let page = match check {
            "budget" => "safeguards.md#when-the-budget-pauses-an-agent",
            _ => self.about().1,
        };
        format!("{DOCUMENTS}{page}")
    }

    /// The title, and the heading of the documentation.
    const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("decision server", "cli.md#querying-a-server"),
            Self::Cluster => ("cluster", "operations.md#choose-the-cluster"),
            Self::Permissions => ("permissions", "operations.md#on-a-cluster"),
            Self::Agent => ("agent", "operations.md#starting"),
            Self::Others => ("other controllers", "operations.md#migrating-and-back"),
        }
    }
}

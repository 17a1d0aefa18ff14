//! What the budget holds, for whoever asks at the admin port.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::budget::{Hold, Scope};
use axum::{Json, Router, extract::State, routing::get};
use runtime::excerpt;
use serde::{Deserialize, Serialize};

/// Where the page is.
pub const HOLDS_PATH: &str = "/holds";
/// How many holds the page shows.
const SHOWN_MAX: usize = 100;

/// What the budget of an agent holds at the moment. Clones share it: the agent sets it, the admin port shows it.
#[derive(Clone, Debug, Default)]
pub struct Holds(Arc<Mutex<HoldsPage>>);

/// What the page says, as JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldsPage {
    /// Whether the agent has a session: one that stands by holds nothing.
    pub in_session: bool,
    /// How many holds there are.
    pub count: usize,
    /// The first 100 of them.
    pub holds: Vec<HeldScope>,
}

/// One scope that is held.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldScope {
    /// `create` or `delete`.
    pub operation: String,
    /// `replicaset`, `namespace` or `cluster`.
    pub scope: String,
    /// The namespace, if it is not the cluster.
    pub namespace: Option<String>,
    /// The name of the ReplicaSet, if it is one.
    pub name: Option<String>,
    /// When it began, in RFC 3339.
    pub since: String,
    /// Which limit was exceeded, and what ends the hold.
    pub message: String,
    /// The command that ends it.
    pub resume: String,
}

// === impl Holds ===

impl Holds {
    /// Returns the route of the page.
    pub fn router(&self) -> Router {
        Router::new().route(HOLDS_PATH, get(page).with_state(self.clone()))
    }

    pub(crate) fn set<'a>(&self, holds: impl Iterator<Item = &'a Hold>) {
        let mut count = 0;
        let counted = holds.inspect(|_| count += 1);
        let (shown, rest): (Vec<_>, Vec<_>) =
            counted.enumerate().partition(|(at, _)| *at < SHOWN_MAX);
        drop(rest);
        let mut page = self.lock();
        page.holds = shown
            .into_iter()
            .map(|(_, hold)| HeldScope::from(hold))
            .collect();
        page.count = count;
    }

    pub(crate) fn set_in_session(&self, in_session: bool) {
        self.lock().in_session = in_session;
    }

    /// Returns what the page says.
    pub(crate) fn page(&self) -> HoldsPage {
        self.lock().clone()
    }

    /// Shows what the pages of several agents say together.
    pub(crate) fn show_all(&self, pages: impl Iterator<Item = HoldsPage>) {
        let mut all = HoldsPage::default();
        for page in pages {
            all.in_session |= page.in_session;
            all.count += page.count;
            all.holds.extend(page.holds);
        }
        all.holds.truncate(SHOWN_MAX);
        *self.lock() = all;
    }

    fn lock(&self) -> MutexGuard<'_, HoldsPage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&Hold> for HeldScope {
    fn from(hold: &Hold) -> Self {
        let (namespace, name) = match &hold.scope {
            Scope::ReplicaSet {
                namespace, name, ..
            } => (Some(excerpt(namespace)), Some(excerpt(name))),
            Scope::Namespace(namespace) => (Some(excerpt(namespace)), None),
            Scope::Cluster => (None, None),
        };
        Self {
            operation: hold.verb.as_str().to_owned(),
            scope: hold.scope.level().to_owned(),
            namespace,
            name,
            since: hold.since.to_string(),
            message: excerpt(&hold.message()),
            resume: excerpt(&hold.scope.command()),
        }
    }
}

async fn page(State(holds): State<Holds>) -> Json<HoldsPage> {
    Json(holds.page())
}

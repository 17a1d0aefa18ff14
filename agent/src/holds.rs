//! The holds of the budget, for clients of the admin port.

use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::budget::{Hold, Scope};
use axum::{Json, Router, routing::get};
use serde::{Deserialize, Serialize};
use service::excerpt;

/// The path of the page.
pub const HOLDS_PATH: &str = "/holds";
/// The most holds on the page.
const SHOWN_MAX: usize = 100;

/// The present holds of an agent's budget. Clones share them: the agent sets them, and the admin port shows them.
#[derive(Clone, Debug, Default)]
pub struct Holds(Arc<Mutex<HoldsPage>>);

/// The content of the page, as JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldsPage {
    /// Whether the agent has a session: an agent that stands by holds nothing.
    pub in_session: bool,
    /// The number of holds.
    pub count: usize,
    /// The first 100 holds.
    pub holds: Vec<HeldScope>,
}

/// One held scope.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldScope {
    /// `create` or `delete`.
    pub operation: String,
    /// `replicaset` or `cluster`.
    pub scope: String,
    /// The namespace of the ReplicaSet, if the scope is one.
    pub namespace: Option<String>,
    /// The name of the ReplicaSet, if the scope is one.
    pub name: Option<String>,
    /// When the hold began, in RFC 3339.
    pub since: String,
    /// The exceeded limit, and how to end the hold.
    pub message: String,
    /// The command that ends the hold.
    pub resume: String,
}

impl Holds {
    /// Returns the route of the page.
    pub fn router(&self) -> Router {
        let holds = self.clone();
        Router::new().route(HOLDS_PATH, get(move || ready(Json(holds.page()))))
    }

    pub(crate) fn set<'a>(&self, holds: impl Iterator<Item = &'a Hold>) {
        let mut holds: Vec<_> = holds.collect();
        holds.sort_by_key(|it| {
            let named = &it.replica_set;
            (it.verb, it.scope, &named.namespace, &named.name)
        });
        let mut page = self.lock();
        page.count = holds.len();
        let shown = holds.into_iter().take(SHOWN_MAX);
        page.holds = shown.map(HeldScope::from).collect();
    }

    pub(crate) fn set_in_session(&self, in_session: bool) {
        self.lock().in_session = in_session;
    }

    /// Shows an agent that does not act.
    pub(crate) fn clear(&self) {
        *self.lock() = HoldsPage::default();
    }

    fn page(&self) -> HoldsPage {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HoldsPage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&Hold> for HeldScope {
    fn from(hold: &Hold) -> Self {
        let set = Some(&hold.replica_set).filter(|_| hold.scope == Scope::ReplicaSet);
        Self {
            operation: hold.verb.as_str().to_owned(),
            scope: hold.scope.as_str().to_owned(),
            namespace: set.map(|set| excerpt(&set.namespace)),
            name: set.map(|set| excerpt(&set.name)),
            since: hold.since.to_string(),
            message: excerpt(&hold.message()),
            resume: excerpt(&hold.command()),
        }
    }
}

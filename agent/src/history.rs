//! The falls of the cluster's versions, for clients of the admin port.

use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::lease;
use agent_kube::Clock;
use axum::{Json, Router, routing::get};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::metrics::{LEASES, Metrics};

/// The path of the page.
pub const HISTORY_PATH: &str = "/history";
/// How many of the latest falls the page shows.
const SHOWN_MAX: usize = 10;

/// The falls of the cluster's versions during this process. Clones share them.
#[derive(Clone, Debug)]
pub struct History(Arc<HistoryState>);

#[derive(Debug)]
struct HistoryState {
    clock: Clock,
    metrics: Metrics,
    times: Mutex<VecDeque<(Timestamp, Regression)>>,
    /// How often the version of a Lease went back.
    leases: watch::Sender<u64>,
}

/// The content of the page, as JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// The last 10 falls of versions, the latest first.
    pub went_back: Vec<Regression>,
}

/// One fall of versions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Regression {
    /// `replicasets`, `pods` or `leases`.
    pub kind: String,
    /// The version that the cluster had reached.
    pub from: u64,
    /// The version that the cluster had after the fall.
    pub to: u64,
    /// How long ago the fall was noticed.
    pub seconds_ago: u64,
}

// === impl History ===

impl History {
    /// Creates a history whose falls these metrics count.
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self(Arc::new(HistoryState {
            clock: Clock::starting_at(Timestamp::now()),
            metrics,
            times: Mutex::default(),
            leases: watch::Sender::new(0),
        }))
    }

    /// Returns the route of the page.
    pub fn router(&self) -> Router {
        let history = self.clone();
        Router::new().route(HISTORY_PATH, get(move || ready(Json(history.page()))))
    }

    /// Notes and counts that the versions of a kind went back.
    pub(crate) fn note(&self, kind: &'static str, from: u64, to: u64) {
        self.0.metrics.count_went_back(kind);
        let regression = Regression {
            kind: kind.to_owned(),
            from,
            to,
            seconds_ago: 0,
        };
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push_front((self.0.clock.now(), regression));
        times.truncate(SHOWN_MAX);
    }

    /// Notes that the version of a Lease went back. The agents of the process then check the other versions.
    pub(crate) fn note_lease(&self, went_back: lease::WentBack) {
        self.note(LEASES, went_back.from, went_back.to);
        self.0.leases.send_modify(|times| *times += 1);
    }

    /// A receiver of changes for each Lease whose version goes back from now on.
    pub(crate) fn leases(&self) -> watch::Receiver<u64> {
        self.0.leases.subscribe()
    }

    fn page(&self) -> HistoryPage {
        let now = self.0.clock.now();
        let times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = times.iter().map(|(at, regression)| Regression {
            seconds_ago: now.duration_since(*at).as_secs().unsigned_abs(),
            ..regression.clone()
        });
        HistoryPage {
            went_back: shown.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_shows_the_last_times_the_latest_first() {
        let history = History::new(Metrics::default());
        for from in 1..=12 {
            history.note_lease(lease::WentBack { from, to: 0 });
        }
        let shown = history.page().went_back;
        let shown: Vec<_> = shown.iter().map(|it| it.from).collect();
        assert_eq!(shown, (3..=12).rev().collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn leases_that_went_back_raise_a_suspicion() {
        let history = History::new(Metrics::default());
        let mut leases = history.leases();
        history.note_lease(lease::WentBack { from: 2, to: 1 });
        leases.changed().await.expect("the history lives");
    }
}

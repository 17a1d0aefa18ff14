//! The acts on one ReplicaSet until it comes to rest, and their judgement.

use std::sync::Arc;

use server_core::{Key, KnownSet, REPLICA_FAILURE, Status, Timestamp};

use crate::{
    acts::{Acts, Judge},
    difference::{Departure, Finding, PENDING_MAX, SETTLED, STATUS_MAX, Subject},
};

/// The memory of a pending status in bytes, without the texts of its conditions.
const STATUS_BYTES: usize = 1_000;
/// The memory of an episode in bytes, without its content.
const EPISODE_BYTES: usize = 700;

#[derive(Clone, Debug)]
pub(super) struct Episode {
    /// The time of the last creation or removal.
    pub(super) changed: Timestamp,
    /// The time of the next judgement.
    pub(super) due: Timestamp,
    pub(super) acts: Acts,
    /// Since when an act is due, and whether that was reported.
    pending: Option<(Timestamp, Reported)>,
    /// The status that is due, the current one, since when both are so, and whether that was reported.
    status: Option<(Status, Status, Timestamp, Reported)>,
    status_bytes: usize,
}

/// Whether a difference was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    No,
    Yes,
}

// === impl Episode ===

impl Episode {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            changed: now,
            due: now.plus(SETTLED),
            acts: Acts::default(),
            pending: None,
            status: None,
            status_bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        EPISODE_BYTES + self.acts.bytes() + self.status_bytes
    }

    /// Returns when to judge it after an event.
    pub(super) fn next_due(&self) -> Timestamp {
        let settled = self.changed.plus(SETTLED);
        self.acts.due().map_or(settled, |due| due.min(settled))
    }

    /// Waits for a status that is due; `there` is the current one.
    fn wait_with(&mut self, due: Status, there: Status, since: Timestamp, reported: Reported) {
        self.status_bytes = STATUS_BYTES + words(&due) + words(&there);
        self.status = Some((due, there, since, reported));
    }

    /// Judges the acts, and the state at rest. Returns when to judge again; `None` ends the episode.
    pub(super) fn judge(&mut self, judge: &mut Judge<'_>, key: &Key) -> Option<Timestamp> {
        let set = &judge.controller.inspect().replica_set(key)?;
        if set.object().deleting || set.object().selector.is_err() {
            return None;
        }
        let acts = self.acts.judge(judge, set);
        // A wrong act is not reported again as a missing act.
        let mut told = judge.findings.iter().map(|finding| finding.subject);
        if told.any(|subject| subject == Subject::Adoption) {
            self.pending = Some((judge.now, Reported::Yes));
        }
        let rest = self.judge_rest(judge, set);
        acts.into_iter().chain(rest).min()
    }

    /// Judges whether due acts were done, and the status, once nothing has happened for a while.
    fn judge_rest(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let now = judge.now;
        let settled = self.changed.plus(SETTLED);
        if now < settled {
            return Some(settled);
        }
        if let Some((subject, decided)) = pending(set) {
            let (since, reported) = self.pending.unwrap_or((now, Reported::No));
            self.pending = Some((since, reported));
            let over = since.max(self.changed).plus(PENDING_MAX);
            if now < over {
                return Some(over);
            }
            if reported == Reported::No && !has_failed(set) {
                let departure = judge.namespace_ending(set);
                judge.find(Finding::new(subject, decided, "not done").because(departure));
            }
            self.pending = Some((since, Reported::Yes));
            return Some(now.plus(PENDING_MAX));
        }
        self.pending = None;
        self.judge_status(judge, set)
    }

    /// Waits until a status that differs has lasted long enough.
    fn judge_status(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let now = judge.now;
        let known = self.status.take();
        self.status_bytes = 0;
        let Some(due) = set.status_due(now) else {
            judge.agreements.agree(Subject::Status);
            return None;
        };
        let there = &set.object().status;
        let known = known.filter(|(was_due, was_there, ..)| *was_due == due && was_there == there);
        let (since, reported) = known.map_or((now, Reported::No), |(_, _, since, reported)| {
            (since, reported)
        });
        let over = since.plus(STATUS_MAX);
        if now < over {
            self.wait_with(due, there.clone(), since, reported);
            return Some(over);
        }
        if reported == Reported::No {
            let only_conditions = Status {
                conditions: there.conditions.clone(),
                ..due
            } == *there;
            let departure = only_conditions.then_some(Departure::ReplicaFailure);
            let finding = Finding::new(Subject::Status, status_text(&due), status_text(there));
            judge.find(finding.because(departure));
        }
        self.wait_with(due, there.clone(), since, Reported::Yes);
        Some(now.plus(STATUS_MAX))
    }
}

/// Returns the next act on the pods that the other controller has to do. Claims come first, as they change the counts.
fn pending(set: &KnownSet<'_>) -> Option<(Subject, String)> {
    let claim = |verb: &str, name: &Arc<str>| (Subject::Adoption, format!("{verb} {name}"));
    let adopt = set.first_to_adopt().map(|name| claim("adopt", name));
    let release = || set.releases().next().map(|name| claim("release", name));
    adopt.or_else(release).or_else(|| match set.surplus() {
        0 => None,
        missing @ ..0 => Some((Subject::Count, format!("create {}", missing.unsigned_abs()))),
        surplus @ 1.. => Some((Subject::Count, format!("delete {surplus}"))),
    })
}

fn has_failed(set: &KnownSet<'_>) -> bool {
    let mut conditions = set.object().status.conditions.iter();
    conditions.any(|condition| condition.kind == REPLICA_FAILURE && condition.status == "True")
}

/// Returns the size in bytes of the texts of a status.
fn words(status: &Status) -> usize {
    let conditions = status.conditions.iter();
    let bytes = conditions.map(|condition| {
        let words = [
            &condition.kind,
            &condition.status,
            &condition.reason,
            &condition.message,
        ];
        words.map(String::len).iter().sum::<usize>()
    });
    bytes.sum()
}

fn status_text(status: &Status) -> String {
    let Status {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions,
    } = status;
    let terminating =
        terminating_replicas.map_or_else(|| "no".to_owned(), |count| count.to_string());
    let conditions: Vec<_> = conditions
        .iter()
        .map(|condition| &*condition.kind)
        .collect();
    let conditions = if conditions.is_empty() {
        "none"
    } else {
        &conditions.join(", ")
    };
    format!(
        "replicas {replicas}, fully labeled {fully_labeled_replicas}, ready {ready_replicas}, available {available_replicas}, \
         terminating {terminating}, generation {observed_generation}, conditions {conditions}"
    )
}

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
    pending: Option<(Timestamp, bool)>,
    /// The status that is due, the current one, since when both are so, and whether that was reported.
    status: Option<(Status, Status, Timestamp, bool)>,
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
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let status = self.status.as_ref();
        let status = status.map_or(0, |(due, there, ..)| {
            STATUS_BYTES + words(due) + words(there)
        });
        EPISODE_BYTES + self.acts.bytes() + status
    }

    /// Returns when to judge it after an event.
    pub(super) fn next_due(&self) -> Timestamp {
        let settled = self.changed.plus(SETTLED);
        self.acts.due().map_or(settled, |due| due.min(settled))
    }

    /// Judges the acts, and the state at rest. Returns when to judge again; `None` ends the episode.
    pub(super) fn judge(&mut self, judge: &mut Judge<'_>, key: &Key) -> Option<Timestamp> {
        let set = &judge.controller.inspect().replica_set(key)?;
        if set.object().deleting || set.is_quarantined() {
            return None;
        }
        let acts = self.acts.judge(judge, set);
        // A wrong act is not reported again as a missing act.
        let mut told = judge.findings.iter().map(|finding| finding.subject);
        if told.any(|subject| subject == Subject::Adoption) {
            self.pending = Some((judge.now, true));
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
            let (since, is_reported) = self.pending.unwrap_or((now, false));
            let over = since.max(self.changed).plus(PENDING_MAX);
            let is_over = now >= over;
            if is_over && !is_reported && !has_failed(set) {
                let departure = judge.namespace_ending(set);
                judge.find(Finding::new(subject, decided, "not done").because(departure));
            }
            self.pending = Some((since, is_reported || is_over));
            return Some(if is_over { now.plus(PENDING_MAX) } else { over });
        }
        self.pending = None;
        self.judge_status(judge, set)
    }

    /// Waits until a status that differs has lasted long enough.
    fn judge_status(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let now = judge.now;
        let known = self.status.take();
        let Some(due) = set.status_due(now) else {
            judge.agreements.agree(Subject::Status);
            return None;
        };
        let there = &set.object().status;
        let known = known.filter(|(was_due, was_there, ..)| *was_due == due && was_there == there);
        let (since, is_reported) = known.map_or((now, false), |(.., since, told)| (since, told));
        let over = since.plus(STATUS_MAX);
        let is_over = now >= over;
        if is_over && !is_reported {
            let only_conditions = Status {
                conditions: there.conditions.clone(),
                ..due
            } == *there;
            let departure = only_conditions.then_some(Departure::ReplicaFailure);
            let finding = Finding::new(Subject::Status, status_text(&due), status_text(there));
            judge.find(finding.because(departure));
        }
        self.status = Some((due, there.clone(), since, is_reported || is_over));
        Some(if is_over { now.plus(STATUS_MAX) } else { over })
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
    let words = conditions.flat_map(|it| [&it.kind, &it.status, &it.reason, &it.message]);
    words.map(String::len).sum()
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
    let kinds: Vec<_> = conditions.iter().map(|it| &*it.kind).collect();
    let conditions = match &kinds[..] {
        [] => "none".to_owned(),
        kinds => kinds.join(", "),
    };
    format!(
        "replicas {replicas}, fully labeled {fully_labeled_replicas}, ready {ready_replicas}, available {available_replicas}, \
         terminating {terminating}, generation {observed_generation}, conditions {conditions}"
    )
}

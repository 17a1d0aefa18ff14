//! What happens to one ReplicaSet between two rests, and the judgement.

use std::{collections::VecDeque, sync::Arc};

use server_core::{Controller, Key, KnownSet, Status, Timestamp};

use crate::{
    acts::{Acts, Found},
    difference::{Departure, Difference, PENDING_MAX, RESTLESS_MAX, SETTLED, STATUS_MAX, Subject},
};

/// The condition by which a controller says that it tried in vain.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What a status that is waited with takes in memory, beside the words of its conditions.
const STATUS_BYTES: usize = 1_000;
/// What an episode takes, beside what is in it.
const EPISODE_BYTES: usize = 700;

#[derive(Clone, Debug)]
pub(super) struct Episode {
    begun: Timestamp,
    /// When something was made or removed last.
    pub(super) changed: Timestamp,
    /// When it is judged next.
    pub(super) due: Timestamp,
    pub(super) acts: Acts,
    /// How many comparisons were made that are not counted yet.
    pub(super) compared: u64,
    pending_reported: bool,
    /// The status that is due, the one that is there, since when both are so, and whether it was reported.
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
            begun: now,
            changed: now,
            due: now.plus(SETTLED),
            acts: Acts::default(),
            compared: 0,
            pending_reported: false,
            status: None,
            status_bytes: 0,
        }
    }

    /// Returns when an episode without any rest is over: what needs a rest to be judged is forgotten then.
    pub(super) const fn restless(&self) -> Timestamp {
        self.begun.plus(RESTLESS_MAX)
    }

    /// Returns about how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        EPISODE_BYTES + self.acts.bytes() + self.status_bytes
    }

    /// Waits with a status that is due, and the one that is there.
    fn wait_with(&mut self, due: Status, there: Status, since: Timestamp, reported: Reported) {
        self.status_bytes = STATUS_BYTES + words(&due) + words(&there);
        self.status = Some((due, there, since, reported));
    }

    /// Judges what is at rest. Returns when to look again; `None` ends the episode.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        key: &Key,
        differences: &mut VecDeque<Difference>,
    ) -> Option<Timestamp> {
        let set = &controller.replica_set(key)?;
        if set.object().deleting || set.object().selector.is_err() {
            return None;
        }
        let mut report = |(subject, (decided, done), departure): Found| {
            differences.push_back(Difference {
                key: key.clone(),
                subject,
                decided,
                done,
                departure,
            });
        };
        let settled = self.changed.plus(SETTLED);
        if now < settled {
            if now >= self.restless() {
                self.begun = now;
                let acts = std::mem::take(&mut self.acts);
                acts.judge_count(set).map(report);
            }
            return Some(settled.min(self.restless()));
        }
        self.begun = now;
        if let Some(pending) = pending(set) {
            let over = self.changed.plus(PENDING_MAX);
            if now < over {
                return Some(over);
            }
            if !self.pending_reported && !has_failed(set) {
                let (subject, decided) = pending;
                report((subject, (decided, "not done".to_owned()), None));
            }
            self.pending_reported = true;
            return Some(now.plus(PENDING_MAX));
        }
        self.pending_reported = false;
        let found = self.judge_pods(controller, set);
        found.into_iter().for_each(&mut report);
        let due = set.status_due(now);
        let (reported, next) = self.judge_status(now, due, set);
        if let Some((texts, departure)) = reported {
            report((Subject::Status, texts, departure));
        }
        next
    }

    /// Compares what became of the pods, and forgets it.
    fn judge_pods(&mut self, controller: &Controller, set: &KnownSet<'_>) -> Vec<Found> {
        let acts = std::mem::take(&mut self.acts);
        self.compared += acts.comparisons();
        let found = [
            acts.judge_count(set),
            acts.judge_victims(set),
            acts.judge_claims(controller, set),
        ];
        found.into_iter().flatten().collect()
    }

    /// Waits with a status that differs until it has stood for long enough.
    #[expect(
        clippy::type_complexity,
        reason = "both parts go their own way at once"
    )]
    fn judge_status(
        &mut self,
        now: Timestamp,
        due: Option<Status>,
        set: &KnownSet<'_>,
    ) -> (
        Option<((String, String), Option<Departure>)>,
        Option<Timestamp>,
    ) {
        let Some(due) = due else {
            self.compared += 1;
            return (None, None);
        };
        let there = &set.object().status;
        let known = self.status.take();
        self.status_bytes = 0;
        let known = known.filter(|(was_due, was_there, ..)| *was_due == due && was_there == there);
        let (since, reported) = known.map_or((now, Reported::No), |(_, _, since, reported)| {
            (since, reported)
        });
        let over = since.plus(STATUS_MAX);
        if now < over {
            self.wait_with(due, there.clone(), since, reported);
            return (None, Some(over));
        }
        let texts = (status_text(&due), status_text(there));
        self.wait_with(due.clone(), there.clone(), since, Reported::Yes);
        let only_conditions = Status {
            conditions: there.conditions.clone(),
            ..due
        } == *there;
        let departure = only_conditions.then_some(Departure::ReplicaFailure);
        let news = (reported == Reported::No).then_some((texts, departure));
        (news, Some(now.plus(PENDING_MAX)))
    }
}

/// Returns what is left for the other controller to do with the pods. Claims come first: what they change counts.
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

/// Returns whether the other controller says that it tried in vain.
fn has_failed(set: &KnownSet<'_>) -> bool {
    let mut conditions = set.object().status.conditions.iter();
    conditions.any(|condition| condition.kind == REPLICA_FAILURE && condition.status == "True")
}

/// Returns how many bytes the words of a status take.
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

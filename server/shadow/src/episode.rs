//! What happens to one ReplicaSet between two rests, and the judgement.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use server_core::{Controller, Key, KnownSet, Status, Timestamp, Uid};

use crate::difference::{Departure, Difference, PENDING_MAX, SETTLED, STATUS_MAX, Subject};

/// The condition by which a controller says that it tried in vain.
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// How many pods a difference names.
const NAMES_MAX: usize = 5;

#[derive(Clone, Debug)]
pub(super) struct Episode {
    /// When something was made or removed last.
    pub(super) changed: Timestamp,
    /// When it is judged next.
    pub(super) due: Timestamp,
    /// The most that were wanted, and the most that were active just after one was made.
    pub(super) wanted_most: i32,
    pub(super) active_most: i32,
    pub(super) made: u32,
    pub(super) claimed: u32,
    /// The pods that some view of the episode would have chosen, each with its name and the reason.
    pub(super) chosen: BTreeMap<Uid, (Arc<str>, String)>,
    pub(super) gone: BTreeSet<Uid>,
    /// Pods that went without having been chosen, each with whether upstream's order is open there.
    pub(super) strangers: Vec<(Arc<str>, bool)>,
    /// Pods that changed owner for no reason that could be seen then.
    pub(super) doubtful: Vec<(Arc<str>, Uid)>,
    /// How many comparisons were made that are not counted yet.
    pub(super) compared: u64,
    pending_reported: bool,
    /// The status that is due, the one that is there, since when both are so, and whether it was reported.
    status: Option<(Status, Status, Timestamp, Reported)>,
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
            wanted_most: 0,
            active_most: 0,
            made: 0,
            claimed: 0,
            chosen: BTreeMap::new(),
            gone: BTreeSet::new(),
            strangers: Vec::new(),
            doubtful: Vec::new(),
            compared: 0,
            pending_reported: false,
            status: None,
        }
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
        let settled = self.changed.plus(SETTLED);
        if now < settled {
            return Some(settled);
        }
        let mut report = |subject, (decided, done): (String, String), departure| {
            differences.push_back(Difference {
                key: key.clone(),
                subject,
                decided,
                done,
                departure,
            });
        };
        if let Some(pending) = pending(set) {
            let over = self.changed.plus(PENDING_MAX);
            if now < over {
                return Some(over);
            }
            if !self.pending_reported && !has_failed(set) {
                let (subject, decided) = pending;
                report(subject, (decided, "not done".to_owned()), None);
            }
            self.pending_reported = true;
            return Some(now.plus(PENDING_MAX));
        }
        self.pending_reported = false;
        for (subject, texts, departure) in self.judge_pods(controller, set) {
            report(subject, texts, departure);
        }
        let due = set.status_due(now);
        let (reported, next) = self.judge_status(now, due, set);
        if let Some((texts, departure)) = reported {
            report(Subject::Status, texts, departure);
        }
        next
    }

    /// Compares what became of the pods, and forgets it.
    fn judge_pods(
        &mut self,
        controller: &Controller,
        set: &KnownSet<'_>,
    ) -> Vec<(Subject, (String, String), Option<Departure>)> {
        let acts = [
            self.made > 0,
            !self.chosen.is_empty() && !self.gone.is_empty(),
            self.claimed > 0,
        ];
        self.compared += acts.into_iter().map(u64::from).sum::<u64>();
        let excess = self.active_most - self.wanted_most.max(set.wanted());
        let count = (self.made > 0 && excess > 0).then(|| {
            let decided = format!(
                "at most {} pods at a time",
                self.wanted_most.max(set.wanted())
            );
            (
                Subject::Count,
                (decided, format!("{} pods", self.active_most)),
                None,
            )
        });
        let found = [
            count,
            self.judge_victims(set),
            self.judge_claims(controller, set),
        ];
        let Self {
            status,
            compared,
            changed,
            due,
            ..
        } = std::mem::replace(self, Self::new(self.changed));
        (self.status, self.compared, self.changed, self.due) = (status, compared, changed, due);
        found.into_iter().flatten().collect()
    }

    fn judge_victims(
        &self,
        set: &KnownSet<'_>,
    ) -> Option<(Subject, (String, String), Option<Departure>)> {
        if self.strangers.is_empty() {
            return None;
        }
        let survivors = self
            .chosen
            .iter()
            .filter(|(uid, (name, _))| !self.gone.contains(uid) && set.has_replica(name, uid));
        let survivors: Vec<&str> = survivors.map(|(_, (_, why))| why.as_str()).collect();
        if survivors.is_empty() {
            return None;
        }
        let open = self.strangers.iter().all(|(_, open)| *open);
        let strangers: Vec<&str> = self.strangers.iter().map(|(name, _)| &**name).collect();
        let texts = (
            format!("delete {}", names(&survivors)),
            format!("deleted {}", names(&strangers)),
        );
        Some((
            Subject::Victims,
            texts,
            open.then_some(Departure::OrderOfDeletion),
        ))
    }

    /// Looks again at changes of owner that nothing had called for: what is so still is a difference.
    fn judge_claims(
        &self,
        controller: &Controller,
        set: &KnownSet<'_>,
    ) -> Option<(Subject, (String, String), Option<Departure>)> {
        let key = &set.object().key;
        let selector = set.object().selector.as_ref().ok()?;
        let wrong = self.doubtful.iter().filter_map(|(name, uid)| {
            let pod = controller.pod(&key.namespace, name);
            let pod = pod.filter(|pod| pod.uid == *uid)?;
            let owner = pod.controller.as_ref();
            let owned = owner.is_some_and(|owner| owner.uid == key.uid);
            let is_so = owned != selector.matches(&pod.labels);
            is_so.then_some(&**name)
        });
        let wrong: Vec<&str> = wrong.collect();
        (!wrong.is_empty()).then(|| {
            let done = format!("changed the owner of {}", names(&wrong));
            (
                Subject::Adoption,
                ("leave the owner as it is".to_owned(), done),
                None,
            )
        })
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
        let known = known.filter(|(was_due, was_there, ..)| *was_due == due && was_there == there);
        let (since, reported) = known.map_or((now, Reported::No), |(_, _, since, reported)| {
            (since, reported)
        });
        let over = since.plus(STATUS_MAX);
        if now < over {
            self.status = Some((due, there.clone(), since, reported));
            return (None, Some(over));
        }
        let texts = (status_text(&due), status_text(there));
        self.status = Some((due.clone(), there.clone(), since, Reported::Yes));
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

fn names(all: &[&str]) -> String {
    let shown = all[..all.len().min(NAMES_MAX)].join(", ");
    match all.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
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

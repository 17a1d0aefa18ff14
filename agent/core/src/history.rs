//! The history of the cluster: which versions it has shown, and whether it has gone back behind them.
//!
//! A version is a revision of the store of the API server, which only grows. It falls where the store is put back to a backup, or where
//! another cluster answers at the address. Then nothing holds that the agent knows: objects that it has seen never were, a watch from the
//! newest version stays silent until the store is there again, and the answer to a write looks older than what has been seen.
//!
//! Lists and answers tell, and in a quiet cluster the agent asks now and then. Each answer is held against what was known when its request
//! left: what comes meanwhile may be newer. Versions of different kinds are not compared, as each kind may have a store of its own.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    api::{ApiError, CallId, Kind, parse_version},
    backoff::{Backoff, after},
};

/// How many lists in a row may be older than a write that was answered before the list was asked for. An API server that answers from a cache
/// is behind for a moment, and a store that has been put back is for long.
const OLDER_LISTS_MAX: u32 = 5;
/// How many creates without an answer are remembered. A read follows each, unless its session ends before.
const UNANSWERED_MAX: usize = 1_024;

/// What it means that versions go back, for people.
pub const MEANING: &str =
    "the cluster was restored from a backup, or another cluster answers at its address";

/// The number of a question for the newest version; answers to an older number are stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u64);

/// The versions of a kind went back: the cluster was restored from a backup, or another cluster answers at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WentBack {
    /// The kind.
    pub kind: Kind,
    /// The version that the cluster had reached.
    pub from: u64,
    /// The version that it has now, which is lower, or was given to a write and is no higher.
    pub to: u64,
}

/// What is known of the history of both kinds. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub(crate) struct History {
    kinds: [Versions; 2],
    /// The calls in flight whose answers are held against what was known when they left.
    writes: HashMap<CallId, Write>,
    /// The creates without an answer, by the namespace and name of the pod: a read tells which version it was given, if any.
    unanswered: BTreeMap<PodName, Write>,
    asked_last: u64,
    /// How often the versions went back.
    number: u32,
}

/// A write in flight, or a read that tells what became of it.
#[derive(Clone, Debug)]
struct Write {
    written: Written,
    /// The version that was known when it left.
    reached: u64,
    /// The number of the history in which it left.
    history: u32,
}

/// What a write changes.
#[derive(Clone, Debug)]
enum Written {
    /// The namespace and name of a new pod, which is given a version of its own.
    Pod(PodName),
    /// The status of a ReplicaSet. A write that changes nothing is given the version that was seen.
    Status,
}

/// A namespace and a name.
pub(crate) type PodName = (String, String);

#[derive(Clone, Debug)]
struct Versions {
    /// The newest that lists and watches have shown.
    shown: Option<u64>,
    /// The same when the list that is under way was asked for.
    shown_before: Option<u64>,
    /// The newest write that was answered by then.
    written_before: Option<u64>,
    /// How many lists in a row were older than that write.
    older_lists: u32,
    question: Question,
    /// How long after an answer the next question is; `None` where none is asked.
    every: Option<Backoff>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// None is asked before the kind is watched.
    Idle,
    Due(Timestamp),
    Asked {
        id: VersionId,
        /// What the cluster had reached by then.
        reached: Option<u64>,
    },
}

// === impl WentBack ===

impl fmt::Display for WentBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, from, to } = self;
        write!(
            formatter,
            "the resource versions of {} went back from {from} to {to}: {MEANING}",
            kind.plural()
        )
    }
}

// === impl History ===

impl History {
    /// Returns a history of which nothing is known. The newest versions are asked for at this interval at most, and after half of it at least;
    /// never without one. The seed decides which.
    pub(crate) fn new(ask_every: Option<Duration>, seed: u64) -> Self {
        Self {
            kinds: Kind::ALL.map(|kind| Versions::new(kind, ask_every, seed)),
            writes: HashMap::new(),
            unanswered: BTreeMap::new(),
            asked_last: 0,
            number: 0,
        }
    }

    /// Forgets all versions: another history begins. Returns the pods whose creates have no answer and may have taken effect in it, each with the
    /// version that the cluster had reached.
    pub(crate) fn forget(&mut self) -> Vec<(PodName, u64)> {
        self.number += 1;
        self.kinds.iter_mut().for_each(Versions::forget);
        let unanswered = std::mem::take(&mut self.unanswered).into_iter();
        unanswered
            .map(|(pod, write)| (pod, write.reached))
            .collect()
    }

    /// Notes the version up to which a list or watch has shown a kind.
    pub(crate) fn note_shown(&mut self, kind: Kind, version: Option<u64>) {
        let shown = &mut self.of(kind).shown;
        *shown = (*shown).max(version);
    }

    /// Notes that a list is asked for, after the write of this version was answered.
    pub(crate) const fn begin_list(&mut self, kind: Kind, written: Option<u64>) {
        let versions = self.of(kind);
        versions.shown_before = versions.shown;
        versions.written_before = written;
    }

    /// Takes the version of that list.
    ///
    /// # Errors
    /// If it is older than what had been shown, or again and again older than what had been written.
    pub(crate) fn check_list(&mut self, kind: Kind, version: &str) -> Result<(), WentBack> {
        let Some(version) = parse_version(version) else {
            return Ok(());
        };
        let versions = self.of(kind);
        check(kind, versions.shown_before, version)?;
        match check(kind, versions.written_before, version) {
            Ok(()) => versions.older_lists = 0,
            Err(went_back) => {
                versions.older_lists += 1;
                // The next page of a list that is not used is not looked at.
                if versions.older_lists >= OLDER_LISTS_MAX {
                    return Err(went_back);
                }
            }
        }
        Ok(())
    }

    /// Notes that the create of a pod leaves, after the write of this version was answered.
    pub(crate) fn begin_create(
        &mut self,
        id: CallId,
        (namespace, name): (&str, &str),
        written: Option<u64>,
    ) {
        let pod = Written::Pod((namespace.to_owned(), name.to_owned()));
        let reached = self.of(Kind::Pod).shown.max(written);
        self.begin_write(id, pod, reached);
    }

    /// Notes that a write of a status leaves, of a ReplicaSet that was seen with this version.
    pub(crate) fn begin_status(&mut self, id: CallId, seen: Option<u64>) {
        self.begin_write(id, Written::Status, seen);
    }

    fn begin_write(&mut self, id: CallId, written: Written, reached: Option<u64>) {
        let Some(reached) = reached else { return };
        let history = self.number;
        let write = Write {
            written,
            reached,
            history,
        };
        self.writes.insert(id, write);
    }

    /// Notes that a read of a pod leaves, which may be one whose create has no answer.
    pub(crate) fn begin_read(&mut self, id: CallId, (namespace, name): (&str, &str)) {
        let pod = (namespace.to_owned(), name.to_owned());
        if let Some(write) = self.unanswered.remove(&pod) {
            self.writes.insert(id, write);
        }
    }

    /// Notes that a call has no answer, or one that leaves open whether its write took effect. Returns the pod of a create that left before the
    /// versions went back, with the version that the cluster had reached.
    pub(crate) fn leave_open(&mut self, id: CallId) -> Option<(PodName, u64)> {
        let write = self.writes.remove(&id)?;
        let Written::Pod(pod) = &write.written else {
            return None;
        };
        let pod = pod.clone();
        if write.history != self.number {
            return Some((pod, write.reached));
        }
        if self.unanswered.len() >= UNANSWERED_MAX {
            // They are of sessions that ended before the read.
            self.unanswered.clear();
        }
        self.unanswered.insert(pod, write);
        None
    }

    /// Takes the version that a write was given; nothing where it was given none. Returns what went back if it is lower than it can be, and
    /// whether that is news: other writes may have told already.
    pub(crate) fn check_write(
        &mut self,
        id: CallId,
        version: Option<&str>,
    ) -> Option<(WentBack, bool)> {
        let Write {
            written,
            reached: from,
            history,
        } = self.writes.remove(&id)?;
        let to = version.and_then(parse_version)?;
        let (kind, went_back) = match written {
            Written::Pod(pod) => {
                // A create that went unanswered before was repeated, or its pod was read.
                self.unanswered.remove(&pod);
                (Kind::Pod, to <= from)
            }
            Written::Status => (Kind::ReplicaSet, to < from),
        };
        went_back.then_some((WentBack { kind, from, to }, history == self.number))
    }

    /// Notes that a kind is watched from now on, or is not.
    pub(crate) fn set_watched(&mut self, now: Timestamp, kind: Kind, is_watched: bool) {
        let versions = self.of(kind);
        match versions.question {
            Question::Idle if is_watched => versions.wait(now),
            Question::Due(_) | Question::Asked { .. } if !is_watched => {
                versions.question = Question::Idle;
            }
            Question::Idle | Question::Due(_) | Question::Asked { .. } => {}
        }
    }

    /// Lets the versions of all kinds that are watched be asked for at once: something else went back.
    pub(crate) fn ask_now(&mut self, now: Timestamp) {
        for versions in &mut self.kinds {
            if let Question::Due(due) = &mut versions.question {
                *due = (*due).min(now);
            }
        }
    }

    /// Returns the question for the newest version of a kind if it is due. `written` is the newest write that was answered.
    pub(crate) fn poll_question(
        &mut self,
        now: Timestamp,
        kind: Kind,
        written: Option<u64>,
    ) -> Option<VersionId> {
        let id = VersionId(self.asked_last + 1);
        let versions = self.of(kind);
        if !matches!(versions.question, Question::Due(due) if due <= now) {
            return None;
        }
        let reached = versions.shown.max(written);
        versions.question = Question::Asked { id, reached };
        self.asked_last = id.0;
        Some(id)
    }

    /// Takes the answer. One that failed says nothing.
    ///
    /// # Errors
    /// If it is older than what was known before.
    pub(crate) fn check_version(
        &mut self,
        now: Timestamp,
        kind: Kind,
        id: VersionId,
        answer: &Result<String, ApiError>,
    ) -> Result<(), WentBack> {
        let versions = self.of(kind);
        let Question::Asked { id: asked, reached } = versions.question else {
            return Ok(());
        };
        if asked != id {
            return Ok(());
        }
        versions.wait(now);
        match answer.as_ref().ok().and_then(|text| parse_version(text)) {
            Some(version) => check(kind, reached, version),
            None => Ok(()),
        }
    }

    /// Returns when [`poll_question`](Self::poll_question) is due.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let questions = self.kinds.iter().map(|versions| versions.question);
        let dues = questions.filter_map(|question| match question {
            Question::Due(due) => Some(due),
            Question::Idle | Question::Asked { .. } => None,
        });
        dues.min()
    }

    const fn of(&mut self, kind: Kind) -> &mut Versions {
        &mut self.kinds[kind as usize]
    }
}

// === impl Versions ===

impl Versions {
    fn new(kind: Kind, ask_every: Option<Duration>, seed: u64) -> Self {
        let seed = seed.wrapping_mul(2).wrapping_add(kind as u64);
        Self {
            shown: None,
            shown_before: None,
            written_before: None,
            older_lists: 0,
            question: Question::Idle,
            every: ask_every.map(|every| Backoff::new(every, every, seed)),
        }
    }

    fn forget(&mut self) {
        (self.shown, self.shown_before, self.written_before) = (None, None, None);
        self.older_lists = 0;
        self.question = Question::Idle;
    }

    fn wait(&mut self, now: Timestamp) {
        let wait = self.every.as_mut().map(Backoff::longest_wait);
        self.question = match wait {
            Some(wait) => Question::Due(after(now, wait)),
            None => Question::Idle,
        };
    }
}

fn check(kind: Kind, reached: Option<u64>, version: u64) -> Result<(), WentBack> {
    match reached {
        Some(from) if version < from => Err(WentBack {
            kind,
            from,
            to: version,
        }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! The history of the cluster: the versions that it has shown, and whether they went back.
//!
//! A version is a revision of the store of the API server, which only grows. It falls if the store is restored from a backup, or if another
//! cluster answers at the address. Then the agent's knowledge is void. The objects that it has seen never existed, and the answer to a
//! write looks older than the objects. A watch from the newest version stays silent until the store reaches that version.
//!
//! Lists and answers show a fall, and in a quiet cluster the agent requests the version now and then. Each answer is compared with the
//! version known when its request left, as newer versions may come meanwhile. Versions of different kinds are not compared, as each kind
//! may have its own store.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use decree::v1;
use jiff::Timestamp;

use crate::{
    api::{ApiError, CallId, Kind, parse_version},
    backoff::{Backoff, after},
};

/// How many lists in a row may be older than a write that was answered before the list began. An API server with a cache is behind for a
/// moment, and a restored store for long.
const OLDER_LISTS_MAX: u32 = 5;
/// How many unanswered creates are remembered. A read follows each, unless its session ends before.
const UNANSWERED_MAX: usize = 1_024;

/// The meaning of versions that go back, for people.
pub const MEANING: &str =
    "the cluster was restored from a backup, or another cluster answers at its address";

/// The number of a request for the newest version. Answers to an older number are stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u64);

/// The versions of a kind went back: the cluster was restored from a backup, or another cluster answers at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WentBack {
    /// The kind.
    pub kind: Kind,
    /// The version that the cluster had reached.
    pub from: u64,
    /// The present version of the cluster. It is lower than `from`; a version given to a write may also be equal.
    pub to: u64,
}

/// The known history of both kinds. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub(crate) struct History {
    kinds: [Versions; 2],
    /// The calls in flight, with what was known when each left.
    writes: HashMap<CallId, Write>,
    /// The unanswered creates, by pod. A read tells which version the pod was given, if any.
    unanswered: BTreeMap<PodName, Write>,
    asked_last: u64,
    /// How often the versions went back.
    number: u32,
}

/// A write in flight, or a read that tells the effect of one.
#[derive(Clone, Debug)]
struct Write {
    written: Written,
    /// The known version when the write left.
    reached: u64,
    /// The number of the history in which the write left.
    history: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// A new pod, which is given a new version.
    Pod(PodName),
    /// The status of a ReplicaSet. A write that changes nothing is given the version that was seen.
    Status,
}

/// A namespace and a name.
pub(crate) type PodName = (String, String);

#[derive(Clone, Debug, Default)]
struct Versions {
    /// The newest version that lists and watches have shown.
    shown: Option<u64>,
    /// The value of `shown` when the current list began.
    shown_before: Option<u64>,
    /// The newest write that was answered before the current list began.
    written_before: Option<u64>,
    /// How many lists in a row were older than `written_before`.
    older_lists: u32,
    question: Question,
    /// The wait from an answer to the next request; `None` without requests.
    every: Option<Backoff>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    /// There is no request before the kind is watched.
    #[default]
    Idle,
    Due(Timestamp),
    Asked {
        id: VersionId,
        /// The version that the cluster had reached when the request left.
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
    /// Creates a history without versions. Requests for the newest versions follow each other after at most `ask_every`, and at least half
    /// of it. The seed determines the wait; `None` disables the requests.
    pub(crate) fn new(ask_every: Option<Duration>, seed: u64) -> Self {
        Self {
            kinds: Kind::ALL.map(|kind| Versions::new(kind, ask_every, seed)),
            writes: HashMap::new(),
            unanswered: BTreeMap::new(),
            asked_last: 0,
            number: 0,
        }
    }

    /// Forgets all versions when another history begins. Returns the pods of unanswered creates that may have taken effect in it, each with
    /// the version that the cluster had reached.
    pub(crate) fn forget(&mut self) -> Vec<(v1::ObjectRef, u64)> {
        self.number += 1;
        self.kinds.iter_mut().for_each(Versions::forget);
        let unanswered = std::mem::take(&mut self.unanswered).into_iter();
        unanswered
            .map(|(pod, write)| (reference(pod), write.reached))
            .collect()
    }

    pub(crate) fn note_shown(&mut self, kind: Kind, version: Option<u64>) {
        let shown = &mut self.of(kind).shown;
        *shown = (*shown).max(version);
    }

    /// Notes that a list begins; `written` is the newest answered write.
    pub(crate) const fn begin_list(&mut self, kind: Kind, written: Option<u64>) {
        let versions = self.of(kind);
        versions.shown_before = versions.shown;
        versions.written_before = written;
    }

    /// Checks the version of that list.
    ///
    /// # Errors
    /// If it is older than the version already shown, or repeatedly older than the newest write.
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
                // The further pages of an unused list are ignored.
                if versions.older_lists >= OLDER_LISTS_MAX {
                    return Err(went_back);
                }
            }
        }
        Ok(())
    }

    /// Notes that a write leaves. `known` is the newest answered write, or for a status the version at which its ReplicaSet was seen.
    pub(crate) fn begin_write(&mut self, id: CallId, written: Written, known: Option<u64>) {
        let reached = match written {
            Written::Pod(_) => self.of(Kind::Pod).shown.max(known),
            Written::Status => known,
        };
        let history = self.number;
        let write = reached.map(|reached| Write {
            written,
            reached,
            history,
        });
        self.writes.extend(write.map(|write| (id, write)));
    }

    /// Notes that a read of a pod leaves. The create of the pod may be unanswered.
    pub(crate) fn begin_read(&mut self, id: CallId, pod: &PodName) {
        if let Some(write) = self.unanswered.remove(pod) {
            self.writes.insert(id, write);
        }
    }

    /// Notes that a call is unanswered, or that its answer leaves the effect open. Returns the pod of a create that left before the
    /// versions went back, with the version that the cluster had reached.
    pub(crate) fn leave_open(&mut self, id: CallId) -> Option<(v1::ObjectRef, u64)> {
        let write = self.writes.remove(&id)?;
        let Written::Pod(pod) = &write.written else {
            return None;
        };
        let pod = pod.clone();
        if write.history != self.number {
            return Some((reference(pod), write.reached));
        }
        if self.unanswered.len() >= UNANSWERED_MAX {
            // The entries are of sessions that ended before their reads.
            self.unanswered.clear();
        }
        self.unanswered.insert(pod, write);
        None
    }

    /// Takes the version that a write was given, if any. Returns the fall if the version is too low, and whether the fall is news: other
    /// writes may have shown it already.
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
                // An unanswered create was repeated, or its pod was read.
                self.unanswered.remove(&pod);
                (Kind::Pod, to <= from)
            }
            Written::Status => (Kind::ReplicaSet, to < from),
        };
        went_back.then_some((WentBack { kind, from, to }, history == self.number))
    }

    pub(crate) fn set_watched(&mut self, now: Timestamp, kind: Kind, is_watched: bool) {
        let versions = self.of(kind);
        if !is_watched {
            versions.question = Question::Idle;
        } else if versions.question == Question::Idle {
            versions.wait(now);
        }
    }

    /// Requests the versions of all watched kinds at once, as something else went back.
    pub(crate) fn ask_now(&mut self, now: Timestamp) {
        for versions in &mut self.kinds {
            if let Question::Due(due) = &mut versions.question {
                *due = (*due).min(now);
            }
        }
    }

    /// The request for the newest version of a kind, if due. `written` is the newest answered write.
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

    /// Checks the answer. A failed request tells nothing.
    ///
    /// # Errors
    /// If the version is older than what was known before.
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
        let version = answer.as_ref().ok().and_then(|text| parse_version(text));
        version.map_or(Ok(()), |version| check(kind, reached, version))
    }

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
            every: ask_every.map(|every| Backoff::new(every, every, seed)),
            ..Self::default()
        }
    }

    fn forget(&mut self) {
        *self = Self {
            every: self.every.take(),
            ..Self::default()
        };
    }

    fn wait(&mut self, now: Timestamp) {
        let wait = self.every.as_mut().map(Backoff::longest_wait);
        self.question = wait.map_or(Question::Idle, |wait| Question::Due(after(now, wait)));
    }
}

fn reference((namespace, name): PodName) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace,
        name,
        uid: String::new(),
    }
}

fn check(kind: Kind, reached: Option<u64>, to: u64) -> Result<(), WentBack> {
    match reached {
        Some(from) if to < from => Err(WentBack { kind, from, to }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

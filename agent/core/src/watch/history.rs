//! Whether the cluster went back: to a backup of its store, or to another cluster at its address.
//!
//! A version is a revision of the store of the API server, which only grows. There is one check: the answer to a request must not be below
//! the version that was known when the request left. Lists and creates are checked, and in a quiet cluster the agent requests the newest
//! version now and then. Versions of different kinds are not compared, as each kind may have its own store.
//!
//! And there is one way back: the session ends, the agent forgets the cluster, and the next session begins with new lists, as that of a new
//! agent. Only the names of pods that were created, or maybe created, meanwhile stay. An API server that keeps running while its store is
//! restored lists the lost history from its cache, and an agent that believed such a list would create these pods again in every session. So
//! a list at a lost version must show them. The agent reads unlisted pods live, and forgets deleted ones.

use std::{collections::BTreeMap, fmt, time::Duration};

use decree::v1::{self, FailureClass};
use jiff::Timestamp;

use super::{Items, List};
use crate::{
    api::{
        Answer, Call, CallId, Kind, Reply, Request, classify, leaves_effect_open, parse_version,
    },
    pace::{Backoff, after},
};

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
    /// The present version of the cluster. It is lower than `from`; the version of a created pod may also be equal.
    pub to: u64,
}

/// What is known of the history of the cluster. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What was known when each request left. Unanswered creates stay.
    known: BTreeMap<Asked, Known>,
    /// When the newest version of each kind is due to be requested.
    due: [Option<Timestamp>; 2],
    /// The wait between these requests; `None` without requests.
    every: Option<Backoff>,
    asked_last: u64,
    /// The pods of creates under way when the cluster went back, which no list has shown since.
    doubts: BTreeMap<PodName, Doubt>,
    /// The newest version before.
    lost: u64,
    reading: Option<(CallId, PodName)>,
}

/// A request whose answer is checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    List(Kind),
    Newest(Kind, VersionId),
    /// A new pod, which is given a new version.
    Create(PodName),
}

#[derive(Clone, Copy, Debug)]
struct Known {
    version: u64,
    /// Whether a create had no answer and may have taken effect.
    is_open: bool,
}

/// A namespace and a name.
type PodName = (String, String);

#[derive(Clone, Debug, Default)]
struct Doubt {
    /// Empty until an answer shows that the pod exists.
    uid: String,
    is_listed: bool,
    /// Whether a list has ended without the pod, and it is to be read.
    is_due: bool,
}

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

impl History {
    /// Creates a history without versions. Requests for the newest versions follow each other after at most `ask_every`, and at least half
    /// of it. The seed determines the wait; `None` disables the requests.
    pub(crate) fn new(ask_every: Option<Duration>, seed: u64) -> Self {
        Self {
            known: BTreeMap::new(),
            due: [None; 2],
            every: ask_every.map(|every| Backoff::new(every, every, seed)),
            asked_last: 0,
            doubts: BTreeMap::new(),
            lost: 0,
            reading: None,
        }
    }

    /// Requests the newest versions from now on.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        for due in &mut self.due {
            let wait = self.every.as_mut().map(Backoff::longest_wait);
            *due = wait.map(|wait| after(now, wait));
        }
    }

    /// Requests no more versions.
    pub(crate) const fn stop(&mut self) {
        self.due = [None; 2];
    }

    /// Notes what is known when a request leaves. Of a create that is repeated, the first one counts.
    pub(crate) fn ask(&mut self, asked: Asked, known: Option<u64>) {
        let Some(version) = known else {
            return;
        };
        let known = Known {
            version,
            is_open: false,
        };
        if !matches!(asked, Asked::Create(_)) {
            self.known.insert(asked, known);
            return;
        }
        if self.known.len() >= UNANSWERED_MAX {
            // The entries are of sessions that ended before their reads.
            self.known.retain(|it, _| !matches!(it, Asked::Create(_)));
        }
        self.known.entry(asked).or_insert(known);
    }

    /// Checks the version of an answer.
    ///
    /// # Errors
    /// If it is below what was known when the request left. A created pod must be above.
    pub(crate) fn check(&self, asked: &Asked, version: &str) -> Result<(), WentBack> {
        let (kind, is_new) = match asked {
            Asked::List(kind) | Asked::Newest(kind, _) => (*kind, false),
            Asked::Create(_) => (Kind::Pod, true),
        };
        let (Some(from), Some(to)) = (self.known.get(asked), parse_version(version)) else {
            return Ok(());
        };
        let from = from.version;
        let least = from.saturating_add(is_new.into());
        let went_back = WentBack { kind, from, to };
        if to < least { Err(went_back) } else { Ok(()) }
    }

    /// Checks the answer to the create of a pod, or to a read after a failed create.
    ///
    /// # Errors
    /// As [`check`](Self::check), of the pod that the call created or found.
    pub(crate) fn check_create(
        &mut self,
        pod: &v1::ObjectRef,
        answer: &Answer,
    ) -> Result<(), WentBack> {
        let name = (pod.namespace.clone(), pod.name.clone());
        let asked = Asked::Create(name.clone());
        match answer {
            Ok(Reply::Pod(live)) => {
                let checked = self.check(&asked, &live.resource_version);
                self.known.remove(&asked);
                if let Err(WentBack { from, .. }) = checked {
                    self.doubt(name.clone(), from);
                }
                if let Some(doubt) = self.doubts.get_mut(&name) {
                    doubt.uid.clone_from(&live.uid);
                }
                checked
            }
            Err(error) => {
                // Before a read, the create is open, or not known any more.
                if let Some(known) = self.known.get_mut(&asked) {
                    known.is_open |= leaves_effect_open(error);
                    // A refused create has no pod, unless one before has. A pod with a taken name is older.
                    if !known.is_open {
                        self.known.remove(&asked);
                    }
                }
                Ok(())
            }
            Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => Ok(()),
        }
    }

    /// Forgets all versions. Creates without an answer may have taken effect after the cluster went back.
    pub(crate) fn forget(&mut self) {
        for (asked, known) in std::mem::take(&mut self.known) {
            if let Asked::Create(pod) = asked {
                self.doubt(pod, known.version);
            }
        }
    }

    /// Takes the next page of a list. False for the last page of a list of pods that lacks pods in doubt.
    pub(crate) fn allow(&mut self, page: &List) -> bool {
        let Items::Pods(pods) = &page.items else {
            return true;
        };
        if self.doubts.is_empty() {
            return true;
        }
        if parse_version(&page.resource_version).is_none_or(|version| version < self.lost) {
            self.doubts.clear();
            return true;
        }
        if page.part.begins() {
            let doubts = self.doubts.values_mut();
            doubts.for_each(|doubt| doubt.is_listed = false);
        }
        for pod in pods.iter() {
            if let Some(doubt) = self.doubts.get_mut(&(pod.namespace, pod.name)) {
                doubt.is_listed |= doubt.uid.is_empty() || doubt.uid == pod.uid;
            }
        }
        if !page.part.ends() {
            return true;
        }
        self.doubts.retain(|_, doubt| !doubt.is_listed);
        let doubts = self.doubts.values_mut();
        doubts.for_each(|doubt| doubt.is_due = true);
        self.doubts.is_empty()
    }

    /// The number of pods in doubt.
    pub(crate) fn doubts(&self) -> usize {
        self.doubts.len()
    }

    /// The next read of a pod in doubt; `next_id` numbers it.
    pub(crate) fn poll_read(&mut self, next_id: impl FnOnce() -> CallId) -> Option<Call> {
        if self.reading.is_some() {
            return None;
        }
        let mut doubts = self.doubts.iter_mut();
        let (pod, doubt) = doubts.find(|(_, doubt)| doubt.is_due)?;
        doubt.is_due = false;
        let id = next_id();
        self.reading = Some((id, pod.clone()));
        let (namespace, name) = pod.clone();
        let request = Request::ReadPod { namespace, name };
        Some(Call { id, request })
    }

    /// Takes the answer to a call, if the call is such a read.
    pub(crate) fn handle_read(&mut self, id: CallId, answer: &Answer) {
        let Some((_, pod)) = self.reading.take_if(|(reading, _)| *reading == id) else {
            return;
        };
        let Some(doubt) = self.doubts.get_mut(&pod) else {
            return;
        };
        let is_gone = match answer {
            Ok(Reply::Pod(live)) => {
                let is_another = !doubt.uid.is_empty() && doubt.uid != live.uid;
                doubt.uid.clone_from(&live.uid);
                is_another
            }
            Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => false,
            Err(error) => classify(error) == FailureClass::NotFound,
        };
        if is_gone {
            self.doubts.remove(&pod);
        }
    }

    /// The request for the newest version of a kind, if due.
    pub(crate) fn poll_question(
        &mut self,
        now: Timestamp,
        kind: Kind,
        known: Option<u64>,
    ) -> Option<VersionId> {
        let due = &mut self.due[kind as usize];
        due.filter(|due| *due <= now)?;
        let wait = self.every.as_mut().map(Backoff::longest_wait);
        *due = wait.map(|wait| after(now, wait));
        self.asked_last += 1;
        let id = VersionId(self.asked_last);
        let is_stale = |it: &Asked| matches!(it, Asked::Newest(of, _) if *of == kind);
        self.known.retain(|it, _| !is_stale(it));
        self.ask(Asked::Newest(kind, id), known);
        Some(id)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.due.into_iter().flatten().min()
    }

    fn doubt(&mut self, pod: PodName, lost: u64) {
        self.lost = self.lost.max(lost);
        self.doubts.entry(pod).or_default();
    }
}

#[cfg(test)]
mod tests;

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

use decree_api::v1::{self, FailureClass};
use jiff::Timestamp;

use super::{Items, List};
use crate::{
    api::{
        Answer, Call, CallId, Kind, Reply, Request, classify, leaves_effect_open, parse_version,
    },
    pace::{Backoff, after},
};

/// The longest interval of requests for the newest version of each kind, which notice that a quiet cluster went back.
const ASK_EVERY: Duration = Duration::from_secs(30);
/// How many unanswered creates are remembered. A read follows each, unless its session ends before.
const UNANSWERED_MAX: usize = 1_024;

/// The meaning of versions that go back, for people.
pub const MEANING: &str =
    "the cluster was restored from a backup, or another cluster answers at its address";

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
    /// The version of each kind that was known when its list left.
    lists: [Option<u64>; 2],
    /// The request for the newest version of each kind.
    questions: [Question; 2],
    /// The wait between these requests.
    every: Backoff,
    /// The creates without an answer.
    creates: BTreeMap<PodName, Create>,
    /// The pods of creates under way when the cluster went back, which no list has shown since.
    doubts: BTreeMap<PodName, Doubt>,
    /// The newest version before.
    lost: u64,
    reading: Option<(CallId, PodName)>,
}

/// A request for the newest version of a kind. It is not repeated before its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Question {
    due: Option<Timestamp>,
    is_open: bool,
    /// The version that was known when it left.
    known: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Create {
    /// The version that was known when the first attempt left.
    known: u64,
    /// Whether an attempt had no answer and may have taken effect.
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
    /// Creates a history without versions. The seed determines the waits between requests for the newest versions.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            lists: [None; 2],
            questions: [Question::default(); 2],
            every: Backoff::new(ASK_EVERY, ASK_EVERY, seed),
            creates: BTreeMap::new(),
            doubts: BTreeMap::new(),
            lost: 0,
            reading: None,
        }
    }

    /// Requests the newest versions from now on.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        for question in &mut self.questions {
            question.due = Some(after(now, self.every.longest_wait()));
        }
    }

    /// Requests no more versions.
    pub(crate) fn stop(&mut self) {
        self.questions.iter_mut().for_each(|it| it.due = None);
    }

    /// Notes what is known when a list leaves.
    pub(crate) const fn note_list(&mut self, kind: Kind, known: Option<u64>) {
        self.lists[kind as usize] = known;
    }

    /// Notes what is known when a create leaves. If it is repeated, the first one counts.
    pub(crate) fn note_create(&mut self, pod: PodName, known: Option<u64>) {
        let Some(known) = known else {
            return;
        };
        if self.creates.len() >= UNANSWERED_MAX {
            // The entries are of sessions that ended before their reads.
            self.creates.clear();
        }
        let is_open = false;
        self.creates.entry(pod).or_insert(Create { known, is_open });
    }

    /// Checks the version of a list.
    ///
    /// # Errors
    /// If it is below what was known when the request left.
    pub(crate) fn check_list(&self, kind: Kind, version: &str) -> Result<(), WentBack> {
        check(kind, self.lists[kind as usize], version)
    }

    /// Takes the answer to the request for the newest version. A failed request tells nothing.
    ///
    /// # Errors
    /// As [`check_list`](Self::check_list).
    pub(crate) fn handle_newest(&mut self, kind: Kind, version: &str) -> Result<(), WentBack> {
        let question = &mut self.questions[kind as usize];
        question.is_open = false;
        check(kind, question.known, version)
    }

    /// Checks the answer to the create of a pod, or to a read after a failed create.
    ///
    /// # Errors
    /// If the pod that the call created or found has no version above what was known when the create left.
    pub(crate) fn check_create(
        &mut self,
        pod: &v1::ObjectRef,
        answer: &Answer,
    ) -> Result<(), WentBack> {
        let name = (pod.namespace.clone(), pod.name.clone());
        match answer {
            Ok(Reply::Pod(live)) => {
                let mut checked = Ok(());
                if let Some(Create { known: from, .. }) = self.creates.remove(&name)
                    && let Some(to) = parse_version(&live.resource_version)
                    && to <= from
                {
                    self.doubt(name.clone(), from);
                    let kind = Kind::Pod;
                    checked = Err(WentBack { kind, from, to });
                }
                if let Some(doubt) = self.doubts.get_mut(&name) {
                    doubt.uid.clone_from(&live.uid);
                }
                checked
            }
            Err(error) => {
                // Before a read, the create is open, or not known any more.
                if let Some(create) = self.creates.get_mut(&name) {
                    create.is_open |= leaves_effect_open(error);
                    // A refused create has no pod, unless one before has. A pod with a taken name is older.
                    if !create.is_open {
                        self.creates.remove(&name);
                    }
                }
                Ok(())
            }
            Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => Ok(()),
        }
    }

    /// Forgets all versions. Creates without an answer may have taken effect after the cluster went back.
    pub(crate) fn forget(&mut self) {
        self.lists = [None; 2];
        self.questions.iter_mut().for_each(|it| it.known = None);
        for (pod, create) in std::mem::take(&mut self.creates) {
            self.doubt(pod, create.known);
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
        if page.part.begins {
            let doubts = self.doubts.values_mut();
            doubts.for_each(|doubt| doubt.is_listed = false);
        }
        for pod in pods.iter() {
            if let Some(doubt) = self.doubts.get_mut(&(pod.namespace, pod.name)) {
                doubt.is_listed |= doubt.uid.is_empty() || doubt.uid == pod.uid;
            }
        }
        if !page.part.ends {
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

    /// Whether to request the newest version of a kind now.
    pub(crate) fn poll_question(&mut self, now: Timestamp, kind: Kind, known: Option<u64>) -> bool {
        let question = &mut self.questions[kind as usize];
        if question.is_open || question.due.is_none_or(|due| due > now) {
            return false;
        }
        *question = Question {
            due: Some(after(now, self.every.longest_wait())),
            is_open: true,
            known,
        };
        true
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let waiting = self.questions.iter().filter(|it| !it.is_open);
        waiting.filter_map(|it| it.due).min()
    }

    fn doubt(&mut self, pod: PodName, lost: u64) {
        self.lost = self.lost.max(lost);
        self.doubts.entry(pod).or_default();
    }
}

/// Checks that a version is not below what was known.
fn check(kind: Kind, known: Option<u64>, version: &str) -> Result<(), WentBack> {
    match (known, parse_version(version)) {
        (Some(from), Some(to)) if to < from => Err(WentBack { kind, from, to }),
        (_, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests;

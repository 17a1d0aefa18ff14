//! Pods that were written of which no outcome told the state: they are expected by identity until the stream has shown them (W1–W3).
//!
//! A pod that was made and not yet shown keeps its ReplicaSet from making or deleting more. It is settled when the pod is seen, when
//! its deletion is seen, when the stream has passed the version of the write, or by a complete list that began after it. Time alone
//! settles nothing: after 5 minutes the agent is asked for such a list.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    consistency::UNSEEN_MAX,
    index::SetId,
    object::{ResourceVersion, Timestamp, Uid},
};

/// Namespace and name of a pod.
pub(crate) type PodName = (Arc<str>, Arc<str>);

/// What the stream is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The ReplicaSet that waits.
    pub(crate) set: SetId,
    pub(crate) write: Write,
    /// The uid, where the outcome told it.
    pub(crate) uid: Option<Uid>,
    /// The version of the write, where the outcome told it.
    pub(crate) version: Option<ResourceVersion>,
    /// The list of pods that had begun last when the outcome came.
    pub(crate) list: u32,
}

/// What was done to the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// It was made: nothing is known of it until it is shown.
    Create,
    /// It was deleted: the view has it on its way out already.
    Delete,
}

/// What the stream shows of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is there.
    Staying,
    /// It is on its way out, or gone.
    Going,
}

/// An expectation that is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) pod: PodName,
    pub(crate) set: SetId,
    pub(crate) write: Write,
}

/// All that is expected.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    pods: BTreeMap<PodName, (Expected, Timestamp)>,
    by_version: BTreeSet<(ResourceVersion, PodName)>,
    by_time: BTreeSet<(Timestamp, PodName)>,
    /// How many pods each ReplicaSet has made that are not shown.
    creates: HashMap<SetId, u32>,
}

// === impl Expectations ===

impl Expectations {
    /// Expects the stream to show a write.
    pub(crate) fn expect(&mut self, now: Timestamp, pod: PodName, expected: Expected) {
        self.settle(&pod);
        if let Some(version) = expected.version {
            self.by_version.insert((version, pod.clone()));
        }
        if expected.write == Write::Create {
            *self.creates.entry(expected.set).or_default() += 1;
        }
        self.by_time.insert((now, pod.clone()));
        self.pods.insert(pod, (expected, now));
    }

    /// Returns how many pods of the ReplicaSet were made and are not shown.
    pub(crate) fn creates(&self, set: SetId) -> u32 {
        self.creates.get(&set).copied().unwrap_or(0)
    }

    /// Notes a pod that the stream shows to be there, or to be on its way out or gone.
    pub(crate) fn saw(&mut self, pod: &PodName, uid: &Uid, shown: Shown) -> Option<Settled> {
        if self.pods.is_empty() {
            return None;
        }
        let (expected, _) = self.pods.get(pod)?;
        // Without a uid the name must do: it was free when it was chosen.
        let is_it = expected.uid.as_ref().is_none_or(|expected| expected == uid);
        let settles = expected.write == Write::Create || shown == Shown::Going;
        (is_it && settles).then(|| self.settle(pod)).flatten()
    }

    /// Notes that the stream has shown everything up to a version.
    pub(crate) fn passed(&mut self, seen: ResourceVersion) -> Vec<Settled> {
        let passed: Vec<_> = self
            .by_version
            .iter()
            .take_while(|(version, _)| *version <= seen)
            .cloned()
            .collect();
        passed
            .iter()
            .filter_map(|(_, pod)| self.settle(pod))
            .collect()
    }

    /// Notes a complete list of pods by its number.
    pub(crate) fn listed(&mut self, list: u32) -> Vec<Settled> {
        let older = self
            .pods
            .iter()
            .filter(|(_, (expected, _))| expected.list < list);
        let older: Vec<_> = older.map(|(pod, _)| pod.clone()).collect();
        older.iter().filter_map(|pod| self.settle(pod)).collect()
    }

    /// Forgets what a ReplicaSet waits for that is gone.
    pub(crate) fn forget(&mut self, set: SetId) -> Vec<Settled> {
        let its = self
            .pods
            .iter()
            .filter(|(_, (expected, _))| expected.set == set);
        let its: Vec<_> = its.map(|(pod, _)| pod.clone()).collect();
        its.iter().filter_map(|pod| self.settle(pod)).collect()
    }

    /// Returns whether something is overdue, and gives it another term.
    pub(crate) fn overdue(&mut self, now: Timestamp) -> bool {
        let overdue = self
            .by_time
            .iter()
            .take_while(|(since, _)| since.plus(UNSEEN_MAX) <= now);
        let overdue: Vec<_> = overdue.cloned().collect();
        for (since, pod) in &overdue {
            self.by_time.remove(&(*since, pod.clone()));
            self.by_time.insert((now, pod.clone()));
            if let Some((_, since)) = self.pods.get_mut(pod) {
                *since = now;
            }
        }
        !overdue.is_empty()
    }

    /// Returns when something will be overdue.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.by_time
            .first()
            .map(|(since, _)| since.plus(UNSEEN_MAX))
    }

    fn settle(&mut self, pod: &PodName) -> Option<Settled> {
        let (
            Expected {
                set,
                write,
                version,
                ..
            },
            since,
        ) = self.pods.remove(pod)?;
        self.by_time.remove(&(since, pod.clone()));
        if let Some(version) = version {
            self.by_version.remove(&(version, pod.clone()));
        }
        if write == Write::Create
            && let Some(count) = self.creates.get_mut(&set)
        {
            *count -= 1;
            if *count == 0 {
                self.creates.remove(&set);
            }
        }
        Some(Settled {
            pod: pod.clone(),
            set,
            write,
        })
    }
}

#[cfg(test)]
mod tests;

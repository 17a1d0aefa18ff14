//! A walk over the pods of namespaces in steps, between which the index may change.

use std::{sync::Arc, vec};

use super::{Entry, Index, PodId};

/// The number of pods in a step.
const STEP: usize = 256;

/// The pods of some namespaces. A pod that exists during the whole walk is met once, and another pod at most once.
#[derive(Clone, Debug)]
pub(crate) struct PodWalk {
    later: vec::IntoIter<Arc<str>>,
    namespace: Arc<str>,
    /// The pods of the namespace, in no order. Some may be gone, and their ids may belong to others now.
    ids: vec::IntoIter<PodId>,
}

impl PodWalk {
    pub(crate) fn new(namespaces: impl IntoIterator<Item = Arc<str>>) -> Self {
        let namespaces: Vec<_> = namespaces.into_iter().collect();
        Self {
            later: namespaces.into_iter(),
            namespace: Arc::default(),
            ids: Vec::new().into_iter(),
        }
    }

    /// Returns the next pods; `None` after the last one.
    pub(crate) fn step<'a>(&mut self, index: &'a Index) -> Option<Vec<(PodId, &'a Entry)>> {
        while self.ids.len() == 0 {
            self.namespace = self.later.next()?;
            let ids: Vec<_> = index.pod_ids_in(&self.namespace).collect();
            self.ids = ids.into_iter();
        }
        let next = self.ids.by_ref().take(STEP);
        let pods = next.filter_map(|id| Some((id, index.pod(id)?)));
        let is_here =
            |(_, pod): &(PodId, &Entry)| index.groups.at(pod.group).namespace == self.namespace;
        Some(pods.filter(is_here).collect())
    }
}

//! Pods created, or maybe created, while the versions of the cluster went back, and not shown by a list since.
//!
//! An API server that keeps running while its store is restored lists the lost history from its cache, for as long as it runs. An agent
//! that believed such a list would miss each pod that it has just created, and create another one in every session. So the agent uses a
//! list of pods only if the list shows the pods in doubt, or if its version is below the lost versions. Versions of the new history are
//! below them. The agent reads unlisted pods live; a deleted pod is out of doubt.

use decree::v1::{self, FailureClass};

use crate::{
    api::{Call, CallId, Reply, Request, classify, parse_version},
    operation::Answer,
    watch::{Items, List},
};

/// The pods in doubt. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubts {
    pods: Vec<Doubt>,
    /// The newest version before the versions went back.
    lost: u64,
}

#[derive(Clone, Debug)]
struct Doubt {
    /// The UID is empty until an answer shows that the pod exists.
    pod: v1::ObjectRef,
    is_listed: bool,
    read: Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    NotNeeded,
    Due,
    Asked(CallId),
}

// === impl Doubts ===

impl Doubts {
    /// Takes a pod whose version is not above the version that the cluster had reached; or a pod whose create is unanswered, without a UID,
    /// and the version that the cluster had reached when the create left.
    pub(crate) fn push(&mut self, pod: v1::ObjectRef, reached: u64) {
        self.lost = self.lost.max(reached);
        self.pods.push(Doubt {
            pod,
            is_listed: false,
            read: Read::NotNeeded,
        });
    }

    /// Takes the next page of a list of pods. False for the last page of a list that does not show all pods in doubt.
    pub(crate) fn allow(&mut self, page: &List) -> bool {
        let Items::Pods(pods) = &page.items else {
            return true;
        };
        if self.pods.is_empty() {
            return true;
        }
        if parse_version(&page.resource_version).is_none_or(|version| version < self.lost) {
            self.pods.clear();
            return true;
        }
        if page.part.begins() {
            let doubts = self.pods.iter_mut();
            doubts.for_each(|doubt| doubt.is_listed = false);
        }
        for pod in pods.iter() {
            let mut doubts = self.pods.iter_mut();
            if let Some(doubt) = doubts.find(|doubt| doubt.is_of(&pod)) {
                doubt.is_listed = true;
            }
        }
        if !page.part.ends() {
            return true;
        }
        self.pods.retain(|doubt| !doubt.is_listed);
        for doubt in &mut self.pods {
            if doubt.read == Read::NotNeeded {
                doubt.read = Read::Due;
            }
        }
        self.pods.is_empty()
    }

    pub(crate) const fn count(&self) -> usize {
        self.pods.len()
    }

    /// The next read of a pod; `next_id` numbers it.
    pub(crate) fn poll_read(&mut self, next_id: impl FnOnce() -> CallId) -> Option<Call> {
        let doubt = self.pods.iter_mut().find(|doubt| doubt.read == Read::Due)?;
        let id = next_id();
        doubt.read = Read::Asked(id);
        let request = Request::ReadPod {
            namespace: doubt.pod.namespace.clone(),
            name: doubt.pod.name.clone(),
        };
        Some(Call { id, request })
    }

    /// Takes the answer to a call, if the call is one of these reads.
    pub(crate) fn handle_answer(&mut self, id: CallId, answer: &Answer) {
        let is_asked = |doubt: &Doubt| doubt.read == Read::Asked(id);
        let Some(place) = self.pods.iter().position(is_asked) else {
            return;
        };
        let doubt = &mut self.pods[place];
        doubt.read = Read::NotNeeded;
        let is_gone = match answer {
            Ok(Reply::Pod(live)) => {
                let is_gone = !doubt.is_of(live);
                doubt.pod.uid.clone_from(&live.uid);
                is_gone
            }
            Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => false,
            Err(error) => classify(error) == FailureClass::NotFound,
        };
        if is_gone {
            self.pods.swap_remove(place);
        }
    }
}

// === impl Doubt ===

impl Doubt {
    fn is_of(&self, pod: &v1::Pod) -> bool {
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = &self.pod;
        if uid.is_empty() {
            *namespace == pod.namespace && *name == pod.name
        } else {
            *uid == pod.uid
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        tests::{pod, pod_list, pod_ref, refusal, replied},
        watch::Part,
    };

    fn list(part: Part, version: &str, names: &[&str]) -> List {
        let pods: Vec<_> = names.iter().map(|name| pod(name, 1)).collect();
        pod_list(part, version, &pods)
    }

    /// Two pods, in a cluster that had reached version 100.
    fn doubts() -> Doubts {
        let mut doubts = Doubts::default();
        doubts.push(pod_ref("a"), 100);
        doubts.push(pod_ref("b"), 90);
        doubts
    }

    fn read(doubts: &mut Doubts, id: u64) -> Option<Request> {
        let read = doubts.poll_read(|| CallId(id));
        read.map(|call| call.request)
    }

    #[test]
    fn list_of_the_lost_history_is_not_used() {
        let mut doubts = doubts();
        assert!(!doubts.allow(&list(Part::Whole, "100", &["other"])));
        assert!(!doubts.allow(&list(Part::Whole, "120", &["a", "other"])));
        assert!(
            doubts.allow(&list(Part::Whole, "120", &["b"])),
            "a was shown"
        );
        assert!(doubts.allow(&list(Part::Whole, "120", &[])));
    }

    #[test]
    fn list_of_the_new_history_is_used_whatever_it_shows() {
        let mut doubts = doubts();
        assert!(doubts.allow(&list(Part::Whole, "99", &[])));
        assert_eq!(doubts.count(), 0);
    }

    #[test]
    fn pages_show_the_pods_together() {
        let mut doubts = doubts();
        assert!(doubts.allow(&list(Part::First, "120", &["a"])));
        assert!(
            doubts.allow(&list(Part::First, "120", &["b"])),
            "begun anew"
        );
        assert!(!doubts.allow(&list(Part::Last, "120", &["other"])));
        assert!(doubts.allow(&list(Part::First, "120", &["a"])));
        assert!(doubts.allow(&list(Part::Last, "120", &["other"])));
    }

    #[test]
    fn pod_that_is_not_listed_is_read_and_is_in_doubt_until_it_is_gone() {
        let mut doubts = doubts();
        assert_eq!(read(&mut doubts, 1), None, "a list may show it");
        doubts.allow(&list(Part::Whole, "120", &["b"]));
        let wanted = Request::ReadPod {
            namespace: "default".into(),
            name: "a".into(),
        };
        assert_eq!(read(&mut doubts, 1), Some(wanted));
        assert_eq!(read(&mut doubts, 2), None, "once");
        doubts.handle_answer(CallId(1), &replied(pod("a", 12)));
        assert_eq!(doubts.count(), 1, "it is there");
        for (id, error) in [(2, refusal(503, "")), (3, refusal(404, "NotFound"))] {
            assert!(!doubts.allow(&list(Part::Whole, "120", &[])));
            assert!(read(&mut doubts, id).is_some());
            doubts.handle_answer(CallId(id), &Err(error));
        }
        assert_eq!(doubts.count(), 0);
    }

    #[test]
    fn pod_whose_create_has_no_answer_is_in_doubt_until_it_is_gone_or_listed() {
        let unknown = v1::ObjectRef {
            uid: String::new(),
            ..pod_ref("a")
        };
        for is_there in [true, false] {
            let mut doubts = Doubts::default();
            doubts.push(unknown.clone(), 100);
            assert!(!doubts.allow(&list(Part::Whole, "120", &["other"])));
            assert!(read(&mut doubts, 1).is_some());
            let answer = if is_there {
                replied(pod("a", 12))
            } else {
                Err(refusal(404, "NotFound"))
            };
            doubts.handle_answer(CallId(1), &answer);
            let is_used = doubts.allow(&list(Part::Whole, "120", &["other"]));
            assert_eq!(is_used, !is_there);
            assert!(doubts.allow(&list(Part::Whole, "120", &["a"])));
        }
    }
}

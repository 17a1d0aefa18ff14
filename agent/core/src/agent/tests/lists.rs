//! The lists of a session.

use super::*;
use crate::watch::Part;

impl Rig {
    /// Answers the first list of ReplicaSets. Returns the list of pods that follows it.
    pub(super) fn list_sets(&mut self) -> WatchId {
        self.answer_list("10", &[]);
        let (_, pods) = self.lists.pop_first().expect("it is asked for next");
        pods
    }
}

#[test]
fn session_begins_with_lists_of_both_kinds() {
    let mut rig = Rig::new(AgentConfig::default());
    rig.connect();
    assert!(rig.watches.is_empty(), "a watch begins where a list ended");
    let listed: Vec<_> = rig.lists.keys().collect();
    assert_eq!(
        listed,
        [&Kind::ReplicaSet],
        "pods are listed after ReplicaSets"
    );
    rig.answer_lists("10", &[pod("a", 5)]);
    let frames = rig.frames();
    assert!(
        matches!(
            &frames[..],
            [
                Frame::SnapshotBegin(_),
                Frame::SnapshotObjects(sets),
                Frame::SnapshotEnd(_),
                Frame::SnapshotBegin(_),
                Frame::SnapshotObjects(pods),
                Frame::SnapshotEnd(end),
            ] if sets.replica_sets.len() == 1 && pods.pods.len() == 1 && end.count == 1
        ),
        "{frames:?}"
    );
    assert_eq!(rig.watches[&Kind::Pod].1, "10");
}

#[test]
fn nothing_starts_while_the_pages_of_the_first_list_come() {
    let mut rig = Rig::new(AgentConfig::default());
    rig.connect();
    let pods = rig.list_sets();
    rig.frames();
    let mut sent = 0;
    let mut page = |part: Part, name| {
        let list = pod_list(part, "10", &[pod(name, 5)]);
        rig.agent.handle_listed(rig.now, Kind::Pod, pods, Ok(list));
        rig.effects();
        let frames = rig.frames();
        if !part.ends() {
            sent += 1;
            rig.receive_batch(batch(sent, create(1)));
            assert_eq!(rig.outcomes(), ["NOT_STARTED_CAUSE_GUARD"]);
            assert!(rig.calls.is_empty() && !rig.watches.contains_key(&Kind::Pod));
        }
        frames.len()
    };
    assert_eq!(page(Part::First, "a"), 2, "the beginning and a page");
    assert_eq!(page(Part::Middle, "b"), 1, "the page");
    assert_eq!(page(Part::Last, "c"), 2, "the page and the end");
    assert_eq!(rig.watches[&Kind::Pod].1, "10");
    assert_eq!(rig.agent.view.pods.counts(RS).active, 3);
}

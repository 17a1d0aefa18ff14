//! What does not concern the agent: pods of others, and the probe.

use super::*;

/// A pod that another controller creates.
fn made_by_other(pod: v1::Pod) -> WatchEvent {
    WatchEvent::MadeByOther {
        object: pod.into(),
        writer: "k3s".into(),
    }
}

#[test]
fn pod_of_another_controller_holds_the_replica_set_of_its_own_namespace_only() {
    // A user who may create pods elsewhere can name the UID of any ReplicaSet.
    for (namespace, held) in [("default", 2), ("another", 0)] {
        let mut rig = Rig::open(&[]);
        let mut made = pod("web-x", 11);
        made.namespace = namespace.into();
        rig.event(made_by_other(made));
        assert_eq!(rig.agent.holds().count(), held, "{namespace}");
        rig.receive_batch(batch(1, create(1)));
        assert_eq!(rig.calls.len(), usize::from(held == 0), "{namespace}");
    }
    // In shadow mode, another controller is expected.
    let mut rig = Rig::open(&[]);
    rig.agent.mode = v1::Mode::Shadow;
    rig.event(made_by_other(pod("web-x", 11)));
    assert_eq!(rig.agent.holds().count(), 0);
}

#[test]
fn probe_is_unknown_to_the_server() {
    let mut rig = Rig::new(AgentConfig {
        left_out: Some(("default".into(), "web".into())),
        ..AgentConfig::default()
    });
    rig.connect();
    rig.answer_lists("10", &[]);
    let frames = rig.frames();
    let is_listed = |frame: &Frame| matches!(frame, Frame::SnapshotObjects(_));
    assert!(!frames.iter().any(is_listed), "{frames:?}");
    let (id, _) = rig.watches[&Kind::ReplicaSet].clone();
    for event in [
        WatchEvent::Applied(replica_set(11, 2).into()),
        WatchEvent::Deleted(replica_set(12, 2).into()),
    ] {
        rig.agent
            .handle_watch_event(rig.now, Kind::ReplicaSet, id, event);
    }
    assert_eq!(rig.frames(), []);
}

//! Lists that are older than other news, frame by frame.

use decree::v1::{batch::Action, done, outcome};

use super::*;

fn pod(name: &str, version: &str) -> v1::Pod {
    v1::Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: version.to_owned(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        controller: Some(v1::OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            uid: "u0".to_owned(),
            block_owner_deletion: None,
        }),
        phase: v1::PodPhase::Running.into(),
        ..v1::Pod::default()
    }
}

fn web_wants(replicas: i32, version: &str) -> v1::ReplicaSet {
    v1::ReplicaSet {
        replicas: Some(replicas),
        resource_version: version.to_owned(),
        status: Some(v1::ReplicaSetStatus {
            replicas,
            fully_labeled_replicas: replicas,
            terminating_replicas: Some(0),
            ..v1::ReplicaSetStatus::default()
        }),
        ..web()
    }
}

fn list(
    kind: v1::Kind,
    pods: Vec<v1::Pod>,
    replica_sets: Vec<v1::ReplicaSet>,
    version: &str,
) -> [v1::ReconcileRequest; 3] {
    let count = pods.len() + replica_sets.len();
    let objects = v1::SnapshotObjects { pods, replica_sets };
    [
        begin(kind),
        request(Asked::SnapshotObjects(objects)),
        end_at(kind, count, version),
    ]
}

fn end_at(kind: v1::Kind, count: usize, version: &str) -> v1::ReconcileRequest {
    request(Asked::SnapshotEnd(v1::SnapshotEnd {
        kind: kind.into(),
        resource_version: version.to_owned(),
        count: i64::try_from(count).expect("lists are small"),
    }))
}

fn deleted(kind: v1::Kind, name: &str, uid: &str, version: &str) -> v1::ReconcileRequest {
    let gone = v1::Deleted {
        kind: kind.into(),
        object: Some(v1::ObjectRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }),
        resource_version: version.to_owned(),
    };
    let event = v1::Event {
        event: Some(v1::event::Event::Deleted(gone)),
    };
    let events = vec![event];
    request(Asked::Events(v1::Events { events }))
}

fn done(batch_id: u64, object: done::Object, version: &str) -> v1::ReconcileRequest {
    let done = v1::Done {
        resource_version: version.to_owned(),
        object: Some(object),
        ..v1::Done::default()
    };
    let outcome = v1::Outcome {
        batch_id,
        outcome: Some(outcome::Outcome::Done(done)),
        ..v1::Outcome::default()
    };
    let outcomes = vec![outcome];
    request(Asked::Outcomes(v1::Outcomes { outcomes }))
}

/// Opens a session whose ReplicaSet has its two desired pods.
fn with_two_pods() -> Session {
    let mut session = open_for(10);
    let sets = vec![web_wants(2, "4")];
    take(&mut session, list(v1::Kind::ReplicaSet, vec![], sets, "4"));
    let pods = vec![pod("p1", "2"), pod("p2", "3")];
    take(&mut session, list(v1::Kind::Pod, pods, vec![], "4"));
    assert_eq!(batches(&mut session), []);
    session
}

fn open_for(objects_max: usize) -> Session {
    let config = Config {
        objects_max,
        ..config()
    };
    let session = Session::open(START, config, "s1".to_owned(), hello());
    let mut session = session.expect("the hello is sound");
    assert_eq!(frames(&mut session, START), ["welcome"]);
    session
}

fn take(session: &mut Session, frames: impl IntoIterator<Item = v1::ReconcileRequest>) {
    for frame in frames {
        session.handle_frame(START, frame);
    }
}

/// Takes the only batch. Returns its number and the first name that it creates.
fn create(session: &mut Session) -> (u64, String) {
    let [batch] = &batches(session)[..] else {
        panic!("one batch")
    };
    let Some(Action::Create(create)) = &batch.action else {
        panic!("a create: {batch:?}")
    };
    (batch.id, create.names[0].clone())
}

#[test]
fn older_list_brings_no_pod_back() {
    let mut session = with_two_pods();
    session.handle_frame(START, deleted(v1::Kind::Pod, "p1", "uid-p1", "10"));
    let (batch, name) = create(&mut session);
    let pods = vec![pod("p1", "2"), pod("p2", "3")];
    take(&mut session, list(v1::Kind::Pod, pods, vec![], "8"));
    let made = done::Object::Pod(pod(&name, "12"));
    session.handle_frame(START, done(batch, made, "12"));
    let batches = batches(&mut session);
    let is_status = |batch: &v1::Batch| matches!(batch.action, Some(Action::WriteStatus(_)));
    assert!(
        batches.iter().all(is_status),
        "no pod is surplus: {batches:?}"
    );
    assert_eq!(session.stats().sizes.pods, 2);
}

#[test]
fn older_list_brings_no_replica_set_back() {
    let mut session = with_two_pods();
    session.handle_frame(START, deleted(v1::Kind::ReplicaSet, "web", "u0", "9"));
    let sets = vec![web_wants(4, "4")];
    take(&mut session, list(v1::Kind::ReplicaSet, vec![], sets, "6"));
    assert_eq!(batches(&mut session), []);
    assert_eq!(session.stats().sizes.replica_sets, 0);
}

#[test]
fn list_older_than_the_last_one_ends_the_session() {
    for kind in [v1::Kind::Pod, v1::Kind::ReplicaSet] {
        let mut session = with_two_pods();
        take(&mut session, [begin(kind), end_at(kind, 0, "3")]);
        let Some(End::Refused(refusal)) = session.poll_end() else {
            panic!("the session goes on")
        };
        assert_eq!(refusal.reason(), "VERSIONS_WENT_BACK");
        let text = refusal.to_string();
        assert!(
            text.contains("version 3") && text.contains("had reached 4"),
            "{text}"
        );
        let facts = [("last", "4".to_owned()), ("got", "3".to_owned())];
        assert_eq!(refusal.facts(), facts);
    }
}

#[test]
fn lists_that_do_not_go_back_are_legal() {
    let mut session = with_two_pods();
    let pods = || vec![pod("p1", "2"), pod("p2", "3")];
    // The versions: as old as the last list; none; older than the list of the other kind.
    for version in ["4", "", "5"] {
        take(&mut session, list(v1::Kind::Pod, pods(), vec![], version));
    }
    let sets = vec![web_wants(2, "4")];
    take(&mut session, list(v1::Kind::ReplicaSet, vec![], sets, "4"));
    // A list that was not used, since it is older than a write, sets no minimum.
    session.handle_frame(START, deleted(v1::Kind::Pod, "p1", "uid-p1", "10"));
    let (batch, name) = create(&mut session);
    let made = done::Object::Pod(pod(&name, "20"));
    session.handle_frame(START, done(batch, made, "20"));
    for (version, delay) in [("15", 0), ("12", 1)] {
        take(&mut session, list(v1::Kind::Pod, pods(), vec![], version));
        assert_eq!(frames(&mut session, after(delay)), ["resync"]);
    }
    assert_eq!(reason(&session), None);
}

#[test]
fn list_that_has_begun_is_not_asked_for() {
    let mut session = with_two_pods();
    session.handle_frame(START, deleted(v1::Kind::Pod, "p1", "uid-p1", "10"));
    let (batch, name) = create(&mut session);
    let pods = || vec![pod("p1", "2"), pod("p2", "3")];
    session.handle_frame(START, begin(v1::Kind::Pod));
    let made = done::Object::Pod(pod(&name, "12"));
    session.handle_frame(START, done(batch, made, "12"));
    session.handle_frame(START, end_at(v1::Kind::Pod, 0, "8"));
    // The shell takes reports after each step, with frames and without.
    while session.poll_report().is_some() {}
    session.handle_frame(START, begin(v1::Kind::Pod));
    assert_eq!(frames(&mut session, START), [""; 0]);
    let reports = std::iter::from_fn(|| session.poll_report());
    let asked = reports.filter(|report| matches!(report, SessionReport::ListRequested { .. }));
    assert_eq!(asked.count(), 0);
    let objects = v1::SnapshotObjects {
        pods: pods(),
        replica_sets: vec![],
    };
    session.handle_frame(START, request(Asked::SnapshotObjects(objects)));
    session.handle_frame(START, end_at(v1::Kind::Pod, 2, "9"));
    assert_eq!(
        frames(&mut session, after(1)),
        ["resync"],
        "it is too old as well"
    );
}

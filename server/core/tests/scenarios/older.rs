//! News that is older than the stream brings nothing back, and proves nothing that the stream has not shown.

use decree_core::{Action, After, Event, Kind, OperationResult, Pod, ResourceVersion, Span};

use crate::{
    objects::{pod, set},
    rig::{Rig, at},
};

/// A list of pods that ends at a version.
fn list_pods_at(rig: &mut Rig, pods: Vec<Pod>, version: u64) {
    rig.observe(Event::SnapshotBegin(Kind::Pod));
    pods.into_iter()
        .for_each(|pod| rig.observe(Event::PodApplied(pod)));
    let (kind, version) = (Kind::Pod, Some(ResourceVersion(version)));
    rig.observe(Event::SnapshotEnd { kind, version });
}

/// The cluster was restored to an earlier state: its versions are far below those that the stream has shown.
#[test]
fn versions_that_went_back_make_no_pod_too_many() {
    let mut rig = Rig::of(vec![set("web", 3)], vec![]);
    rig.reports();
    let version = ResourceVersion(1_000_000);
    let kind = Kind::Pod;
    rig.observe(Event::Bookmark { kind, version });
    let mut there = Vec::new();
    for round in 0..10 {
        while let Some(batch) = rig.poll() {
            let Action::Create { names, .. } = &batch.action else {
                rig.succeed(&batch);
                continue;
            };
            for (operation, name) in (0..).zip(names) {
                let made = at(pod(name, "web"), rig.next_version().0);
                there.push(made.clone());
                assert!(there.len() <= 3, "a pod too many");
                let after = Some(After::Pod(Box::new(made)));
                let version = None;
                rig.answer(&batch, operation, OperationResult::Done { version, after });
            }
        }
        let version = rig.next_version().0 + round;
        list_pods_at(&mut rig, there.clone(), version);
    }
    assert_eq!(there.len(), 3, "none is missing either");
}

#[test]
fn lists_that_stay_older_than_a_write_are_requested_less_and_less_often_and_end_the_session() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    rig.settle();
    let mut lists = Vec::new();
    for second in 0..=70 {
        let answers = second == 0 || rig.requests() == [Kind::Pod];
        if answers && rig.controller.went_back().is_none() {
            lists.push(second);
            list_pods_at(&mut rig, vec![], 900);
        }
        assert_eq!(rig.poll(), None, "nothing is decided meanwhile");
        rig.wait(Span::seconds(1));
    }
    assert_eq!(lists, [0, 1, 2, 4, 8, 16, 32, 64]);
    let (kind, reached, got) = rig.controller.went_back().expect("a minute is over");
    assert_eq!((kind, got), (Kind::Pod, ResourceVersion(900)));
    assert!(reached > ResourceVersion(1_000));
}

#[test]
fn the_version_of_a_batch_includes_what_outcomes_told() {
    let mut rig = Rig::of(vec![set("web", 1), set("db", 1)], vec![]);
    let (batch, other) = (rig.batch(), rig.batch());
    rig.succeed(&batch);
    let written = rig.controller.version(Kind::Pod);
    rig.succeed(&other);
    let later = rig.batch();
    assert!(later.pods_version > written, "{later:?}");
}

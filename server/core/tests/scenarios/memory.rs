//! The memory of a controller: what waits is small, and beyond its memory the largest objects are left alone.

use std::collections::BTreeMap;

use decree_core::{
    Action, Event, FailureClass, Key, Kind, NotStarted, OperationResult, Parts, Pod, ReplicaSet,
    ResourceVersion, Rule, Selector, Span, State, keep_within,
};
use proptest::{collection::vec, prelude::*};

use crate::{
    objects::{labels, orphan, pod, set},
    rig::{BARE, Rig, counts, failed},
};

/// More than the content of any object here.
const PLENTY: usize = 1 << 30;

fn bytes(rig: &Rig) -> usize {
    rig.controller.inspect().sizes().bytes
}

/// A ReplicaSet whose selector forbids this number of values, and one more.
fn large_set(name: &str, values: usize) -> ReplicaSet {
    let values: Vec<_> = (0..=values).map(|value| format!("v{value:05}")).collect();
    let values = values.iter().map(String::as_str).collect();
    let parts = Parts {
        match_labels: vec![("app", name)],
        match_expressions: vec![("other", "NotIn", values)],
    };
    ReplicaSet {
        selector: Selector::parse(Some(parts)),
        ..set(name, 1)
    }
}

/// The pod with fifty more labels.
fn large(pod: Pod) -> Pod {
    let more: Vec<_> = (0..50)
        .map(|label| format!("{label}-{}", pod.name))
        .collect();
    let more: Vec<_> = more.iter().map(|label| (label.as_str(), "v")).collect();
    let more = labels(&more);
    let labels = pod.labels.iter().chain(more.iter()).cloned().collect();
    Pod { labels, ..pod }
}

fn states(rig: &Rig) -> Vec<(String, State)> {
    let views = rig.controller.inspect().views(rig.now, None, 100);
    let states = views
        .into_iter()
        .map(|view| (view.key.name.to_string(), view.state));
    states.collect()
}

fn quarantined(rig: &Rig) -> Vec<String> {
    let states = states(rig).into_iter();
    let quarantined = states.filter(|(_, state)| *state == State::Quarantined);
    quarantined.map(|(name, _)| name).collect()
}

#[test]
fn result_that_waits_for_a_list_is_small_whatever_the_messages_are() {
    const SETS: usize = 50;
    let long = "quota exceeded ".repeat(2_000);
    let guard = || OperationResult::NotStarted(NotStarted::Guard(long.clone()));
    let no = |class| failed(class, &long);
    for (answers, waits_for) in [
        (vec![no(FailureClass::Forbidden), BARE], "a list"),
        (vec![no(FailureClass::Throttled), guard(), BARE], "a list"),
        (
            vec![
                no(FailureClass::NameTaken),
                no(FailureClass::Quota),
                no(FailureClass::Throttled),
                guard(),
                BARE,
            ],
            "a list",
        ),
        (vec![no(FailureClass::Forbidden)], "an open list"),
    ] {
        let replicas = i32::try_from(answers.len()).expect("they are few");
        let sets = (0..SETS).map(|number| set(&format!("web-{number:02}"), replicas));
        let mut rig = Rig::of(sets.collect(), vec![]);
        let batches: Vec<_> = std::iter::from_fn(|| rig.poll()).collect();
        assert_eq!(batches.len(), SETS);
        let in_flight = bytes(&rig);
        if waits_for == "an open list" {
            rig.observe(Event::SnapshotBegin(Kind::Pod));
        }
        for batch in &batches {
            for (operation, result) in (0..).zip(&answers) {
                rig.answer(batch, operation, result.clone());
            }
        }
        rig.reports();
        let waiting = bytes(&rig).saturating_sub(in_flight) / SETS;
        // At most four messages of 512 bytes, and the message of the obstacle.
        assert!(
            waiting <= 3_500,
            "{waiting} bytes each, {waits_for}, {answers:?}"
        );
        rig.list_pods(vec![]);
        let errors = rig.errors();
        assert!(errors.iter().all(|error| error.len() <= 512), "{errors:?}");
    }
}

#[test]
fn status_has_the_whole_message_and_its_batch_in_flight_keeps_little_of_it() {
    let long = "quota exceeded ".repeat(2_000);
    let mut rig = Rig::of(vec![set("web", 2)], vec![]);
    let batch = rig.batch();
    let before = bytes(&rig);
    rig.answer(&batch, 0, failed(FailureClass::Forbidden, &long));
    assert!(
        bytes(&rig) > before + long.len() - 1_000,
        "the message is counted"
    );
    rig.answer(&batch, 1, failed(FailureClass::Forbidden, "no"));
    rig.reports();
    let answered = bytes(&rig);
    assert!(
        answered > before + long.len() - 3_000,
        "so it is until the status is decided"
    );
    let Action::WriteStatus(status) = rig.batch().action else {
        panic!("the status says so")
    };
    assert_eq!(status.conditions[0].message, long);
    assert!(bytes(&rig) < answered - long.len() + 3_000);
}

#[test]
fn largest_objects_are_quarantined_first_and_others_go_on() {
    let sizes = [("a", 300), ("b", 100), ("c", 400), ("d", 200), ("e", 0)];
    let sets = sizes.map(|(name, values)| large_set(name, values));
    let mut rig = Rig::of(sets.to_vec(), vec![]);
    let all = bytes(&rig);
    assert!(keep_within(&mut rig.controller, all));
    assert_eq!(quarantined(&rig), [""; 0]);
    let mut expected = Vec::new();
    for (name, needed) in [("c", 1), ("a", 15_000), ("d", 10_000)] {
        let max = bytes(&rig) - needed;
        assert!(keep_within(&mut rig.controller, max));
        expected.push(name.to_owned());
        expected.sort();
        assert_eq!(
            quarantined(&rig),
            expected,
            "the largest of those that are left"
        );
    }
    // What is small stays, and the session has to end.
    assert!(!keep_within(&mut rig.controller, 1_000));
    let left: Vec<_> = rig
        .settle()
        .iter()
        .map(|batch| batch.key.name.to_string())
        .collect();
    assert!(
        left.iter().all(|name| name == "b" || name == "e") && left.len() == 4,
        "{left:?}"
    );
    let view = rig.view("c");
    assert_eq!(view.reasons[0].rule, Rule::Quarantined);
    let detail = &view.reasons[0].detail;
    assert!(
        detail.starts_with("object: takes 29 KiB") && detail.ends_with("--session-memory-max"),
        "{detail}"
    );
    assert_eq!(rig.controller.inspect().sizes().beyond_memory, 3);
    assert_eq!(rig.simulate("c", 5).quarantined.as_deref(), Some(&**detail));
}

#[test]
fn replica_set_that_shrinks_comes_back_at_once_and_one_that_is_gone_is_forgotten() {
    let sets = ["a", "b"].map(|name| large_set(name, 400));
    let mut rig = Rig::of(sets.to_vec(), vec![]);
    let max = bytes(&rig) - 40_000;
    assert!(keep_within(&mut rig.controller, max));
    assert_eq!(quarantined(&rig), ["a", "b"]);
    rig.settle();
    rig.apply_replica_set(large_set("a", 10));
    assert!(keep_within(&mut rig.controller, max));
    assert_eq!(quarantined(&rig), ["b"]);
    assert_eq!(&*rig.batch_done().key.name, "a");
    let version = Some(rig.next_version());
    rig.observe(Event::ReplicaSetDeleted {
        key: set("b", 1).key,
        version,
    });
    assert_eq!(rig.controller.inspect().sizes().beyond_memory, 0);
}

#[test]
fn list_brings_back_what_has_room_again_and_is_requested_from_time_to_time() {
    let [one, other] = [("one", 800), ("other", 400)].map(|(name, values)| ReplicaSet {
        replicas: 0,
        ..large_set(name, values)
    });
    let mut rig = Rig::of(vec![one.clone(), other.clone()], vec![]);
    let (all, spare) = (bytes(&rig), bytes(&rig) / 32);
    let other_alone = all - 40_000;
    assert!(keep_within(&mut rig.controller, other_alone));
    rig.settle();
    assert_eq!(
        (quarantined(&rig), rig.requests()),
        (vec!["one".to_owned()], vec![])
    );
    for _ in 0..2 {
        // There is room, and a list is requested.
        assert!(keep_within(&mut rig.controller, all + spare));
        rig.wait(Span::seconds(300));
        assert_eq!(rig.requests(), [Kind::ReplicaSet]);
        rig.wait(Span::seconds(300));
        assert_eq!(rig.requests(), [], "one is on its way");
        // By then, there is none: the list brings back nothing, at the version that is known.
        assert!(keep_within(&mut rig.controller, other_alone));
        rig.list_sets(vec![one.clone(), other.clone()]);
        assert!(keep_within(&mut rig.controller, other_alone));
        assert_eq!(quarantined(&rig), ["one"]);
        rig.wait(Span::seconds(1));
        assert_eq!(rig.requests(), []);
    }
    assert!(keep_within(&mut rig.controller, all + spare));
    rig.wait(Span::seconds(298));
    assert_eq!(rig.requests(), [], "not that soon again");
    rig.wait(Span::seconds(1));
    assert_eq!(rig.requests(), [Kind::ReplicaSet]);
    rig.list_sets(vec![one, other]);
    assert!(keep_within(&mut rig.controller, all + spare));
    assert_eq!(quarantined(&rig), [""; 0]);
}

#[test]
fn replica_set_with_a_pod_whose_labels_are_forgotten_is_left_alone_until_they_are_known() {
    let (mine, more) = (large(pod("mine", "web")), pod("more", "web"));
    let stranger = Pod {
        controller: Some(crate::objects::owner("unknown")),
        ..large(pod("stranger", "other"))
    };
    let mut rig = Rig::of(
        vec![set("web", 3), set("db", 0)],
        vec![mine.clone(), more, stranger, large(orphan("orphan", "db"))],
    );
    assert!(!keep_within(&mut rig.controller, 0));
    assert_eq!(quarantined(&rig), ["web"]);
    let detail = &rig.view("web").reasons[0].detail;
    assert!(detail.starts_with("pods: 1 pod with labels"), "{detail}");
    assert_eq!(
        rig.settle(),
        [],
        "nothing is created for it, and the orphan is not adopted"
    );
    // The pod is gone, or its labels shrink, or come back.
    let small = Pod {
        labels: pod("mine", "web").labels,
        ..mine.clone()
    };
    for (name, step) in [("gone", 0), ("shrunk", 1), ("listed", 2)] {
        let mut rig = Rig::of(vec![set("web", 3)], vec![mine.clone()]);
        keep_within(&mut rig.controller, 0);
        assert_eq!(rig.settle(), [], "{name}");
        keep_within(&mut rig.controller, PLENTY);
        match step {
            0 => rig.delete_pod(&mine),
            1 => rig.apply_pod(small.clone()),
            _ => {
                rig.wait(Span::seconds(0));
                assert_eq!(rig.requests(), [Kind::Pod], "{name}");
                rig.list_pods(vec![mine.clone()]);
            }
        }
        assert_eq!(quarantined(&rig), [""; 0], "{name}");
        let created = rig.batch().action.operations();
        assert_eq!(created, if step == 0 { 3 } else { 2 }, "{name}");
    }
}

#[test]
fn creates_are_lost_by_what_pods_do_and_not_by_what_is_forgotten() {
    for (gone, left) in [(0, 0), (12, 2)] {
        let mut rig = Rig::of(vec![set("web", 30)], vec![]);
        let Action::Create { names, .. } = rig.batch_done().action else {
            panic!("all pods are missing")
        };
        rig.settle();
        let known = |rig: &Rig, name: &str| {
            let pod = rig.controller.inspect().pod("default", name);
            pod.expect("it was created")
        };
        for name in &names {
            rig.apply_pod(large(known(&rig, name)));
        }
        let pods: Vec<_> = names.iter().map(|name| known(&rig, name)).collect();
        keep_within(&mut rig.controller, 0);
        assert_eq!(quarantined(&rig), ["web"]);
        pods[..gone].iter().for_each(|pod| rig.delete_pod(pod));
        keep_within(&mut rig.controller, PLENTY);
        rig.list_pods(pods[gone..].to_vec());
        assert_eq!(quarantined(&rig), [""; 0]);
        rig.settle();
        // Two grants of 5 come meanwhile, and no pod is young any more.
        rig.wait(Span::seconds(61));
        assert_eq!(rig.lost(), left, "{gone}");
    }
}

#[derive(Clone, Debug)]
enum Change {
    Pod(Pod),
    PodGone(usize),
    Set(ReplicaSet),
    SetGone(usize),
    /// The memory shrinks to nothing, and is there again.
    Shortage,
    List,
}

fn any_change() -> impl Strategy<Value = Change> {
    let name = 0..6_usize;
    let any_pod = (
        name.clone(),
        0..3_usize,
        0..4_usize,
        any::<bool>(),
        any::<bool>(),
    );
    let any_pod = any_pod.prop_map(|(name, app, of, is_large, deleting)| {
        let app = ["web", "db", "none"][app];
        let mut one = orphan(&format!("pod-{name}"), app);
        one.controller = ["web", "db"].get(of).map(|of| crate::objects::owner(of));
        one.state.deleting = deleting;
        if is_large { large(one) } else { one }
    });
    let any_set = (0..2_usize, prop_oneof![Just(0), Just(300)]);
    let any_set = any_set.prop_map(|(name, values)| large_set(["web", "db"][name], values));
    prop_oneof![
        8 => any_pod.prop_map(Change::Pod),
        2 => name.prop_map(Change::PodGone),
        4 => any_set.prop_map(Change::Set),
        1 => (0..2_usize).prop_map(Change::SetGone),
        3 => Just(Change::Shortage),
        1 => Just(Change::List),
    ]
}

/// A cluster, and a controller that sees it.
#[derive(Default)]
struct Cluster {
    pods: BTreeMap<String, Pod>,
    sets: BTreeMap<String, ReplicaSet>,
}

impl Cluster {
    fn take(&mut self, rig: &mut Rig, change: &Change) {
        let version = Some(rig.next_version());
        match change.clone() {
            Change::Pod(pod) => {
                let pod = Pod { version, ..pod };
                rig.observe(Event::PodApplied(pod.clone()));
                self.pods.insert(pod.name.to_string(), pod);
            }
            Change::PodGone(number) => {
                if let Some(pod) = self.pods.remove(&format!("pod-{number}")) {
                    rig.delete_pod(&pod);
                    // Its name comes back with another UID, but here with the same: without a tombstone.
                    rig.list_pods(self.pods.values().cloned().collect());
                }
            }
            Change::Set(set) => {
                let set = ReplicaSet { version, ..set };
                rig.observe(Event::ReplicaSetApplied(Box::new(set.clone())));
                self.sets.insert(set.key.name.to_string(), set);
            }
            Change::SetGone(number) => {
                if let Some(set) = self.sets.remove(["web", "db"][number]) {
                    rig.observe(Event::ReplicaSetDeleted {
                        key: set.key,
                        version,
                    });
                    rig.list_sets(self.sets.values().cloned().collect());
                }
            }
            Change::Shortage => {
                keep_within(&mut rig.controller, 0);
                keep_within(&mut rig.controller, PLENTY);
            }
            Change::List => {
                rig.list_pods(self.pods.values().cloned().collect());
                rig.list_sets(self.sets.values().cloned().collect());
            }
        }
    }

    /// The counts of each ReplicaSet of the cluster that `rig` does not leave alone, as a controller with all memory counts them.
    fn agrees_with(&self, rig: &Rig) -> Result<(), TestCaseError> {
        let all = Rig::of(
            self.sets.values().cloned().collect(),
            self.pods.values().cloned().collect(),
        );
        for view in rig.controller.inspect().views(rig.now, None, 10) {
            let Key {
                namespace, name, ..
            } = &view.key;
            let anew = all.controller.inspect().view(rig.now, namespace, name);
            let anew = anew.expect("it is in the cluster");
            if view.state != State::Quarantined {
                prop_assert_eq!(counts(&view.status), counts(&anew.status), "{}", name);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replica_set_that_is_not_left_alone_has_the_right_counts_whatever_is_forgotten(changes in vec(any_change(), 0..40)) {
        let mut rig = Rig::of(vec![], vec![]);
        let mut cluster = Cluster::default();
        for change in &changes {
            cluster.take(&mut rig, change);
            cluster.agrees_with(&rig)?;
        }
        // A list of each kind brings everything back.
        cluster.take(&mut rig, &Change::List);
        prop_assert_eq!(rig.controller.inspect().sizes().beyond_memory, 0);
        prop_assert_eq!(quarantined(&rig), [""; 0]);
        cluster.agrees_with(&rig)?;
    }

    #[test]
    fn controller_counts_as_much_after_objects_have_come_and_gone_as_before(changes in vec(any_change(), 0..40)) {
        let mut rig = Rig::of(vec![], vec![]);
        rig.reports();
        let before = bytes(&rig);
        let mut cluster = Cluster::default();
        changes.iter().for_each(|change| cluster.take(&mut rig, change));
        (0..6).for_each(|pod| cluster.take(&mut rig, &Change::PodGone(pod)));
        (0..2).for_each(|set| cluster.take(&mut rig, &Change::SetGone(set)));
        let version = ResourceVersion(1_000_000);
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            rig.observe(Event::Bookmark { kind, version });
        }
        rig.reports();
        // Vacant slots are kept.
        prop_assert!(bytes(&rig) <= before + 10_000, "{} bytes, {} before", bytes(&rig), before);
    }
}

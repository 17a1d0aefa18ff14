//! Names, against the definition of the lowest free k.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn uid(text: &str) -> Uid {
    Uid(text.into())
}

/// Returns name `k` of the ReplicaSet with this uid.
fn pod_name(base: &str, uid: &Uid, k: u64) -> Arc<str> {
    Name::new(base).with(Suffixes::new(uid).suffix(k)).into()
}

/// The first names of a fixed uid.
const PINNED: [&str; 3] = ["web-9s8nd", "web-2wsg7", "web-s2d9z"];

/// The first name where there is no uid.
const PINNED_WITHOUT_UID: &str = "web-nzvg8";

#[test]
fn generate_name_ends_in_a_dash_wherever_upstream_keeps_it() {
    let longest = "x".repeat(253);
    for name in ["web", "web-", "web.", "a.b", "A", &longest] {
        assert_eq!(*generate_name(name), format!("{name}-"), "{name}");
    }
    let too_long = "x".repeat(254);
    for name in ["", "Web", "a_b", ".web", "aé", &too_long] {
        assert_eq!(*generate_name(name), *name, "{name}");
    }
}

#[test]
fn base_keeps_58_bytes_of_whole_characters() {
    assert_eq!(base("web-"), "web-");
    assert_eq!(base(&"x".repeat(80)), "x".repeat(58));
    let straddling = format!("{}é", "x".repeat(57));
    assert_eq!(base(&straddling), "x".repeat(57));
}

/// Names are part of the contract between versions: a server that is updated must name the pod that its elder has in flight alike.
#[test]
fn names_never_change_from_version_to_version() {
    let uid = uid("0b5ae02a-3fd9-4d6e-b7d6-4c2d3a1b5f10");
    let names: Vec<_> = (0..3).map(|k| pod_name("web-", &uid, k)).collect();
    assert_eq!(names, PINNED.map(Arc::from));
    assert_eq!(*pod_name("web-", &Uid("".into()), 0), *PINNED_WITHOUT_UID);
}

#[test]
fn names_count_round_when_all_are_used() {
    assert_eq!(
        pod_name("a-", &uid("u"), SUFFIXES),
        pod_name("a-", &uid("u"), 0)
    );
    assert_eq!(pod_name("a-", &uid("u"), u64::MAX).len(), 7);
}

#[test]
fn names_of_one_replica_set_never_collide() {
    let uid = uid("one");
    let names: HashSet<_> = (0..100_000).map(|k| pod_name("", &uid, k)).collect();
    assert_eq!(names.len(), 100_000);
}

#[test]
fn recreated_replica_set_begins_with_other_names() {
    let first: HashSet<_> = (0..500).map(|k| pod_name("web-", &uid("one"), k)).collect();
    let again = (0..500).filter(|k| first.contains(&pod_name("web-", &uid("two"), *k)));
    assert!(again.count() < 5);
}

#[test]
fn cursor_ends_when_every_name_is_taken() {
    let mut cursor = NameCursor::new(&uid("u"));
    cursor.low = SUFFIXES - 1;
    let last = cursor.next("a-", |_| false).expect("the last name is free");
    assert_eq!(cursor.next("a-", |_| false), None);
    cursor.freed(&last);
    assert_eq!(cursor.next("a-", |_| false), Some(last));
}

#[test]
fn burned_name_is_passed_over_until_forgiven() {
    let uid = uid("u");
    let name = |k| Some(pod_name("a-", &uid, k));
    let mut cursor = NameCursor::new(&uid);
    assert_eq!(cursor.next("a-", |_| false), name(0));
    cursor.burn(&pod_name("a-", &uid, 0));
    cursor.burn(&pod_name("a-", &uid, 1));
    cursor.freed(&pod_name("a-", &uid, 0));
    assert_eq!(cursor.next("a-", |_| false), name(2));
    cursor.forgive();
    assert_eq!(cursor.next("a-", |_| false), name(0));
    assert_eq!(cursor.next("a-", |_| false), name(1));
    assert_eq!(cursor.next("a-", |_| false), name(3));
}

#[test]
fn cursor_forgets_its_holes_when_all_pods_are_gone() {
    let mut cursor = NameCursor::new(&uid("u"));
    let names: Vec<_> = (0..1000)
        .filter_map(|_| cursor.next("a-", |_| false))
        .collect();
    for name in names.iter().rev().step_by(2).chain(names.iter().step_by(2)) {
        cursor.freed(name);
    }
    assert_eq!((cursor.low, cursor.holes.len()), (0, 0));
}

#[test]
fn replacing_one_of_many_asks_about_one_name() {
    let mut cursor = NameCursor::new(&uid("u"));
    let names: Vec<_> = (0..10_000)
        .filter_map(|_| cursor.next("a-", |_| false))
        .collect();
    cursor.freed(&names[5000]);
    let asked = std::cell::Cell::new(0);
    let next = cursor.next("a-", |_| {
        asked.set(asked.get() + 1);
        false
    });
    assert_eq!((next.as_ref(), asked.get()), (Some(&names[5000]), 1));
}

/// What can happen to names 0 to 19 of a ReplicaSet.
#[derive(Clone, Debug)]
enum Step {
    Next,
    Ends(u64),
    Appears(u64),
    Vanishes(u64),
    Burns(u64),
    Forgive,
}

/// The definition, followed to the letter.
#[derive(Debug, Default)]
struct Model {
    view: HashSet<Arc<str>>,
    in_flight: HashSet<Arc<str>>,
    burned: HashSet<Arc<str>>,
}

impl Model {
    fn next(&self, uid: &Uid) -> Arc<str> {
        let free = |name: &Arc<str>| {
            [&self.view, &self.in_flight, &self.burned]
                .iter()
                .all(|names| !names.contains(name))
        };
        (0..)
            .map(|k| pod_name("a-", uid, k))
            .find(free)
            .expect("names do not end")
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Next),
        2 => (0..20_u64).prop_map(Step::Ends),
        2 => (0..20_u64).prop_map(Step::Appears),
        2 => (0..20_u64).prop_map(Step::Vanishes),
        1 => (0..20_u64).prop_map(Step::Burns),
        1 => Just(Step::Forgive),
    ]
}

proptest! {
    #[test]
    fn cursor_gives_the_lowest_free_name(steps in prop::collection::vec(step(), 0..200)) {
        let uid = uid("some");
        let (mut cursor, mut model) = (NameCursor::new(&uid), Model::default());
        for step in steps {
            match step {
                Step::Next => {
                    let wanted = model.next(&uid);
                    let taken = |name: &str| model.view.contains(name) || model.in_flight.contains(name);
                    let next = cursor.next("a-", taken);
                    prop_assert_eq!(next.as_ref(), Some(&wanted));
                    model.in_flight.insert(wanted);
                }
                Step::Ends(k) => {
                    let name = pod_name("a-", &uid, k);
                    if model.in_flight.remove(&name) {
                        cursor.freed(&name);
                    }
                }
                Step::Appears(k) => {
                    model.view.insert(pod_name("a-", &uid, k));
                }
                Step::Vanishes(k) => {
                    let name = pod_name("a-", &uid, k);
                    if model.view.remove(&name) {
                        cursor.freed(&name);
                    }
                }
                Step::Burns(k) => {
                    let name = pod_name("a-", &uid, k);
                    if model.in_flight.remove(&name) {
                        cursor.burn(&name);
                        model.burned.insert(name);
                    }
                }
                Step::Forgive => {
                    cursor.forgive();
                    model.burned.clear();
                }
            }
        }
    }

    #[test]
    fn name_tells_its_k_back(uid_text in ".{0,40}", k in 0..SUFFIXES) {
        let uid = uid(&uid_text);
        let name = pod_name("web-", &uid, k);
        prop_assert_eq!(Suffixes::new(&uid).k(&name).map(u64::from), Some(k));
    }

    #[test]
    fn any_text_can_be_freed(text in ".{0,12}") {
        let mut cursor = NameCursor::new(&uid("u"));
        cursor.freed(&text);
        cursor.burn(&text);
        cursor.forgive();
        prop_assert!(cursor.next(&text, |_| false).is_some());
    }
}

#[test]
fn doubtful_name_comes_before_a_lower_one_that_is_free() {
    let mut cursor = NameCursor::new(&uid("u"));
    let names: Vec<_> = (0..3)
        .filter_map(|_| cursor.next("a-", |_| false))
        .collect();
    let [first, _, third] = &names[..] else {
        panic!("three names are free")
    };
    cursor.doubt(third);
    cursor.freed(third);
    cursor.freed(first);
    assert_eq!(cursor.next("a-", |_| false).as_ref(), Some(third));
    assert_eq!(cursor.next("a-", |_| false).as_ref(), Some(first));
    assert_eq!(
        *cursor.next("a-", |_| false).expect("free"),
        *pod_name("a-", &uid("u"), 3)
    );
}

#[test]
fn doubtful_name_whose_pod_came_is_not_tried() {
    let mut cursor = NameCursor::new(&uid("u"));
    let first = cursor.next("a-", |_| false).expect("free");
    cursor.doubt(&first);
    let second = cursor.next("a-", |name| *name == *first).expect("free");
    assert_ne!(first, second);
    cursor.freed(&first);
    assert_eq!(cursor.next("a-", |_| false), Some(first));
}

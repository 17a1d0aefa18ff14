//! Names: their form, their order, and their reuse.

use std::{cell::Cell, collections::HashSet};

use proptest::prelude::*;

use super::*;

fn uid(text: &str) -> Uid {
    Uid(text.into())
}

fn pod_name(base: &str, uid: &Uid, k: u32) -> Arc<str> {
    Suffixes::new(uid).name(base, k).into()
}

/// The first names of a fixed uid.
const PINNED: [&str; 3] = ["web-9s8nd", "web-2wsg7", "web-s2d9z"];

/// Where the names of that UID begin in a session, and where they begin when its ReplicaSet comes back.
const PINNED_BEGINNINGS: [u32; 2] = [718_666, 563_722];

/// The first name without a UID.
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

/// Decisions from snapshots are recorded, and compared between versions.
#[test]
fn names_never_change_from_version_to_version() {
    let uid = uid("0b5ae02a-3fd9-4d6e-b7d6-4c2d3a1b5f10");
    let names: Vec<_> = (0..3).map(|k| pod_name("web-", &uid, k)).collect();
    assert_eq!(names, PINNED.map(Arc::from));
    assert_eq!(*pod_name("web-", &Uid("".into()), 0), *PINNED_WITHOUT_UID);
    let begins = [0, 1].map(|number| NameSeed::of_session(7, "s-1").first(&uid, number));
    assert_eq!(begins, PINNED_BEGINNINGS);
}

#[test]
fn recreated_replica_set_begins_with_other_names() {
    let first: HashSet<_> = (0..500).map(|k| pod_name("web-", &uid("one"), k)).collect();
    let again = (0..500).filter(|k| first.contains(&pod_name("web-", &uid("two"), *k)));
    assert!(again.count() < 5);
}

fn cursor(seed: NameSeed) -> NameCursor {
    NameCursor::new(seed, &uid("u"), 0)
}

/// A cursor in a session, as in a server.
fn of_session() -> NameCursor {
    cursor(NameSeed::of_session(7, "s-1"))
}

fn free(_: &str) -> NameUse {
    NameUse::Free
}

/// The use of names if one has this use, and the others are free.
fn only(name: &str, usage: NameUse) -> impl Fn(&str) -> NameUse {
    move |it| if it == name { usage } else { NameUse::Free }
}

#[test]
fn decision_from_a_snapshot_takes_what_is_free_first() {
    let all = [0, 1, 2, 3].map(|k| pod_name("a-", &uid("u"), k));
    let taken = only(&all[1], NameUse::Taken);
    let names = cursor(NameSeed::default()).next_names("a-", 3, taken);
    assert_eq!(names, [&all[0], &all[2], &all[3]].map(Arc::clone));
}

#[test]
fn sessions_epochs_and_replica_sets_begin_far_from_each_other() {
    let begins = |epoch, session: &str, uid_text: &str, number| {
        NameSeed::of_session(epoch, session).first(&uid(uid_text), number)
    };
    let mut all = vec![
        begins(1, "a", "u", 0),
        begins(2, "a", "u", 0),
        begins(1, "b", "u", 0),
        begins(1, "a", "v", 0),
        begins(1, "a", "u", 1),
        NameSeed::default().first(&uid("u"), 0),
    ];
    assert_eq!(all[0], begins(1, "a", "u", 0));
    all.sort_unstable();
    assert!(
        all.windows(2).all(|pair| pair[1] - pair[0] > 1000),
        "{all:?}"
    );
}

#[test]
fn names_of_pods_that_are_gone_do_not_come_back() {
    let mut cursor = of_session();
    let mut seen = HashSet::new();
    for _ in 0..2_000 {
        for name in cursor.next_names("a-", 5, free) {
            assert!(seen.insert(Arc::clone(&name)), "{name} comes again");
            cursor.mark_taken(&name);
        }
    }
}

#[test]
fn cursor_goes_round_the_end() {
    let mut cursor = of_session();
    cursor.next = SUFFIXES - 1;
    let names = cursor.next_names("a-", 2, free);
    let wanted = [SUFFIXES - 1, 0].map(|k| pod_name("a-", &uid("u"), k));
    assert_eq!(names, wanted);
}

#[test]
fn cursor_ends_when_every_name_is_taken() {
    let mut cursor = of_session();
    let last = pod_name("a-", &uid("u"), 5);
    let but_one = |name: &str| {
        if name == &*last {
            NameUse::Free
        } else {
            NameUse::InFlight
        }
    };
    assert_eq!(cursor.next_names("a-", 2, but_one), [Arc::clone(&last)]);
}

#[test]
fn one_name_of_many_asks_about_one() {
    let mut cursor = of_session();
    cursor.next_names("a-", 10_000, free);
    let asked = Cell::new(0);
    cursor.next_names("a-", 1, |_| {
        asked.set(asked.get() + 1);
        NameUse::Free
    });
    assert_eq!(asked.get(), 1);
}

/// The events of a name that was given out: a create without an answer, a refused create, a pod of the name that is shown or gone, and
/// further calls.
#[test]
fn name_is_given_again_only_while_a_create_of_it_may_still_make_a_pod() {
    use NameUse::{Free, InFlight, Taken};
    for (events, usage, again) in [
        ("", Free, false),
        ("unanswered", Free, true),
        // The server retries, and the retry is refused, which says nothing about the first create.
        ("unanswered given given refused", Free, true),
        ("unanswered", InFlight, false),
        ("unanswered in-flight", Free, true),
        ("unanswered", Taken, false),
        ("unanswered taken", Free, false),
        ("unanswered shown", Free, false),
        // Another create may take effect when the pod of the first one is gone.
        ("unanswered unanswered taken gone", Free, true),
        ("unanswered unanswered taken gone gone", Free, false),
        ("refused refused", Free, true),
        ("refused refused gone", Free, false),
    ] {
        let mut cursor = of_session();
        let name = cursor.next_names("a-", 1, free).remove(0);
        for event in events.split_whitespace() {
            match event {
                "unanswered" => cursor.retry(&name, true),
                "refused" => cursor.retry(&name, false),
                "shown" => {
                    cursor.mark_taken(&name);
                }
                "gone" => {
                    cursor.mark_gone(&name);
                }
                "given" => assert_eq!(cursor.next_names("a-", 1, free), [Arc::clone(&name)]),
                "in-flight" => drop(cursor.next_names("a-", 1, only(&name, InFlight))),
                _ => drop(cursor.next_names("a-", 1, only(&name, Taken))),
            }
        }
        let names = cursor.next_names("a-", 2, only(&name, usage));
        assert_eq!(names[0] == name, again, "{events}, {usage:?}");
        assert_ne!(names[1], name, "{events}, {usage:?}");
    }
}

#[test]
fn few_refused_names_are_kept_and_every_unanswered_one() {
    let mut cursor = of_session();
    let names = cursor.next_names("a-", 5_000, free);
    names.iter().for_each(|name| cursor.retry(name, false));
    assert_eq!(cursor.kept_names(), REFUSED_MAX);
    assert_eq!(cursor.next_names("a-", 3, free), names[..3]);
    names.iter().for_each(|name| cursor.retry(name, true));
    names.iter().for_each(|name| cursor.retry(name, false));
    assert_eq!(cursor.kept_names(), 5_000);
    assert_eq!(cursor.next_names("a-", 5_000, free), names);
}

#[test]
fn unknown_name_ahead_of_a_cursor_that_comes_round_is_given_once() {
    let mut cursor = of_session();
    let name = cursor.next_names("a-", 1, free).remove(0);
    cursor.retry(&name, true);
    cursor.next = (cursor.next + SUFFIXES - 1) % SUFFIXES;
    let names = cursor.next_names("a-", 2, free);
    assert_eq!(names[0], name);
    assert_ne!(names[1], name);
}

proptest! {
    #[test]
    fn name_tells_its_k_back(uid_text in ".{0,40}", k in 0..SUFFIXES) {
        let uid = uid(&uid_text);
        let name = pod_name("web-", &uid, k);
        prop_assert_eq!(Suffixes::new(&uid).k(&name), Some(k));
    }

    #[test]
    fn any_text_can_be_marked(text in ".{0,12}") {
        let mut cursor = of_session();
        cursor.retry(&text, true);
        cursor.mark_taken(&text);
        prop_assert_eq!(cursor.next_names(&text, 1, free).len(), 1);
    }
}

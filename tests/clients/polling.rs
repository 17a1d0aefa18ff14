//! A controller that polls: a list from before a change does not undo the change.

use decree::v1::{Pod, ReplicaSet, event, outcome::Outcome};

use crate::{
    puppet::{LIMITS, Puppet, in_each_language, pod, reference, replica_set, word},
    scripted::Scripted,
    world,
};

/// Returns the command that passes a list to the agent.
fn list(pods: &[Pod]) -> String {
    let words: Vec<_> = pods.iter().map(word).collect();
    format!("sync-pods {}", words.join(" "))
}

fn apply(pod: &Pod) -> String {
    format!("apply-pod {}", word(pod))
}

fn apply_set(replicas: i32, generation: i64) -> String {
    let set = ReplicaSet {
        generation,
        ..replica_set(replicas)
    };
    format!("apply-replica-set {}", word(&set))
}

#[test]
fn list_does_not_undo_what_changed_after_its_mark() {
    in_each_language(|language| {
        let mut server = Scripted::start();
        let mut puppet = Puppet::start(language, &server.address, LIMITS);
        puppet.obey(&apply_set(3, 1));
        for name in ["set-old", "set-lost", "set-doomed"] {
            puppet.obey(&apply(&pod(name, "one")));
        }
        puppet.obey("run");
        let mut session = server.session();
        puppet.obey("mark");
        // During a list, …
        puppet.obey(&apply_set(4, 2));
        session.create(&reference(), &["set-bbbbb"]);
        server.outcomes(&mut session, 1);
        puppet.obey(&apply_set(1, 3));
        session.delete(&reference(), "set-doomed");
        let outcome = server.outcomes(&mut session, 1).remove(0);
        assert!(matches!(outcome.outcome, Some(Outcome::Done(_))));
        puppet.obey(&apply(&pod("set-old", "two")));
        // … and the list has the old objects, a new pod, and not the lost one.
        let listed = [
            pod("set-old", "one"),
            pod("set-doomed", "one"),
            pod("set-new", "one"),
        ];
        puppet.obey(&list(&listed));
        assert_eq!(puppet.pods(), "set-bbbbb@made set-new@one set-old@two");

        // A list from after all changes is taken as it is.
        puppet.obey("mark");
        puppet.obey(&list(&[pod("set-old", "one"), pod("set-bbbbb", "made")]));
        assert_eq!(puppet.pods(), "set-bbbbb@made set-old@one");
        let mut without_uid = pod("set-x", "one");
        without_uid.uid.clear();
        puppet.obey("mark");
        let why = puppet.refuse(&list(&[pod("set-old", "one"), without_uid]));
        assert_eq!(why, "pod local/set-x: uid: it is empty");
        assert_eq!(puppet.pods(), "set-old@one");
    });
}

#[test]
fn list_without_news_sends_none() {
    in_each_language(|language| {
        let mut server = Scripted::start();
        let mut puppet = Puppet::start(language, &server.address, LIMITS);
        puppet.obey(&apply_set(3, 1));
        puppet.obey(&apply(&pod("set-old", "one")));
        puppet.obey("run");
        let mut session = server.session();
        puppet.obey("mark");
        puppet.obey(&list(&[pod("set-old", "one")]));
        puppet.obey(&format!("sync-replica-sets {}", word(&replica_set(3))));
        puppet.obey(&apply(&pod("set-end", "one")));
        let event::Event::PodApplied(first) = server.event(&mut session).event.expect("one") else {
            panic!("a pod")
        };
        assert_eq!(first.name, "set-end");
    });
}

#[test]
fn mark_beyond_what_is_remembered_is_refused() {
    in_each_language(|language| {
        let mut puppet = Puppet::start(language, "127.0.0.1:1", LIMITS);
        puppet.obey("mark");
        for number in 0..10_000 {
            puppet.obey(&format!("remove-pod {number}"));
        }
        puppet.obey(&list(&[pod("0", "one"), pod("set-old", "one")]));
        assert_eq!(puppet.pods(), "set-old@one");
        puppet.obey("remove-pod 10000");
        let why = puppet.refuse(&list(&[]));
        assert_eq!(why, "the mark is too old: take another one and list again");
        assert_eq!(puppet.pods(), "set-old@one");
    });
}

#[test]
fn list_of_replica_sets_does_not_undo_what_changed_after_its_mark() {
    in_each_language(|language| {
        let server = world::server("127.0.0.1:0");
        let address = server.address("grpc");
        let mut puppet = Puppet::start(language, &address, LIMITS);
        puppet.obey("mark");
        puppet.obey(&apply_set(2, 2));
        puppet.obey("run");
        world::wait_until_converged(&address, 2);
        let older = format!("sync-replica-sets {}", word(&replica_set(5)));
        puppet.obey(&older);
        puppet.obey("sync-replica-sets ");
        puppet.obey("mark");
        let newer = ReplicaSet {
            generation: 3,
            ..replica_set(3)
        };
        puppet.obey(&format!("sync-replica-sets {}", word(&newer)));
        world::wait_until_converged(&address, 3);
        assert_eq!(puppet.said("create").len(), 3, "never five");
    });
}

#[test]
fn state_of_before_a_deletion_brings_nothing_back() {
    in_each_language(|language| {
        let mut server = Scripted::start();
        let mut puppet = Puppet::start(language, &server.address, LIMITS);
        puppet.obey(&apply_set(0, 1));
        puppet.obey(&apply(&pod("set-old", "one")));
        puppet.obey("run");
        let mut session = server.session();
        session.delete(&reference(), "set-old");
        server.outcomes(&mut session, 1);
        puppet.obey(&apply(&pod("set-old", "one")));
        puppet.obey("remove-pod set-old");
        puppet.obey(&apply(&pod("set-old", "one")));
        assert_eq!(puppet.pods(), "");
        // A pod that the controller itself removed may come back.
        puppet.obey(&apply(&pod("set-other", "one")));
        puppet.obey("remove-pod set-other");
        puppet.obey(&apply(&pod("set-other", "two")));
        assert_eq!(puppet.pods(), "set-other@two");
    });
}

#[test]
fn pod_that_a_create_returns_is_older_than_what_was_told_meanwhile() {
    in_each_language(|language| {
        let mut server = Scripted::start();
        let mut puppet = Puppet::start(language, &server.address, LIMITS);
        puppet.obey(&apply_set(2, 1));
        puppet.obey("create hang");
        puppet.obey("run");
        let mut session = server.session();
        session.create(&reference(), &["set-bbbbb", "set-ccccc"]);
        puppet.wait_for("create", 2);
        puppet.obey(&apply(&pod("set-bbbbb", "newer")));
        puppet.obey("remove-pod set-ccccc");
        puppet.obey("release");
        let outcomes = server.outcomes(&mut session, 2);
        let done = |it: &decree::v1::Outcome| matches!(it.outcome, Some(Outcome::Done(_)));
        assert!(outcomes.iter().all(done), "{outcomes:?}");
        let event = |server: &Scripted, session: &mut _| server.event(session).event.expect("one");
        assert!(matches!(
            event(&server, &mut session),
            event::Event::PodApplied(_)
        ));
        let event::Event::Deleted(gone) = event(&server, &mut session) else {
            panic!("the other one is gone")
        };
        assert_eq!(gone.object.map(|it| it.uid), Some("set-ccccc".into()));
        assert_eq!(puppet.pods(), "set-bbbbb@newer");
    });
}

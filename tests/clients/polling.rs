//! A controller that polls: a list from before a change does not undo the change.

use decree_api::v1::{Pod, ReplicaSet, event, outcome::Outcome};

use crate::{
    play::{Play, set_command},
    puppet::{LIMITS, Limits, Puppet, in_each_language, pod, reference, replica_set, word},
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

fn scaled(replicas: i32, generation: i64) -> ReplicaSet {
    ReplicaSet {
        generation,
        ..replica_set(replicas)
    }
}

#[test]
fn list_does_not_undo_what_changed_after_its_mark() {
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 3);
        for name in ["set-old", "set-lost", "set-doomed"] {
            play.puppet.obey(&apply(&pod(name, "one")));
        }
        play.puppet.obey("mark");
        // During a list, …
        play.scale(4, 2);
        play.create_one("set-bbbbb");
        play.scale(1, 3);
        assert!(matches!(play.delete("set-doomed"), Outcome::Done(_)));
        let puppet = &mut play.puppet;
        puppet.obey(&apply(&pod("set-old", "two")));
        // … and the list has the old objects, a new pod, and not the lost one.
        let listed = ["set-old", "set-doomed", "set-new"].map(|name| pod(name, "one"));
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
        let mut play = Play::start(language, LIMITS, 3);
        play.puppet.obey(&apply(&pod("set-old", "one")));
        play.event();
        play.puppet.obey("mark");
        play.puppet.obey(&list(&[pod("set-old", "one")]));
        let sets = format!("sync-replica-sets {}", word(&replica_set(3)));
        play.puppet.obey(&sets);
        play.puppet.obey(&apply(&pod("set-end", "one")));
        let event::Event::PodApplied(first) = play.event() else {
            panic!("a pod")
        };
        assert_eq!(first.name, "set-end");
    });
}

#[test]
fn mark_beyond_what_is_remembered_is_refused() {
    in_each_language(|language| {
        // Removals are remembered for longer while lists may lag behind them.
        let limits = Limits {
            settle_ms: 1,
            ..LIMITS
        };
        let mut puppet = Puppet::start(language, "127.0.0.1:1", limits);
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
        puppet.obey(&set_command(&scaled(2, 2)));
        puppet.obey("run");
        world::wait_until_converged(&address, 2);
        let older = format!("sync-replica-sets {}", word(&replica_set(5)));
        puppet.obey(&older);
        puppet.obey("sync-replica-sets ");
        puppet.obey("mark");
        puppet.obey(&format!("sync-replica-sets {}", word(&scaled(3, 3))));
        world::wait_until_converged(&address, 3);
        assert_eq!(puppet.said("create").len(), 3, "never five");
    });
}

#[test]
fn state_of_before_a_deletion_brings_nothing_back() {
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 0);
        play.puppet.obey(&apply(&pod("set-old", "one")));
        play.delete("set-old");
        let puppet = &mut play.puppet;
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
        let mut play = Play::start(language, LIMITS, 2);
        play.puppet.obey("create hang");
        play.session
            .create(&reference(), &["set-bbbbb", "set-ccccc"]);
        play.puppet.wait_for("create", 2);
        play.puppet.obey(&apply(&pod("set-bbbbb", "newer")));
        play.puppet.obey("remove-pod set-ccccc");
        play.puppet.obey("release");
        let outcomes = play.outcomes(2);
        let done = |it: &Outcome| matches!(it, Outcome::Done(_));
        assert!(outcomes.iter().all(done), "{outcomes:?}");
        assert!(matches!(play.event(), event::Event::PodApplied(_)));
        let event::Event::Deleted(gone) = play.event() else {
            panic!("the other one is gone")
        };
        assert_eq!(gone.object.map(|it| it.uid), Some("set-ccccc".into()));
        assert_eq!(play.puppet.pods(), "set-bbbbb@newer");
    });
}

//! The agents of both clients follow the same rules when a controller makes a mistake.

use decree_api::v1::{
    FailureClass, NotStartedCause, PodPhase, Preferences, ReplicaSet, event, outcome::Outcome,
};

use crate::{
    play::{Play, failed, made, not_started, set_command},
    puppet::{LIMITS, Language, Limits, in_each_language, pod, reference, replica_set, word},
    scripted::Scripted,
};

#[test]
fn whatever_a_call_does_has_one_outcome_and_one_line_of_the_log() {
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 1);
        let mut lines = 0;
        let mut fail = |play: &mut Play, how: &str, call: &str, class: FailureClass| {
            play.puppet.obey(&format!("{call} {how}"));
            let outcome = match call {
                "create" => play.create_one("set-bbbbb"),
                _ => play.delete("set-ccccc"),
            };
            let why = failed(&outcome, class).to_owned();
            lines += 1;
            let logged = play.puppet.wait_for(&format!("log {call} of local/"), 1);
            let all = play.puppet.wait_for("log", lines);
            assert_eq!(all.len(), lines, "{how}: {all:?} {logged:?}");
            why
        };
        let timeout = FailureClass::Timeout;
        let coroutine =
            |call| format!("{call} returned a coroutine: it must be an ordinary function");
        assert!(fail(&mut play, "throw", "create", timeout).contains("boom"));
        let exit = fail(&mut play, "exit", "create", timeout);
        let is_said = exit.contains("boom") || exit == "it has ended its goroutine";
        assert!(is_said, "{exit}");
        fail(&mut play, "wrong", "create", FailureClass::Invalid);
        if language != Language::Go {
            let why = fail(&mut play, "mute", "create", timeout);
            assert!(why.contains("MuteError: it has no text"), "{why}");
            assert!(fail(&mut play, "no-class", "create", timeout).contains("none"));
            assert!(exit.contains("SystemExit: boom"), "{exit}");
        }
        if language == Language::Python {
            let why = fail(&mut play, "async", "create", FailureClass::Invalid);
            assert_eq!(why, coroutine("create"));
        }
        play.puppet.obey("create make");
        made(&play.create_one("set-bbbbb"));
        let again = play.create_one("set-bbbbb");
        made(&again);
        assert!(matches!(again, Outcome::Done(done) if done.already_existed));
        play.puppet
            .obey(&format!("apply-pod {}", word(&pod("set-ccccc", "there"))));
        play.scale(0, 2);
        assert!(fail(&mut play, "throw", "delete", timeout).contains("boom"));
        fail(&mut play, "exit", "delete", timeout);
        if language == Language::Python {
            let why = fail(&mut play, "async", "delete", FailureClass::Invalid);
            assert_eq!(why, coroutine("delete"));
        }
        play.puppet.obey("delete remove");
        assert!(matches!(play.delete("set-ccccc"), Outcome::Done(_)));
        assert_eq!(Scripted::unread(&play.session), 0, "an outcome came twice");
    });
}

#[test]
fn ended_pod_goes_only_if_its_replica_set_keeps_fewer() {
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 0);
        for name in ["set-bbbbb", "set-ccccc"] {
            let mut ended = pod(name, "there");
            ended.set_phase(PodPhase::Failed);
            play.puppet.obey(&format!("apply-pod {}", word(&ended)));
        }
        play.puppet.obey("delete remove");
        let mut prefer = |keep_ended| {
            let set = ReplicaSet {
                preferences: Some(Preferences {
                    keep_ended,
                    ..Preferences::default()
                }),
                ..replica_set(0)
            };
            play.puppet.obey(&set_command(&set));
            play.delete("set-bbbbb")
        };
        let kept = "inactive: the pod has ended, and its ReplicaSet keeps it";
        for keep in [None, Some(2)] {
            assert_eq!(not_started(&prefer(keep), NotStartedCause::Guard), kept);
        }
        assert!(matches!(prefer(Some(1)), Outcome::Done(_)));
    });
}

#[test]
fn failure_says_when_to_try_again() {
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 1);
        play.puppet.obey("create throttled");
        let outcome = play.create_one("set-bbbbb");
        assert_eq!(failed(&outcome, FailureClass::Throttled), "slow down");
        let Outcome::Failed(failed) = outcome else {
            unreachable!("it is one")
        };
        let wait = failed.retry_after.expect("it says when");
        assert_eq!((wait.seconds, wait.nanos), (1, 500_000_000));
        assert_eq!(
            play.puppet.said("log"),
            [""; 0],
            "it is no fault of the controller"
        );
    });
}

#[test]
fn call_that_hangs_is_answered_and_keeps_its_place() {
    let limits = Limits {
        timeout_ms: 200,
        ..LIMITS
    };
    in_each_language(|language| {
        let mut play = Play::start(language, limits, 1);
        play.puppet.obey("create hang");
        let outcome = play.create_one("set-bbbbb");
        let late = "it has not returned within 0.2 s";
        assert_eq!(failed(&outcome, FailureClass::Timeout), late);
        let line = format!("of local/set-bbbbb failed: {late}");
        assert_eq!(play.puppet.wait_for("log create", 1), [line]);
        // The call may still take effect, so the agent reuses neither its name nor its place.
        let guard = NotStartedCause::Guard;
        let outcomes = play.create(&["set-bbbbb", "set-ccccc"]);
        let mut why: Vec<_> = outcomes.iter().map(|one| not_started(one, guard)).collect();
        why.sort_unstable();
        assert_eq!(
            why,
            [
                "name: an earlier create of it has not returned",
                "surplus: there are as many pods as desired",
            ]
        );
        play.puppet.obey("release");
        let event::Event::PodApplied(pod) = play.event() else {
            panic!("the pod is there")
        };
        assert_eq!(pod.name, "set-bbbbb");
        play.scale(0, 2);
        play.event();
        play.puppet.obey("delete hang");
        let outcome = play.delete("set-bbbbb");
        assert_eq!(failed(&outcome, FailureClass::Timeout), late);
        play.puppet.obey("release");
        let event::Event::Deleted(gone) = play.event() else {
            panic!("the pod is gone")
        };
        assert_eq!(gone.object.map(|it| it.uid), Some("set-bbbbb".into()));
        assert_eq!(play.puppet.pods(), "");
    });
}

#[test]
fn neither_a_session_nor_the_end_waits_for_a_call_that_hangs() {
    let limits = Limits {
        timeout_ms: 200,
        ..LIMITS
    };
    in_each_language(|language| {
        let mut play = Play::start(language, limits, 2);
        play.puppet.obey("create hang");
        play.create_one("set-bbbbb");
        play.session.drain();
        let mut play = play.next_session();
        // The requests of the earlier session still count.
        play.puppet.obey("create make");
        made(&play.create_one("set-ccccc"));
        not_started(&play.create_one("set-ddddd"), NotStartedCause::Guard);
        play.stop();
    });
}

#[test]
fn creates_are_paced_and_nothing_else_waits_for_them() {
    let limits = Limits {
        creates_per_second: 0.01,
        create_burst: 2,
        timeout_ms: 150_000,
        ..LIMITS
    };
    in_each_language(|language| {
        let mut play = Play::start(language, limits, 9);
        // Two creates begin at once. The third may begin after 100 seconds, and the fourth would have to wait for 200.
        let names = ["set-bbbbb", "set-ccccc", "set-ddddd", "set-fffff"];
        play.session.create(&reference(), &names);
        let mut outcomes = play.outcomes(3);
        outcomes.sort_by_key(|one| matches!(one, Outcome::NotStarted(_)));
        made(&outcomes[0]);
        made(&outcomes[1]);
        let why =
            "pace: 0.01 creates a second are allowed, and more are waiting than may start in time";
        assert_eq!(not_started(&outcomes[2], NotStartedCause::Guard), why);
        play.scale(1, 2);
        let made = play.puppet.said("create");
        assert!(matches!(play.delete(&made[0]), Outcome::Done(_)));
        play.puppet.obey("stop");
        let waiting = play.outcomes(1).remove(0);
        not_started(&waiting, NotStartedCause::NotEnforcing);
        let puppet = play.stop();
        assert_eq!(puppet.said("create").len(), 2);
    });
}

#[test]
fn mode_that_is_not_specified_means_enforce() {
    in_each_language(|language| {
        for (mode, is_enforced) in [(0, true), (1, true), (2, false), (3, false)] {
            let mut play = Play::start(language, Limits { mode, ..LIMITS }, 1);
            let outcome = play.create_one("set-bbbbb");
            if is_enforced {
                made(&outcome);
            } else {
                not_started(&outcome, NotStartedCause::NotEnforcing);
            }
        }
    });
}

//! What the agents in Python promise, with threads and with asyncio: lists that lag, fail or forget, calls of any kind, and causes in the log.

use decree_api::v1::{Pod, PodPhase, ReadyCondition, ReplicaSet, event, outcome::Outcome};
use tests::tools;

use crate::{
    play::{Play, made, set_command},
    puppet::{LIMITS, Language, Limits, Puppet, pod, replica_set, word},
    world,
};

const AGENTS: [Language; 2] = [Language::Python, Language::AsyncPython];

/// The mode of an agent of a later version.
const UNKNOWN_MODE: i32 = 9;

fn in_python(test: impl Fn(Language)) {
    if tools::python_client().is_some() {
        AGENTS.into_iter().for_each(test);
    }
}

fn list(puppet: &mut Puppet, pods: &[Pod]) -> String {
    puppet.obey("mark");
    let words: Vec<_> = pods.iter().map(word).collect();
    puppet.tell(&format!("sync-pods {}", words.join(" ")))
}

/// Returns pods as their lists show them.
fn listed(names: &[String]) -> Vec<Pod> {
    let running = |name: &String| Pod {
        phase: PodPhase::Running.into(),
        ready: Some(ReadyCondition {
            ready: true,
            last_transition_time: None,
        }),
        ..pod(name, "made")
    };
    names.iter().map(running).collect()
}

/// The names of five pods.
fn five() -> [String; 5] {
    ["b", "c", "d", "f", "g"].map(|letter| format!("set-{}", letter.repeat(5)))
}

/// Waits until the server has made the same number of pods, after the agent has told it everything before.
fn scale_and_wait(puppet: &mut Puppet, server: &str, replicas: u32) {
    let set = ReplicaSet {
        generation: i64::from(replicas),
        ..replica_set(i32::try_from(replicas).expect("it is small"))
    };
    puppet.obey(&set_command(&set));
    world::wait_until_converged(server, replicas);
}

/// Starts an agent, and has it create three pods. Returns their names.
fn with_three(language: Language, server: &str) -> (Puppet, Vec<String>) {
    let mut puppet = Puppet::start(language, server, LIMITS);
    puppet.obey("run");
    scale_and_wait(&mut puppet, server, 3);
    let names = puppet.wait_for("create", 3);
    (puppet, names)
}

#[test]
fn list_that_lags_makes_no_pod_and_deletes_none() {
    in_python(|language| {
        let server = world::server("127.0.0.1:0");
        let address = server.address("grpc");
        let (mut puppet, names) = with_three(language, &address);
        for known in [0, 0, 3] {
            assert_eq!(
                list(&mut puppet, &listed(&names[..known])),
                "ok sync-pods",
                "a list that lags is no error"
            );
            assert_eq!(puppet.pods().split(' ').count(), 3);
        }
        scale_and_wait(&mut puppet, &address, 4);
        assert_eq!(puppet.said("create").len(), 4);
        assert_eq!(puppet.said("delete"), [""; 0]);
        // Once a list has shown a pod, the next list without it means that the pod is gone.
        list(&mut puppet, &listed(&names[..2]));
        assert!(!puppet.pods().contains(&names[2]));
        let newest = &puppet.said("create")[3];
        assert!(puppet.pods().contains(newest.as_str()));
        puppet.obey(&format!("remove-pod {newest}"));
        assert!(!puppet.pods().contains(newest.as_str()));
        list(&mut puppet, &listed(std::slice::from_ref(newest)));
        assert!(
            !puppet.pods().contains(newest.as_str()),
            "a list that lags brings back no pod that was removed"
        );
    });
}

#[test]
fn list_that_lags_brings_back_no_pod_that_was_deleted() {
    in_python(|language| {
        let mut play = Play::start(language, LIMITS, 0);
        let names = ["set-bbbbb", "set-ccccc"].map(str::to_owned);
        list(&mut play.puppet, &listed(&names));
        assert!(matches!(play.delete(&names[0]), Outcome::Done(_)));
        list(&mut play.puppet, &listed(&names));
        assert_eq!(play.puppet.pods(), "set-ccccc@made");
    });
}

#[test]
fn nothing_is_listed_before_the_first_list_of_the_controller() {
    in_python(|language| {
        let mut play = Play::before_the_first_list(language, 5);
        let mut without_uid = pod("set-fffff", "made");
        without_uid.uid.clear();
        assert!(list(&mut play.puppet, &[without_uid]).starts_with("refused"));
        list(&mut play.puppet, &listed(&five()));
        assert_eq!(play.server.listed_pods(&mut play.session), 5);
    });
}

#[test]
fn list_that_forgets_labels_and_owner_makes_no_pod_and_wrong_labels_are_an_error() {
    in_python(|language| {
        let server = world::server("127.0.0.1:0");
        let address = server.address("grpc");
        let (mut puppet, names) = with_three(language, &address);
        let mut forgetful = listed(&names);
        for pod in &mut forgetful {
            pod.labels.clear();
            pod.controller = None;
            pod.node_name = "moved".into();
        }
        assert_eq!(list(&mut puppet, &forgetful), "ok sync-pods");
        puppet.obey(&format!("apply-pod {}", word(&forgetful[0])));
        let mut wrong = listed(&names);
        wrong[1].labels.insert("app".into(), "y".into());
        let why = format!(
            "refused pod local/{}: labels: the selector of ReplicaSet local/set does not match them: app must be \"x\"",
            names[1]
        );
        assert_eq!(list(&mut puppet, &wrong), why);
        let apply = format!("apply-pod {}", word(&wrong[1]));
        assert_eq!(puppet.tell(&apply), why);
        let moved = puppet.pods();
        assert!(moved.contains(&format!("{}@moved", names[1])), "{moved}");
        scale_and_wait(&mut puppet, &address, 4);
        assert_eq!(puppet.said("create").len(), 4);
        assert_eq!(puppet.said("delete"), [""; 0]);
    });
}

/// The labels of pods of an earlier process are not known: a list without them is an error, and the server decides nothing.
#[test]
fn first_list_that_forgets_labels_is_an_error() {
    in_python(|language| {
        let mut play = Play::before_the_first_list(language, 1);
        let mut without_labels = pod("set-bbbbb", "made");
        without_labels.labels.clear();
        let mut without_owner = without_labels.clone();
        without_owner.controller = None;
        for wrong in [without_labels, without_owner] {
            let why = list(&mut play.puppet, &[wrong]);
            let named = why.starts_with("refused pod local/set-bbbbb: labels: ");
            assert!(named && why.ends_with("app must be \"x\""), "{why}");
        }
        list(&mut play.puppet, &listed(&["set-bbbbb".to_owned()]));
        assert_eq!(play.server.listed_pods(&mut play.session), 1);
    });
}

#[test]
fn on_synced_follows_the_lists_of_each_session() {
    in_python(|language| {
        let mut play = Play::before_the_first_list(language, 5);
        play.puppet.obey("synced throw");
        list(&mut play.puppet, &listed(&five()));
        assert_eq!(play.puppet.wait_for("synced", 1), ["5"]);
        let failed = play.puppet.wait_for("log on_synced failed:", 1);
        assert_eq!(failed, ["boom"]);
        play.session.drain();
        let play = play.next_session();
        assert_eq!(play.puppet.wait_for("synced", 2), ["5"; 2]);
    });
}

#[test]
fn delete_that_takes_long_holds_up_no_create() {
    in_python(|language| {
        let mut play = Play::start(language, LIMITS, 1);
        play.puppet
            .obey(&format!("apply-pod {}", word(&pod("set-bbbbb", "made"))));
        play.event();
        play.scale(0, 2);
        play.event();
        play.puppet.obey("delete begin");
        let outcome = play.delete("set-bbbbb");
        assert!(made(&outcome).deletion_timestamp.is_some(), "{outcome:?}");
        play.scale(1, 3);
        play.event();
        // The pod is still there, and its delete is over.
        made(&play.create_one("set-ccccc"));
        assert_eq!(play.puppet.pods(), "set-bbbbb@made set-ccccc@made");
        // Whatever its source says, it is still being deleted.
        play.puppet
            .obey(&format!("apply-pod {}", word(&pod("set-bbbbb", "other"))));
        let event::Event::PodApplied(pod) = play.event() else {
            panic!("a pod")
        };
        assert!(pod.deletion_timestamp.is_some(), "{pod:?}");
        play.puppet.obey("remove-pod set-bbbbb");
        assert!(matches!(play.event(), event::Event::Deleted(_)));
    });
}

#[test]
fn cause_that_ends_sessions_is_one_warning() {
    in_python(|language| {
        let mut puppet = Puppet::start(language, "127.0.0.1:1", LIMITS);
        puppet.obey("begin");
        let warned = puppet.wait_for("warned", 1);
        let line = "session ended: UNAVAILABLE: the server cannot be reached: ";
        assert!(warned[0].starts_with(line), "{warned:?}");
        puppet.wait_for("log session ended: UNAVAILABLE", 2);
        assert_eq!(puppet.said("warned").len(), 1);
        puppet.obey("stop");
        puppet.wait_for("stopped", 1);
    });
}

#[test]
fn run_raises_what_no_retry_changes_and_runs_once() {
    in_python(|language| {
        let server = world::server("127.0.0.1:0");
        let limits = Limits {
            mode: UNKNOWN_MODE,
            ..LIMITS
        };
        let mut puppet = Puppet::start(language, &server.address("grpc"), limits);
        puppet.obey("begin");
        let raised = puppet.wait_for("raised", 1);
        let kind = "RefusedError CAPABILITY_UNSUPPORTED: ";
        assert!(raised[0].starts_with(kind), "{raised:?}");
        let mut play = Play::start(language, LIMITS, 1);
        play.puppet.obey("begin");
        let raised = play.puppet.wait_for("raised", 1);
        assert_eq!(raised, ["RuntimeError this agent is running already"]);
        made(&play.create_one("set-bbbbb"));
    });
}

//! A ReplicaSet whose pods would not belong to it, and a pod that would not count, are not created again endlessly.

use decree_api::v1::{FailureClass, LabelSelector, LabelSelectorRequirement, Pod, ReplicaSet};

use crate::{
    play::{Play, failed, made, set_command},
    puppet::{LIMITS, Puppet, in_each_language, pod, replica_set, word},
    world,
};

/// The number of tries of a create. Each wait is twice as long as the one before.
const TRIES: usize = 4;

#[test]
fn replica_set_that_no_api_server_would_admit_is_refused() {
    let with = |change: fn(&mut ReplicaSet)| {
        let mut set = replica_set(3);
        change(&mut set);
        set
    };
    let expression = |operator: &str, values: &[&str]| {
        let mut set = replica_set(3);
        let selector = set.selector.get_or_insert_default();
        selector.match_expressions.push(LabelSelectorRequirement {
            key: "tier".into(),
            operator: operator.into(),
            values: values.iter().map(|&value| value.into()).collect(),
        });
        set
    };
    let empty = "selector: it has no requirement";
    let [app, tier_in, tier_not_in, tier_absent] = [
        "app must be \"x\"",
        "tier In",
        "tier NotIn",
        "tier DoesNotExist",
    ]
    .map(|why| format!("template_labels: the selector does not match them: {why}"));
    let [operator, few, many] = [
        "operator: it is \"in\", and none of In, NotIn, Exists, DoesNotExist",
        "values: In needs at least one",
        "values: Exists takes none",
    ]
    .map(|why| format!("selector.match_expressions[0].{why}"));
    let refused: [(ReplicaSet, &str); 10] = [
        (with(|set| set.selector = None), empty),
        (
            with(|set| set.selector = Some(LabelSelector::default())),
            empty,
        ),
        (with(|set| set.template_labels.clear()), &app),
        (
            with(|set| drop(set.template_labels.insert("app".into(), "X".into()))),
            &app,
        ),
        (expression("In", &["db", "job"]), &tier_in),
        (expression("NotIn", &["web"]), &tier_not_in),
        (expression("DoesNotExist", &[]), &tier_absent),
        (expression("in", &["web"]), &operator),
        (expression("In", &[]), &few),
        (expression("Exists", &["web"]), &many),
    ];
    let admitted = [
        replica_set(3),
        expression("In", &["db", "web"]),
        expression("NotIn", &["db"]),
        expression("Exists", &[]),
    ];
    in_each_language(|language| {
        let mut puppet = Puppet::start(language, "127.0.0.1:1", LIMITS);
        for set in &admitted {
            puppet.obey(&set_command(set));
        }
        for (set, why) in &refused {
            let why = format!("ReplicaSet local/set: {why}");
            assert_eq!(puppet.refuse(&set_command(set)), why);
            let list = format!("sync-replica-sets {}", word(set));
            assert_eq!(puppet.refuse(&list), why);
        }
    });
}

/// Without the refusal, the server would create pods endlessly: twelve thousand in five seconds.
#[test]
fn replica_set_that_was_refused_is_not_told_to_the_server() {
    let mut orphaning = replica_set(3);
    orphaning.template_labels.clear();
    let mut selecting_all = replica_set(3);
    selecting_all.selector = None;
    in_each_language(|language| {
        let server = world::server("127.0.0.1:0");
        let mut puppet = Puppet::start(language, &server.address("grpc"), LIMITS);
        puppet.refuse(&set_command(&orphaning));
        puppet.refuse(&set_command(&selecting_all));
        puppet.obey("run");
        let mut sound = replica_set(2);
        (sound.name, sound.uid) = ("other".into(), "other".into());
        puppet.obey(&set_command(&sound));
        world::wait_until_converged(&server.address("grpc"), 2);
        let created = puppet.said("create");
        assert_eq!(created.len(), 2, "{created:?}");
    });
}

type Change = fn(&mut Pod);

/// Changes by which a pod does not count for its ReplicaSet, each with the reason.
const WRONG: [(Change, &str); 10] = [
    (|pod| pod.uid.clear(), UID),
    (|pod| pod.uid = "ä".into(), UID),
    (|pod| pod.uid = "u".repeat(129), UID),
    (
        |pod| pod.uid = "set-zzzzz".into(),
        "uid: it is that of the pod set-zzzzz",
    ),
    (
        |pod| pod.name = "other".into(),
        "name: it is \"other\" where \"set-bbbbb\" was asked for",
    ),
    (
        |pod| pod.namespace = "other".into(),
        "namespace: it is \"other\" where \"local\" was asked for",
    ),
    (
        |pod| pod.controller.get_or_insert_default().uid = "other".into(),
        "controller.uid: it is \"other\", and that of the ReplicaSet is \"set-uid\"",
    ),
    (
        |pod| drop(pod.labels.remove("tier")),
        "labels: tier must be \"web\", as in the template",
    ),
    (
        |pod| drop(pod.labels.insert("app".into(), "y".into())),
        "labels: app must be \"x\", as in the template",
    ),
    (
        |pod| drop(pod.labels.insert("job".into(), "1".into())),
        "labels: the selector does not match them: job DoesNotExist",
    ),
];
const UID: &str = "uid: it is not 1 to 128 printable ASCII characters";

#[test]
fn pod_that_was_created_counts_only_if_it_is_right() {
    let mut set = replica_set(9);
    let selector = set.selector.as_mut().expect("it has one");
    selector.match_expressions.push(LabelSelectorRequirement {
        key: "job".into(),
        operator: "DoesNotExist".into(),
        values: Vec::new(),
    });
    in_each_language(|language| {
        let mut play = Play::start(language, LIMITS, 9);
        play.puppet.obey(&set_command(&set));
        play.puppet
            .obey(&format!("apply-pod {}", word(&pod("set-zzzzz", "there"))));
        for (count, (change, why)) in WRONG.iter().enumerate() {
            let mut pod = pod("set-bbbbb", "made");
            change(&mut pod);
            play.puppet.obey(&format!("create pod {}", word(&pod)));
            let outcome = play.create_one("set-bbbbb");
            assert_eq!(failed(&outcome, FailureClass::Invalid), *why);
            let logged = play.puppet.wait_for("log", count + 1);
            let line = format!("create of local/set-bbbbb returned what cannot count: {why}");
            assert_eq!(logged[count..], [line]);
        }
        play.puppet.obey("create nothing");
        let outcome = play.create_one("set-bbbbb");
        let why = failed(&outcome, FailureClass::Invalid);
        assert_eq!(why, "create returned no pod");
        assert_eq!(play.puppet.pods(), "set-zzzzz@there");
        play.puppet.obey("create make");
        let outcome = play.create_one("set-bbbbb");
        let pod = made(&outcome);
        assert_eq!(
            pod.labels, set.template_labels,
            "what is empty is filled in"
        );
        assert_eq!((&*pod.namespace, &*pod.name), ("local", "set-bbbbb"));
    });
}

/// Without the check, the server creates each of these again under a new name, thousands of times a second.
#[test]
fn pod_that_cannot_count_is_tried_again_ever_less_often_under_one_name() {
    let mut without_uid = pod("", "made");
    without_uid.uid.clear();
    let mut without_labels = pod("", "made");
    without_labels.uid = "same".into();
    without_labels.labels = [("made-by".into(), "hand".into())].into();
    in_each_language(|language| {
        for what in [
            format!("create pod {}", word(&without_uid)),
            format!("create pod {}", word(&without_labels)),
            "create nothing".to_owned(),
            "create throw".to_owned(),
        ] {
            let server = world::server("127.0.0.1:0");
            let mut puppet = Puppet::start(language, &server.address("grpc"), LIMITS);
            puppet.obey(&what);
            puppet.obey(&set_command(&replica_set(3)));
            puppet.obey("run");
            let mut names = puppet.wait_for("create", TRIES);
            names.truncate(TRIES);
            names.dedup();
            assert_eq!(names.len(), 1, "{what}: {names:?}");
            let failures = puppet.wait_for("log create of", TRIES - 1);
            assert!(
                failures[0].starts_with(&format!("local/{}", names[0])),
                "{failures:?}"
            );
        }
    });
}

//! Annotations of preferences, and the policy.

use super::*;

#[test]
fn advice_follows_the_order_of_deletion_alone_and_a_withdrawal_nothing() {
    let annotations = [
        ("create", "after-termination"),
        ("scale-in", "oldest-stays"),
        ("scale-in-cost", "http://:8080/busy"),
    ];
    for (withdraw, rules) in [(false, 1), (true, 0)] {
        let defaults = [
            "*:scale-in=consolidate",
            "*:keep-ended=5",
            "*:scale-in-cost=http://:1/",
        ];
        let defaults = defaults.map(|it| it.parse().expect("a default"));
        let policy = PreferencePolicy::new(Preference::ALL.into(), &defaults);
        let mut policy = policy.for_advice(withdraw);
        policy.cost_sources = [CostKind::Http].into();
        for mut set in [read(&annotations), read(&[])] {
            policy.apply(&mut set, None);
            let preferences = set.preferences.unwrap_or_default();
            let followed = (preferences.scale_in.len(), preferences.keep_ended);
            assert_eq!(followed, (rules, None));
            assert_eq!(preferences.scale_in_cost.is_none(), withdraw);
            assert!(!preferences.create_after_termination);
        }
    }
}

fn read(annotations: &[(&str, &str)]) -> v1::ReplicaSet {
    let texts = annotations
        .iter()
        .map(|(key, value)| (format!("decree.dev/{key}"), (*value).to_owned()));
    let (preferences, ignored_annotations) = take(&mut texts.collect());
    v1::ReplicaSet {
        namespace: "shop".to_owned(),
        preferences,
        ignored_annotations,
        ..v1::ReplicaSet::default()
    }
}

#[test]
fn annotations_are_read() {
    let none = read(&[]);
    assert_eq!(
        (none.preferences, none.ignored_annotations.len()),
        (None, 0)
    );
    let of = |rule: v1::ScaleInRule, key: &str, value: &str| v1::ScaleInPreference {
        rule: rule.into(),
        label_key: key.to_owned(),
        label_value: value.to_owned(),
    };
    let all = read(&[
        ("create", "after-termination"),
        ("keep-ended", " 5 "),
        (
            "scale-in",
            "first=app.state=idle, consolidate,oldest-stays, leaving-node, spread=topology.kubernetes.io/zone",
        ),
        ("surge-on-eviction", "25%"),
        ("scale-in-cost", "http://:8080/busy?of=x,y ,wait"),
    ]);
    let expected = v1::Preferences {
        create_after_termination: true,
        keep_ended: Some(5),
        scale_in: vec![
            of(v1::ScaleInRule::First, "app.state", "idle"),
            of(v1::ScaleInRule::EmptiestNode, "", ""),
            of(v1::ScaleInRule::Youngest, "", ""),
            of(v1::ScaleInRule::LeavingNode, "", ""),
            of(v1::ScaleInRule::Spread, "topology.kubernetes.io/zone", ""),
        ],
        surge: None,
        surge_percent: Some(25),
        scale_in_cost: Some(v1::ScaleInCost {
            source: "http://:8080/busy?of=x,y".to_owned(),
            on_silence: v1::OnSilence::Wait.into(),
        }),
    };
    assert_eq!(all.preferences, Some(expected.clone()));
    let words = "create: after-termination; keep-ended: 5; scale-in: first=app.state=idle, consolidate, oldest-stays, leaving-node, \
                 spread=topology.kubernetes.io/zone; scale-in-cost: http://:8080/busy?of=x,y, wait; surge-on-eviction: 25%";
    assert_eq!(super::words(&expected), words);
}

/// Annotations, and why each is ignored.
const WRONG: &str = r#"
scale-in-cost=LONG => longer than 256 bytes
create=after-terminaton => "after-terminaton" is none of: after-termination, kubernetes
keep-ended=-1 => "-1" is not a number of pods from 0 to 65535, nor kubernetes
scale-in=consolidate,oldest => "oldest" is none of: first=KEY=VALUE, spread=KEY, leaving-node, consolidate, oldest-stays, kubernetes
scale-in=spread=a,spread=b => more than one spread=KEY
surge-on-eviction=101% => "101%" is not true, a number of pods from 0 to 65535, a percentage up to 100%, nor kubernetes
scale-in=first=idle => "first=idle" is none of: first=KEY=VALUE, spread=KEY, leaving-node, consolidate, oldest-stays, kubernetes
scale-in=first=app.state=idle; consolidate => "first=app.state=idle; consolidate" has no valid label
scale-in=spread=zone/ => "spread=zone/" has no valid label
scale-in=MANY => more than 8 rules"#;

#[test]
fn wrong_word_of_an_annotation_is_named() {
    let long = format!("http://:80/{}", "x".repeat(256));
    let many = ["consolidate"; 9].join(",");
    for row in WRONG.lines().skip(1) {
        let (annotation, why) = row.split_once(" => ").expect("two columns");
        let (key, value) = annotation.split_once('=').expect("a value");
        let value = value.replace("LONG", &long).replace("MANY", &many);
        let set = read(&[(key, &value)]);
        assert_eq!(set.preferences, Some(v1::Preferences::default()));
        assert_eq!(
            set.ignored_annotations,
            [format!("decree.dev/{key}: {why}")]
        );
    }
    let long = read(&[("create", &"ä".repeat(1_000))]);
    assert!(long.ignored_annotations[0].len() <= 256);
}

#[test]
fn surge_is_all_a_number_a_percentage_or_none() {
    for (value, surge, surge_percent) in [
        ("true", None, Some(100)),
        ("2", Some(2), None),
        ("0%", None, Some(0)),
        ("kubernetes", None, None),
    ] {
        let read = read(&[("surge-on-eviction", value)]);
        let preferences = read.preferences.expect("it is read");
        assert_eq!(
            (preferences.surge, preferences.surge_percent),
            (surge, surge_percent),
            "{value}"
        );
        assert_eq!(read.ignored_annotations, [""; 0]);
    }
}

/// Annotations, and why each is ignored without nodes and with nodes; empty where it is followed.
const NEED_NODES: &str = "
keep-ended=1 | |
scale-in=consolidate | |
surge-on-eviction=true | decree.dev/surge-on-eviction: needs nodes; start the agent with --nodes |
scale-in=leaving-node | decree.dev/scale-in: leaving-node needs nodes; start the agent with --nodes |
scale-in=spread=topology.kubernetes.io/zone | decree.dev/scale-in: spread=topology.kubernetes.io/zone needs nodes; start the agent with --nodes |
scale-in=spread=rack | decree.dev/scale-in: spread=rack needs nodes; start the agent with --nodes | decree.dev/scale-in: spread=rack needs that label of nodes; start the agent with --node-label rack";

#[test]
fn preferences_that_need_nodes_are_ignored_without_them() {
    let fields = NodeFields::default();
    let applied = |annotation, value, nodes| {
        let mut set = read(&[(annotation, value)]);
        PreferencePolicy::default().apply(&mut set, nodes);
        let is_followed = set.preferences != Some(v1::Preferences::default());
        assert_eq!(is_followed, set.ignored_annotations.is_empty());
        set.ignored_annotations.pop().unwrap_or_default()
    };
    for row in NEED_NODES.lines().skip(1) {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let [annotation, without, with] = columns[..] else {
            panic!("{row}")
        };
        let (key, value) = annotation.split_once('=').expect("a value");
        assert_eq!(applied(key, value, None), without);
        assert_eq!(applied(key, value, Some(&fields)), with);
    }
    let default = "*:surge-on-eviction=1".parse().expect("a default");
    let mut set = read(&[]);
    PreferencePolicy::new(Preference::ALL.into(), &[default]).apply(&mut set, None);
    assert_eq!(set.preferences, Some(v1::Preferences::default()));
    assert_eq!(
        set.ignored_annotations.len(),
        1,
        "a default needs them, too"
    );
}

#[test]
fn policy_allows_annotations_and_sets_defaults() {
    let defaults = ["*:keep-ended=9", "shop:create=after-termination"];
    let defaults = defaults.map(|text| text.parse().expect("a default"));
    let policy = PreferencePolicy::new([Preference::KeepEnded].into(), &defaults);
    let applied = |policy: &PreferencePolicy, mut set: v1::ReplicaSet| {
        policy.apply(&mut set, None);
        (set.preferences.expect("some"), set.ignored_annotations)
    };
    let after_termination = v1::Preferences {
        create_after_termination: true,
        ..v1::Preferences::default()
    };
    let keeps = |count| v1::Preferences {
        keep_ended: Some(count),
        ..v1::Preferences::default()
    };
    assert_eq!(applied(&policy, read(&[])), (after_termination, vec![]));
    let elsewhere = v1::ReplicaSet {
        namespace: "lab".to_owned(),
        ..read(&[])
    };
    assert_eq!(applied(&policy, elsewhere), (keeps(9), vec![]));
    // A ReplicaSet that has an annotation has no default.
    let as_upstream = read(&[("create", "kubernetes")]);
    let none = v1::Preferences::default();
    assert_eq!(applied(&policy, as_upstream), (none, vec![]));
    let both = read(&[("create", "after-termination"), ("keep-ended", "1")]);
    let refused = "decree.dev/create: the agent does not allow it".to_owned();
    assert_eq!(applied(&policy, both.clone()), (keeps(1), vec![refused]));
    let (nothing, _) = applied(&PreferencePolicy::new(BTreeSet::new(), &[]), both);
    assert_eq!(nothing, v1::Preferences::default());
}

#[test]
fn source_of_costs_is_a_port_and_a_path_of_the_pod_itself() {
    for source in [
        "https://:80/",
        "http://:0/",
        "http://:+80/",
        "http://:80",
        "http://:65536/",
        "http://10.0.0.1:80/busy",
        "http://:80@host/busy",
        "http://user@:80/busy",
        "http://:80/bu sy",
        "http://:80/busy#x",
        "http://:80/büsy",
        "http://:80/busy\r\nHost: x",
        "http://:80/busy, wate",
        "metric:",
        "metric:..",
        "metric:busy/jobs",
        "metric:busy?x",
        "grpc://ranker:80",
        "http://:80/busy, wait, wait",
        "",
    ] {
        let why = &read(&[("scale-in-cost", source)]).ignored_annotations;
        assert!(
            why.len() == 1 && why[0].contains("is none of: http://:PORT/PATH, metric:NAME, grpc"),
            "{source}: {why:?}"
        );
    }
}

#[test]
fn costs_are_asked_only_if_the_operator_allows_it() {
    let asks = read(&[("scale-in-cost", "http://:8080/busy")]);
    let mut off = asks.clone();
    PreferencePolicy::default().apply(&mut off, None);
    assert_eq!(off.preferences, Some(v1::Preferences::default()));
    let why = "decree.dev/scale-in-cost: the agent runs without --scale-in-costs http";
    assert_eq!(off.ignored_annotations, [why]);
    let default: DefaultPreference = "*:scale-in-cost=http://:8080/busy"
        .parse()
        .expect("a default");
    let policy = |asks: bool| PreferencePolicy {
        cost_sources: asks.then_some(CostKind::Http).into_iter().collect(),
        ..PreferencePolicy::new(Preference::ALL.into(), std::slice::from_ref(&default))
    };
    for set in [asks.clone(), read(&[])] {
        let (mut on, mut off) = (set.clone(), set);
        policy(true).apply(&mut on, None);
        policy(false).apply(&mut off, None);
        assert_eq!(on.preferences, asks.preferences);
        assert_eq!(
            (off.preferences, off.ignored_annotations.len()),
            (Some(v1::Preferences::default()), 1)
        );
    }
}

#[test]
fn values_of_flags_are_checked() {
    for (text, why) in [
        ("shop", "\"shop\" is not NAMESPACE:NAME=VALUE"),
        (
            "shop:creates=x",
            "\"creates\" is none of: create, keep-ended, scale-in, scale-in-cost, surge-on-eviction",
        ),
        (
            "shop:create=x",
            "\"x\" is none of: after-termination, kubernetes",
        ),
    ] {
        assert_eq!(text.parse::<DefaultPreference>(), Err(why.to_owned()));
    }
}

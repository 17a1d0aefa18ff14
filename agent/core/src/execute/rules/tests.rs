//! Operations that the rules refuse, and operations that they allow.

use expect_test::expect_file;

use super::*;
use crate::tests::{
    RS, deleting, node_events, owner, play, pod, pod_of, pod_ref, replica_set, view,
};

/// default/web with this many desired pods.
fn wanting(replicas: i32) -> v1::ReplicaSet {
    v1::ReplicaSet {
        replicas: Some(replicas),
        ..replica_set(10, 1).projected
    }
}

/// Plays a statement. Returns the rule that refuses its operation, `ok`, or that the pod is absent.
fn act(view: &mut View, statement: &str) -> Option<String> {
    let words: Vec<_> = statement.split_whitespace().collect();
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let mut set = wanting(word(2).parse().unwrap_or(1));
    let preferences = set.preferences.get_or_insert_default();
    preferences.create_after_termination = word(3) == "after-termination";
    if let Some(surge) = word(3).strip_prefix("surge=") {
        match surge.strip_suffix('%') {
            Some(percent) => preferences.surge_percent = percent.parse().ok(),
            None => preferences.surge = surge.parse().ok(),
        }
    }
    preferences.keep_ended = word(3)
        .strip_prefix("keep-ended=")
        .map(|it| it.parse().expect("a number"));
    let (namespace, name) = word(1)
        .split_once('/')
        .unwrap_or_else(|| ("default", word(1)));
    let pod = v1::ObjectRef {
        namespace: namespace.into(),
        ..pod_ref(name)
    };
    let is_there = |adopts| check_ownership(view, &owner(), &pod, adopts);
    let claimed = |adopts| {
        let is_there = is_there(adopts)?;
        check_claimed(view, &set, &pod, adopts).map(|()| is_there)
    };
    let checked = match word(0) {
        "pods" => {
            words[1..]
                .iter()
                .for_each(|it| view.pods.apply(&pod_of(it)));
            return None;
        }
        "nodes" => {
            view.pods.nodes.get_or_insert_default();
            view.pods.apply_nodes(node_events(&words[1..]));
            return None;
        }
        "begin-create" => {
            view.pods.begin_create(RS, name);
            return None;
        }
        "begin-delete" => {
            view.pods.begin_delete(RS, &pod.uid);
            return None;
        }
        "create" => {
            let create = v1::Create {
                generate_name: "web-".into(),
                ..v1::Create::default()
            };
            check_create(view, &set, &create, name).map(|()| true)
        }
        "delete" => is_there(false).and_then(|it| check_delete(view, &set, &pod).map(|()| it)),
        "adopt" => claimed(true),
        "release" => claimed(false),
        other => panic!("{other} is no statement"),
    };
    let told = match &checked {
        Ok(true) => "ok",
        Ok(false) => "absent",
        Err(refusal) => refusal.rule.map_or("", Rule::as_str),
    };
    Some(told.to_owned())
}

/// `create` and `delete` name a pod, how many are desired, and a preference.
#[test]
fn operations_are_allowed_as_in_the_table() {
    play(&expect_file!["tests/rules.txt"], || view(&[]), act);
}

/// The cluster would answer that no pod has the name, and the agent would take the pod of the UID for gone.
#[test]
fn uid_of_a_pod_with_the_name_of_another_or_of_none_is_refused() {
    let view = view(&["a", "b:orphan", "c:orphan,elsewhere"].map(pod_of));
    let check = |name: &str, of: &str, adopts| {
        let pod = v1::ObjectRef {
            uid: format!("uid-{of}"),
            ..pod_ref(name)
        };
        let checked = check_ownership(&view, &owner(), &pod, adopts);
        checked.map_err(|refusal| refusal.rule)
    };
    for (name, of, adopts, expected) in [
        ("a", "a", false, Ok(true)),
        ("x", "a", false, Err(Some(Rule::Ownership))),
        ("b", "b", true, Ok(true)),
        ("a", "b", true, Err(Some(Rule::Ownership))),
        ("c", "c", true, Err(Some(Rule::Ownership))),
        ("a", "x", false, Ok(false)),
    ] {
        assert_eq!(check(name, of, adopts), expected, "{name} of {of}");
    }
}

#[test]
fn pod_has_the_name_of_its_replica_set_and_five_letters() {
    let named = |set: &str, generate: &str, name: &str| is_pod_name(set, generate, name);
    assert!(named("web", "web-", "web-x2k9z"));
    assert!(
        named("web", "web", "webx2k9z"),
        "where a dash may not end it"
    );
    for name in [
        "web-x2k9",
        "web-x2k9zz",
        "web-x2k9a",
        "web-X2k9z",
        "api-x2k9z",
        "web-",
        "",
    ] {
        assert!(!named("web", "web-", name), "{name:?}");
    }
    assert!(!named("web", "", "x2k9z"));
    assert!(!named("web", "api-", "api-x2k9z"));
    let long = "a".repeat(70);
    let (prefix, base) = (format!("{long}-"), "a".repeat(58));
    assert!(named(&long, &prefix, &format!("{base}x2k9z")));
    assert!(!named(&long, &prefix, &format!("{prefix}x2k9z")));
}

#[test]
fn selectors_select_as_the_api_server_does() {
    let expression = |operator: &str, values: &[&str]| v1::LabelSelectorRequirement {
        key: "app".into(),
        operator: operator.into(),
        values: values.iter().map(|&value| value.into()).collect(),
    };
    let by = |expression| {
        let selector = v1::LabelSelector {
            match_expressions: vec![expression],
            ..v1::LabelSelector::default()
        };
        let labelled = |labels: Labels| selects(Some(&selector), &labels);
        let web = [("app".to_owned(), "web".to_owned())].into();
        (labelled(web), labelled(Labels::new()))
    };
    assert_eq!(
        by(expression("In", &["api", "web"])),
        (Some(true), Some(false))
    );
    assert_eq!(by(expression("NotIn", &["web"])), (Some(false), Some(true)));
    assert_eq!(by(expression("Exists", &[])), (Some(true), Some(false)));
    assert_eq!(
        by(expression("DoesNotExist", &[])),
        (Some(false), Some(true))
    );
    assert_eq!(by(expression("Near", &["web"])), (None, None));
    assert_eq!(selects(None, &Labels::new()), Some(false));
    assert_eq!(
        selects(Some(&v1::LabelSelector::default()), &Labels::new()),
        Some(true)
    );
}

#[test]
fn status_says_no_more_than_has_been_seen() {
    let ready = v1::ReadyCondition {
        ready: true,
        last_transition_time: None,
    };
    let ready = v1::Pod {
        ready: Some(ready),
        ..pod("b", 2)
    };
    let mut view = view(&[pod("a", 1), ready, deleting(pod("c", 3))]);
    let good = v1::ReplicaSetStatus {
        replicas: 2,
        fully_labeled_replicas: 2,
        ready_replicas: 1,
        available_replicas: 1,
        terminating_replicas: Some(1),
        observed_generation: 1,
        conditions: Vec::new(),
    };
    let written = |view: &View, status: &v1::ReplicaSetStatus| {
        check_status(view, &wanting(3), status)
            .err()
            .and_then(|it| it.rule)
    };
    assert_eq!(written(&view, &good), None);
    assert_eq!(written(&view, &v1::ReplicaSetStatus::default()), None);
    let lies: [fn(&mut v1::ReplicaSetStatus); 7] = [
        |it| it.replicas = 3,
        |it| it.replicas = -1,
        |it| it.fully_labeled_replicas = 3,
        |it| it.ready_replicas = 2,
        |it| it.available_replicas = 2,
        |it| it.terminating_replicas = Some(2),
        |it| it.observed_generation = 2,
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let mut status = good.clone();
        lie(&mut status);
        assert_eq!(written(&view, &status), Some(Rule::Status), "lie {at}");
    }
    for uid in ["uid-a", "uid-b", "uid-c"] {
        view.pods.delete(uid);
    }
    assert_eq!(
        written(&view, &good),
        None,
        "it was so since the last status"
    );
    view.pods.reset_peak(RS);
    assert_eq!(written(&view, &good), Some(Rule::Status));
}

#[test]
fn status_changes_no_condition_of_another_and_writes_no_book() {
    let condition = |kind: &str, message: &str| v1::ReplicaSetCondition {
        r#type: kind.into(),
        status: "True".into(),
        message: message.into(),
        ..v1::ReplicaSetCondition::default()
    };
    let failure = |message: &str| condition(REPLICA_FAILURE, message);
    let mut set = wanting(3);
    let known = vec![condition("Theirs", "a"), failure("b")];
    set.status.get_or_insert_default().conditions = known;
    let written = |conditions: &[v1::ReplicaSetCondition]| check_conditions(&set, conditions);
    let theirs = || condition("Theirs", "a");
    assert_eq!(written(&[theirs(), failure("b")]), Ok(()));
    assert_eq!(written(&[theirs(), failure("quota")]), Ok(()));
    assert_eq!(written(&[theirs()]), Ok(()));
    let refused = [
        vec![failure("b")],
        vec![condition("Theirs", "c"), failure("b")],
        vec![theirs(), condition("More", "")],
        vec![theirs(), failure(&"b".repeat(CONDITION_BYTES_MAX))],
        vec![theirs(), failure("c"), failure("d")],
        vec![theirs(), failure("a\nb")],
        vec![theirs(), failure("a\u{202e}b")],
        vec![theirs(), failure("a\u{2066}b")],
    ];
    for conditions in refused {
        assert!(written(&conditions).is_err(), "{conditions:?}");
    }
}

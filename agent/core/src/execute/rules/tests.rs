//! Operations that the rules refuse, and operations that they allow.

use super::*;
use crate::tests::{RS, deleting, orphan, pod, pod_ref, replica_set, view};

/// default/web with this many desired pods.
fn wanting(replicas: i32) -> v1::ReplicaSet {
    v1::ReplicaSet {
        replicas: Some(replicas),
        ..replica_set(10, 1).projected
    }
}

fn rule(checked: Checked) -> Option<Rule> {
    checked.err().and_then(|refusal| refusal.rule)
}

fn creating(view: &View, replicas: i32, name: &str) -> Option<Rule> {
    let create = v1::Create {
        generate_name: "web-".into(),
        ..v1::Create::default()
    };
    rule(check_create(view, &wanting(replicas), &create, name))
}

fn deletion(view: &View, replicas: i32, name: &str) -> Option<Rule> {
    rule(check_delete(view, &wanting(replicas), &pod_ref(name)))
}

fn relabelled(pod: v1::Pod) -> v1::Pod {
    let labels = [("app".to_owned(), "other".to_owned())].into();
    v1::Pod { labels, ..pod }
}

#[test]
fn create_is_refused_where_there_are_as_many_pods_as_wanted() {
    let mut view = view(&[pod("a", 1), deleting(pod("b", 2))]);
    assert_eq!(creating(&view, 2, "web-bbbbb"), None, "b terminates");
    assert_eq!(creating(&view, 1, "web-bbbbb"), Some(Rule::Surplus));
    assert_eq!(creating(&view, -1, "web-bbbbb"), Some(Rule::Surplus));
    view.pods.begin_create(RS, "web-bbbbb");
    assert_eq!(creating(&view, 2, "web-bbbbb"), None, "the same again");
    assert_eq!(creating(&view, 2, "web-ccccc"), Some(Rule::Surplus));
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
fn delete_is_refused_where_no_more_pods_are_active_than_wanted() {
    let mut view = view(&[pod("a", 1), pod("b", 2), deleting(pod("c", 3))]);
    assert_eq!(deletion(&view, 1, "a"), None);
    assert_eq!(deletion(&view, 2, "a"), Some(Rule::Shortage));
    view.pods.begin_delete(RS, "uid-b");
    assert_eq!(deletion(&view, 1, "a"), Some(Rule::Shortage));
    assert_eq!(deletion(&view, 1, "b"), None, "the same again");
    assert_eq!(deletion(&view, 0, "a"), None);
}

#[test]
fn only_active_pods_that_are_selected_are_deleted() {
    let ended = v1::Pod {
        phase: v1::PodPhase::Failed.into(),
        ..pod("c", 3)
    };
    let view = view(&[
        pod("a", 1),
        deleting(pod("b", 2)),
        ended,
        relabelled(pod("d", 4)),
    ]);
    assert_eq!(deletion(&view, 0, "b"), Some(Rule::Inactive));
    assert_eq!(deletion(&view, 0, "c"), Some(Rule::Inactive));
    assert_eq!(deletion(&view, 0, "d"), Some(Rule::Selector));
}

#[test]
fn orphans_that_match_are_adopted_and_pods_that_do_not_are_released() {
    let view = view(&[
        orphan("a", 1),
        relabelled(orphan("b", 2)),
        deleting(orphan("c", 3)),
        pod("d", 4),
        relabelled(pod("e", 5)),
    ]);
    let claimed =
        |name, selected| rule(check_claimed(&view, &wanting(1), &pod_ref(name), selected));
    assert_eq!(claimed("a", true), None);
    assert_eq!(claimed("b", true), Some(Rule::Selector));
    assert_eq!(claimed("c", true), Some(Rule::Inactive));
    assert_eq!(claimed("d", false), Some(Rule::Selector));
    assert_eq!(claimed("e", false), None);
}

#[test]
fn pod_of_another_namespace_or_controller_is_left_alone() {
    let mut other = pod("b", 2);
    if let Some(controller) = &mut other.controller {
        controller.uid = "rs2".into();
    }
    let view = view(&[pod("a", 1), other, orphan("c", 3)]);
    let verdict = |pod: &v1::ObjectRef, adopts| match check_ownership(
        &view,
        &crate::tests::owner(),
        pod,
        adopts,
    ) {
        Ok(true) => "go",
        Err(_) => "refuse",
        Ok(false) => "absent",
    };
    let elsewhere = v1::ObjectRef {
        namespace: "kube-system".into(),
        ..pod_ref("a")
    };
    assert_eq!(verdict(&elsewhere, false), "refuse");
    assert_eq!(verdict(&pod_ref("a"), false), "go");
    assert_eq!(verdict(&pod_ref("b"), false), "refuse");
    assert_eq!(verdict(&pod_ref("c"), false), "refuse");
    assert_eq!(verdict(&pod_ref("a"), true), "go", "adopted already");
    assert_eq!(verdict(&pod_ref("b"), true), "refuse");
    assert_eq!(verdict(&pod_ref("c"), true), "go");
    assert_eq!(verdict(&pod_ref("d"), true), "absent");
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
        since: None,
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
    let written =
        |view: &View, status: &v1::ReplicaSetStatus| rule(check_status(view, &wanting(3), status));
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
    view.pods.delete("uid-a");
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

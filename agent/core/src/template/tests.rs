//! The pod that a template makes.

use serde_json::json;

use super::*;
use crate::{
    api::Object,
    builders::{owner, replica_set, template, with},
};

fn apply(templates: &mut Templates, object: Object) {
    let (projected, object) = object.into_replica_set().expect("a valid replica set");
    templates.apply(&projected, object);
}

fn make(template: &Value) -> Result<Value, TemplateError> {
    pod_from_template(
        &json!({"spec": {"template": template}}),
        "apps/v1",
        &owner(),
        "web-x",
        "web-",
    )
}

#[test]
fn field_of_tomorrow_reaches_the_pod() {
    let mut template = template();
    template["tomorrow"] = json!({"x": 1});
    let pod = make(&template).expect("a valid template");
    assert_eq!(
        pod["spec"]["containers"][0]["fieldOfTomorrow"],
        json!({"deep": [1, null]})
    );
    assert_eq!(pod["tomorrow"], json!({"x": 1}));
}

#[test]
fn what_is_absent_from_the_template_is_absent_from_the_pod() {
    let template = json!({"metadata": {"labels": {"a": "b"}, "annotations": null}, "spec": {}});
    let pod = make(&template).expect("a valid template");
    let metadata = pod["metadata"].as_object().expect("an object");
    assert!(!metadata.contains_key("annotations") && !metadata.contains_key("finalizers"));
}

#[test]
fn owner_is_named_by_the_group_and_version_of_its_resource() {
    let owner = owner();
    let replica_set = json!({"spec": {"template": template()}});
    let pod = pod_from_template(&replica_set, "decree.dev/v1", &owner, "web-x", "web-");
    let pod = pod.expect("a valid template");
    let reference = json!({
        "apiVersion": "decree.dev/v1", "kind": "ReplicaSet", "name": owner.name, "uid": owner.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(pod["metadata"]["ownerReferences"], json!([reference]));
    let patch = adopt_patch("decree.dev/v1", &owner, "u1");
    assert_eq!(patch["metadata"]["ownerReferences"], json!([reference]));
}

#[test]
fn template_without_labels_makes_no_pod() {
    let bare = [
        json!({}),
        json!({"metadata": {}}),
        json!({"metadata": {"labels": {}}}),
    ];
    for template in bare {
        assert_eq!(make(&template), Err(TemplateError::NoLabels));
    }
    assert_eq!(make(&Value::Null), Err(TemplateError::NoTemplate));
}

#[test]
fn template_of_an_earlier_generation_is_at_hand() {
    let mut templates = Templates::default();
    apply(&mut templates, replica_set(10, 1));
    let changed = with(&replica_set(11, 2), "/spec/template", json!({"new": true}));
    apply(&mut templates, changed);
    let template = |generation| {
        let object = templates.at_generation("rs", generation)?;
        object.pointer("/spec/template").cloned()
    };
    assert_eq!(template(1), Some(self::template()));
    assert_eq!(template(2), Some(json!({"new": true})));
    assert_eq!(template(3), None);
}

#[test]
fn only_the_latest_generations_are_kept() {
    let mut templates = Templates::default();
    for generation in 1..=6 {
        apply(
            &mut templates,
            replica_set(10 + generation, i64::try_from(generation).expect("small")),
        );
    }
    let kept: Vec<_> = (1..=6)
        .filter(|it| templates.at_generation("rs", *it).is_some())
        .collect();
    assert_eq!(kept, [3, 4, 5, 6]);
}

#[test]
fn older_state_takes_nothing_back() {
    let mut templates = Templates::default();
    apply(&mut templates, replica_set(12, 2));
    apply(&mut templates, replica_set(10, 1));
    assert_eq!(
        templates.newest("rs").map(|known| known.version.as_str()),
        Some("12")
    );
    assert!(templates.at_generation("rs", 1).is_none());
}

#[test]
fn deleted_replica_set_is_forgotten() {
    let mut templates = Templates::default();
    apply(&mut templates, replica_set(12, 2));
    templates.delete("rs");
    assert!(templates.newest("rs").is_none());
}

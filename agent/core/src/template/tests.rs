//! What is kept of ReplicaSets, and for how long.

use super::*;
use crate::builders::{owner, replica_set, template};

#[test]
fn owner_is_named_by_the_group_and_version_of_its_resource() {
    let reference = Templates::new("decree.dev/v1").controller_reference(&owner());
    let expected = v1::OwnerReference {
        api_version: "decree.dev/v1".into(),
        kind: "ReplicaSet".into(),
        name: "web".into(),
        uid: "rs".into(),
        block_owner_deletion: Some(true),
    };
    assert_eq!(reference, expected);
}

#[test]
fn template_without_labels_makes_no_pod() {
    let mut bare = replica_set(10, 1);
    bare.projected.template_labels.clear();
    let mut templates = Templates::default();
    templates.apply(&bare);
    let refused = Err(TemplateError::NoLabels);
    assert_eq!(templates.at_generation("rs", 1), Some(&refused));
    bare.projected.generation = 2;
    bare.template = None;
    templates.apply(&bare);
    let refused = Err(TemplateError::NoTemplate);
    assert_eq!(templates.at_generation("rs", 2), Some(&refused));
}

#[test]
fn template_of_an_earlier_generation_is_at_hand() {
    let mut templates = Templates::default();
    templates.apply(&replica_set(10, 1));
    let mut changed = replica_set(11, 2);
    changed.template = Some(Template::new(*b"new"));
    templates.apply(&changed);
    let template = |generation| templates.at_generation("rs", generation).cloned();
    assert_eq!(template(1), Some(Ok(self::template())));
    assert_eq!(template(2), Some(Ok(Template::new(*b"new"))));
    assert_eq!(template(3), None);
}

#[test]
fn only_the_latest_generations_are_kept() {
    let mut templates = Templates::default();
    for generation in 1..=6 {
        let number = i64::try_from(generation).expect("small");
        templates.apply(&replica_set(10 + generation, number));
    }
    let kept: Vec<_> = (1..=6)
        .filter(|it| templates.at_generation("rs", *it).is_some())
        .collect();
    assert_eq!(kept, [3, 4, 5, 6]);
}

#[test]
fn older_state_takes_nothing_back() {
    let mut templates = Templates::default();
    templates.apply(&replica_set(12, 2));
    templates.apply(&replica_set(10, 1));
    assert_eq!(
        templates
            .newest("rs")
            .map(|set| set.resource_version.as_str()),
        Some("12")
    );
    assert!(templates.at_generation("rs", 1).is_none());
}

#[test]
fn deleted_replica_set_is_forgotten() {
    let mut templates = Templates::default();
    templates.apply(&replica_set(12, 2));
    templates.delete("rs");
    assert!(templates.newest("rs").is_none());
}

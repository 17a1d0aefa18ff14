//! Annotations of preferences, and the policy.

use super::*;

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
fn annotations_are_read_or_the_wrong_word_is_named() {
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
        ("scale-in", "first=app.state=idle, consolidate,oldest-stays"),
    ]);
    let expected = v1::Preferences {
        create_after_termination: true,
        keep_ended: Some(5),
        scale_in: vec![
            of(v1::ScaleInRule::First, "app.state", "idle"),
            of(v1::ScaleInRule::EmptiestNode, "", ""),
            of(v1::ScaleInRule::Youngest, "", ""),
        ],
        ..v1::Preferences::default()
    };
    assert_eq!(all.preferences, Some(expected.clone()));
    let words = "create: after-termination; keep-ended: 5; scale-in: first=app.state=idle, consolidate, oldest-stays";
    assert_eq!(super::words(&expected), words);
    for (key, value, why) in [
        (
            "create",
            "after-terminaton",
            "\"after-terminaton\" is none of: after-termination, kubernetes",
        ),
        (
            "keep-ended",
            "-1",
            "\"-1\" is not a number of pods from 0 to 65535, nor kubernetes",
        ),
        (
            "scale-in",
            "consolidate,oldest",
            "\"oldest\" is none of: first=KEY=VALUE, consolidate, oldest-stays, kubernetes",
        ),
        (
            "scale-in",
            "first=idle",
            "\"first=idle\" is not first=KEY=VALUE of a label",
        ),
        (
            "scale-in",
            &["consolidate"; 9].join(","),
            "more than 8 rules",
        ),
    ] {
        let set = read(&[(key, value)]);
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
fn policy_allows_annotations_and_sets_defaults() {
    let defaults = ["*:keep-ended=9", "shop:create=after-termination"];
    let defaults = defaults.map(|text| text.parse().expect("a default"));
    let policy = PreferencePolicy::new([Preference::KeepEnded].into(), &defaults);
    let applied = |policy: &PreferencePolicy, mut set: v1::ReplicaSet| {
        policy.apply(&mut set);
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
fn values_of_flags_are_checked() {
    for (text, why) in [
        ("shop", "\"shop\" is not NAMESPACE:NAME=VALUE"),
        (
            "shop:creates=x",
            "\"creates\" is none of: create, keep-ended, scale-in",
        ),
        (
            "shop:create=x",
            "\"x\" is none of: after-termination, kubernetes",
        ),
    ] {
        assert_eq!(text.parse::<DefaultPreference>(), Err(why.to_owned()));
    }
}

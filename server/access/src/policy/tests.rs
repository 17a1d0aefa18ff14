//! A policy grants exactly what it says, and an invalid policy says where it is wrong.

use super::*;
use crate::method::Need;

const POLICY: &str = r#"
[[grant]]
identities = ["spiffe://example.org/agent/eu", "sub:system:serviceaccount:decree-system:agent"]
role = "agent"
clusters = ["uid-eu"]
names = ["eu"]

[[grant]]
identities = ["spiffe://example.org/agent/*"]
role = "agent"
names = ["test-*"]
shards = ["", "a"]

[[grant]]
identities = ["uid:1000"]
role = "viewer"
clusters = ["*"]

[[grant]]
identities = ["dns:ops.example.org"]
role = "admin"
"#;

const EU: NamedCluster<'_> = named("uid-eu", "eu", "");

const fn named<'a>(uid: &'a str, name: &'a str, shard: &'a str) -> NamedCluster<'a> {
    NamedCluster { uid, name, shard }
}

fn permissions(identity: Identity) -> Permissions {
    Policy::parse(POLICY).expect("valid").permissions(&identity)
}

fn error(text: &str) -> (usize, String) {
    let PolicyError { line, message } = Policy::parse(text).expect_err(text);
    (line, message)
}

#[test]
fn agent_serves_and_sees_its_clusters_and_no_others() {
    let agent = permissions(Identity::Uri("spiffe://example.org/agent/eu".into()));
    assert!(agent.may_open(EU) && agent.may_view(EU));
    let us = named("uid-us", "eu", "");
    assert!(!agent.may_open(us) && !agent.may_view(us));
    assert!(agent.may_open(named("x", "test-1", "a")));
    assert!(!agent.may_open(named("x", "test-1", "b")));
    assert!(agent.may_call(Some(Need::Agent)) && !agent.may_call(Some(Need::Admin)));
}

#[test]
fn viewer_sees_and_opens_nothing() {
    let viewer = permissions(Identity::Uid(1000));
    assert!(viewer.may_view(EU) && !viewer.may_open(EU));
    assert!(viewer.may_call(Some(Need::View)) && !viewer.may_call(Some(Need::Agent)));
}

#[test]
fn admin_sees_all_and_is_no_agent() {
    let admin = permissions(Identity::Dns("ops.example.org".into()));
    assert!(admin.may_view(EU) && !admin.may_open(EU));
    assert!(admin.may_call(Some(Need::Admin)) && !admin.may_call(Some(Need::Agent)));
    assert!(admin.may_call(None));
}

#[test]
fn identity_without_a_grant_may_nothing() {
    use Need::{Admin, Agent, AnyRole, Health, View};

    let stranger = permissions(Identity::Uri("spiffe://example.org/other".into()));
    for need in [Health, AnyRole, View, Agent, Admin] {
        assert!(!stranger.may_call(Some(need)), "{need:?}");
    }
    assert!(!stranger.may_view(EU) && !stranger.may_open(EU));
}

#[test]
fn uid_that_is_named_for_one_is_nobody_elses() {
    let policy = Policy::parse(POLICY).expect("valid");
    let eu = Identity::Uri("spiffe://example.org/agent/eu".into());
    let us = Identity::Uri("spiffe://example.org/agent/us".into());
    assert_eq!(policy.grounds(&eu, EU), [Some(Ground::Named); 2]);
    assert_eq!(policy.grounds(&us, EU), [Some(Ground::NamedForOthers); 2]);
    let grounds = |name| policy.grounds(&us, named("uid-us", name, ""));
    assert_eq!(grounds("test-us"), [None, None]);
    assert_eq!(grounds("eu"), [None, Some(Ground::NamedForOthers)]);
}

#[test]
fn grants_that_are_found_by_what_they_name_are_those_of_a_look_at_all() {
    let policy = r#"
[[grant]]
identities = ["dns:*", "dns:a", "anonymous"]
role = "agent"
clusters = ["one", "two", "one"]

[[grant]]
identities = ["dns:a", "uid:*", "sub:a", "spiffe://a/*"]
role = "agent"
clusters = ["two", "t*"]
names = ["one"]

[[grant]]
identities = ["uid:1", "spiffe://a/b", "sub:*"]
role = "viewer"
clusters = ["one"]
"#;
    let policy = Policy::parse(policy).expect("valid");
    let identities = [
        Identity::Anonymous,
        Identity::Dns("a".into()),
        Identity::Dns("b".into()),
        Identity::Subject("a".into()),
        Identity::Subject("b".into()),
        Identity::Uid(1),
        Identity::Uid(2),
        Identity::Uri("spiffe://a/b".into()),
        Identity::Uri("spiffe://b/b".into()),
    ];
    for identity in identities {
        let all = policy.grants.iter().filter(|it| it.is_for(&identity));
        let found: Vec<_> = policy.grants_of(&identity).collect();
        assert_eq!(found, all.collect::<Vec<_>>(), "{identity}");
    }
    let at = |word: &str, numbers: &[usize]| {
        let numbers: Positions = numbers.iter().copied().collect();
        (word.to_owned(), numbers)
    };
    let by_uid = [at("one", &[0]), at("two", &[0, 1])];
    assert_eq!(policy.agents_by_uid, by_uid.into());
    assert_eq!(policy.agents_by_name, [at("one", &[1])].into());
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_would_be_right() {
    let identities = "identities = [\"uid:1\"]\n";
    let no_role = "grant[0].role: \"root\" is not a role; write agent, viewer or admin";
    for (text, line, says) in [
        ("", 1, "at least one [[grant]]"),
        ("grant = 3", 1, "expected a sequence"),
        (
            "[[grants]]\n",
            1,
            "unknown field `grants`, expected `grant`",
        ),
        (
            "[[grant]]\nrole = \"admin\"\n",
            1,
            "missing field `identities`",
        ),
        ("+role = \"root\"\n", 3, no_role),
        (
            "[[grant]]\nidentities = [\n  \"uid:1\",\n  \"bob\"]\nrole = \"admin\"",
            4,
            "grant[0].identities[1]: is not an identity; write",
        ),
        (
            "+role = \"agent\"\n",
            3,
            "grant[0].role: say of which clusters",
        ),
        (
            "+role = \"admin\"\nnames = [\"x\"]\n",
            4,
            "grant[0].names: an admin's clusters are all",
        ),
        (
            "+role = \"agent\"\nclusters = []\n",
            4,
            "grant[0].clusters: is empty",
        ),
        (
            "+role = \"agent\"\nclustres = [\"x\"]\n",
            4,
            "unknown field `clustres`",
        ),
        ("[[grant]]\nidentities = [\"uid:1\"", 2, ""),
    ] {
        let begun = format!("[[grant]]\n{identities}");
        let found = error(&text.replace('+', &begun));
        assert_eq!(found.0, line, "{found:?}");
        assert!(found.1.contains(says), "{found:?}");
    }
}

#[test]
fn policy_of_the_documents_is_valid() {
    let page = include_str!("../../../../docs/access.md");
    let (_, block) = page
        .split_once("```toml test=policy_of_the_documents_is_valid\n")
        .expect("it has one");
    let (text, _) = block.split_once("```").expect("it ends");
    let policy = Policy::parse(text).expect("valid");
    let agent = Identity::Subject("system:serviceaccount:decree-system:decree-agent".to_owned());
    let uid = "6c1c1b5e-0d5f-4b52-9a39-6d9c0f6f2a11";
    let [of_uid, _] = policy.grounds(&agent, named(uid, "production", ""));
    assert_eq!(of_uid, Some(Ground::Named));
}

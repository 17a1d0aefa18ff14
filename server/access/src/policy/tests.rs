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
    assert!(agent.may_call(Some(Need::Agent)) && !agent.may_call(None));
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
    assert!(admin.may_call(None) && !admin.may_call(Some(Need::Agent)));
}

#[test]
fn identity_without_a_grant_may_nothing() {
    use Need::{Agent, AnyRole, Health, View};

    let stranger = permissions(Identity::Uri("spiffe://example.org/other".into()));
    for need in [Health, AnyRole, View, Agent] {
        assert!(!stranger.may_call(Some(need)), "{need:?}");
    }
    assert!(!stranger.may_view(EU) && !stranger.may_open(EU));
}

#[test]
fn uid_that_is_named_for_one_is_nobody_elses() {
    let policy = Policy::parse(POLICY).expect("valid");
    let eu = Identity::Uri("spiffe://example.org/agent/eu".into());
    let us = Identity::Uri("spiffe://example.org/agent/us".into());
    assert_eq!(policy.of_others(&eu, EU), [false; 2]);
    assert_eq!(policy.of_others(&us, EU), [true; 2]);
    let of_others = |uid, name| policy.of_others(&us, named(uid, name, ""));
    assert_eq!(of_others("uid-us", "test-us"), [false; 2]);
    assert_eq!(of_others("uid-us", "eu"), [false, true]);
    assert_eq!(of_others("eu", "uid-eu"), [true; 2]);
}

/// Policies, where `+` begins a grant, with the line of the error and its words.
const WRONG: &str = r#"
 => 1: at least one [[grant]]
grant = 3 => 1: expected a sequence
[[grants]]\n => 1: unknown field `grants`, expected `grant`
[[grant]]\nrole = "admin"\n => 1: missing field `identities`
+role = "root"\n => 3: unknown variant `root`, expected one of `agent`, `viewer`, `admin`
[[grant]]\nidentities = [\n  "uid:1",\n  "bob"]\nrole = "admin" => 2: is not an identity; write
+role = "agent"\n => 1: this role needs its clusters: write
+role = "viewer"\nnames = ["*"]\n+role = "admin"\nnames = ["x"]\n => 5: an admin's clusters are all: leave out
+role = "agent"\nclusters = []\n => 1: an empty list makes the grant one for nothing
+role = "agent"\nclustres = ["x"]\n => 4: unknown field `clustres`
[[grant]]\nidentities = ["uid:1" => 2:"#;

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_would_be_right() {
    for row in WRONG.lines().skip(1) {
        let (text, expected) = row.split_once(" => ").expect("two columns");
        let (line, says) = expected.split_once(':').expect("a line");
        let text = text.replace("\\n", "\n");
        let found = error(&text.replace('+', "[[grant]]\nidentities = [\"uid:1\"]\n"));
        assert_eq!(found.0.to_string(), line, "{found:?}");
        assert!(found.1.contains(says.trim_start()), "{found:?}");
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
    let cluster = named(uid, "production", "");
    assert!(policy.permissions(&agent).may_open(cluster));
    assert_eq!(policy.of_others(&agent, cluster), [false; 2]);
}

//! The permissions with and without a policy, and clusters that it names.

use super::*;

const EU: NamedCluster<'_> = cluster("uid-eu", "eu");

const fn cluster(uid: &'static str, name: &'static str) -> NamedCluster<'static> {
    let shard = "";
    NamedCluster { uid, name, shard }
}

fn uri(path: &str) -> Identity {
    Identity::Uri(format!("spiffe://example.org/{path}"))
}

fn with_policy(text: &str) -> Authority {
    Authority::new(Some(Policy::parse(text).expect("valid")), false)
}

const ANY_AGENT: &str = r#"
[[grant]]
identities = ["spiffe://example.org/*", "anonymous"]
role = "agent"
clusters = ["*"]
"#;

const NAMED: &str = r#"
[[grant]]
identities = ["spiffe://example.org/*"]
role = "agent"
clusters = ["*"]
[[grant]]
identities = ["spiffe://example.org/eu", "spiffe://example.org/eu-standby"]
role = "agent"
clusters = ["uid-eu"]
[[grant]]
identities = ["spiffe://example.org/eu"]
role = "agent"
names = ["eu"]
"#;

#[test]
fn without_a_policy_everyone_serves_any_cluster() {
    let authority = Authority::default();
    let first = authority.admit(&Identity::Uid(1), EU).expect("allowed");
    assert!(first.is_name_granted);
    for other in [uri("a"), uri("b"), Identity::Anonymous] {
        assert_eq!(authority.admit(&other, EU).as_ref(), Ok(&first));
    }
}

#[test]
fn without_a_policy_proof_can_be_required() {
    let authority = Authority::new(None, true);
    let denied = authority.admit(&Identity::Anonymous, EU);
    assert_eq!(denied, Err(Denial::CredentialRequired));
    assert!(authority.admit(&Identity::Uid(1), EU).is_ok());
    assert!(authority.admit(&uri("a"), EU).is_ok());
}

#[test]
fn cluster_that_the_policy_names_belongs_to_those_it_names() {
    let authority = with_policy(NAMED);
    let denied = authority.admit(&uri("us"), EU).expect_err("it is eu's");
    // The denial names the peer and its request, and not the owner.
    let expected = "spiffe://example.org/us may not serve cluster \"uid-eu\" as \"eu\", shard \"\"";
    assert_eq!(denied.to_string(), expected);
    let eu = authority.admit(&uri("eu"), EU).expect("named");
    assert!(authority.admit(&uri("eu-standby"), EU).is_ok());
    let again = authority.recheck(&uri("eu"), &eu);
    assert_eq!(again, Ok(authority.permissions(&uri("eu"))));
    assert!(authority.admit(&uri("us"), cluster("uid-us", "us")).is_ok());
}

#[test]
fn word_of_anothers_cluster_is_not_taken_as_uid_or_name() {
    // The possible claims of a thief: the name as UID, the UID as name, and each as what it is.
    let thefts = [
        cluster("eu", "x"),
        cluster("eu", ""),
        cluster("x", "uid-eu"),
        cluster("x", "eu"),
        cluster("uid-eu", "x"),
        cluster("eu", "uid-eu"),
    ];
    for theft in thefts {
        let is_of_owner = |word: &str| word == EU.uid || word == EU.name;
        let authority = with_policy(NAMED);
        match authority.admit(&uri("us"), theft) {
            Ok(thief) => assert!(!is_of_owner(theft.uid) && !thief.is_name_granted),
            Err(denied) => assert!(is_of_owner(theft.uid), "{theft:?} {denied}"),
        }
        let owner = authority.admit(&uri("eu"), EU).expect("named");
        assert!(owner.is_name_granted);
    }
}

#[test]
fn session_that_a_new_policy_does_not_allow_is_found() {
    let mut authority = with_policy(ANY_AGENT);
    let early = authority.admit(&uri("us"), EU).expect("first");
    authority.replace(Policy::parse(NAMED).expect("valid"));
    assert!(authority.recheck(&uri("us"), &early).is_err());
    assert!(authority.admit(&uri("eu"), EU).is_ok());
}

//! The permissions with and without a policy, and the owners of clusters.

use super::*;

const EU: NamedCluster<'_> = NamedCluster {
    uid: "uid-eu",
    name: "eu",
    shard: "",
};

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
    let mut authority = Authority::default();
    let first = authority.admit(&Identity::Uid(1), EU).expect("allowed");
    assert!(first.is_name_granted());
    assert!(authority.admit(&Identity::Uid(2), EU).is_ok());
    assert!(authority.admit(&Identity::Anonymous, EU).is_ok());
}

#[test]
fn without_a_policy_proof_can_be_required() {
    let mut authority = Authority::new(None, true);
    let denied = authority.admit(&Identity::Anonymous, EU);
    assert_eq!(denied, Err(Denial::CredentialRequired));
    assert!(authority.admit(&Identity::Uid(1), EU).is_ok());
    assert!(authority.admit(&uri("a"), EU).is_ok());
}

#[test]
fn cluster_belongs_to_the_first_who_proved_it_even_while_away() {
    for mut authority in [Authority::default(), with_policy(ANY_AGENT)] {
        let owner = authority.admit(&uri("a"), EU).expect("it is free");
        authority.release(&owner);
        let denied = authority.admit(&uri("b"), EU).expect_err("it is a's");
        assert_eq!(denied.reason(), "NOT_ALLOWED");
        assert_eq!(denied.cause(), "OTHER_OWNER");
        assert!(!denied.to_string().contains("org/a"), "{denied}");
        let anonymous = authority.admit(&Identity::Anonymous, EU);
        assert_eq!(anonymous, Err(Denial::CredentialRequired));
        assert!(authority.admit(&uri("a"), EU).is_ok());
    }
}

#[test]
fn cluster_that_the_policy_names_belongs_to_those_it_names() {
    let mut authority = with_policy(NAMED);
    assert!(authority.admit(&uri("us"), EU).is_err());
    let eu = authority.admit(&uri("eu"), EU).expect("named");
    assert!(authority.admit(&uri("eu-standby"), EU).is_ok());
    assert_eq!(authority.recheck(&eu), Ok(()));
    let other = NamedCluster {
        uid: "uid-us",
        name: "us",
        shard: "",
    };
    assert!(authority.admit(&uri("us"), other).is_ok());
}

#[test]
fn name_of_anothers_cluster_is_not_granted_and_the_session_is_served() {
    let mut authority = with_policy(NAMED);
    let thief = NamedCluster { uid: "uid-x", ..EU };
    let admission = authority.admit(&uri("us"), thief).expect("its own uid");
    assert!(!admission.is_name_granted());
    assert!(
        authority
            .admit(&uri("eu"), EU)
            .expect("named")
            .is_name_granted()
    );
    let mut authority = with_policy(ANY_AGENT);
    assert!(
        authority
            .admit(&uri("a"), EU)
            .expect("first")
            .is_name_granted()
    );
    let admission = authority.admit(&uri("b"), thief).expect("its own uid");
    assert!(!admission.is_name_granted());
}

const fn cluster(uid: &'static str, name: &'static str) -> NamedCluster<'static> {
    let shard = "";
    NamedCluster { uid, name, shard }
}

#[test]
fn word_of_anothers_cluster_is_taken_in_no_order_of_arrival() {
    let owned = cluster("uid-eu", "eu");
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
        let is_of_owner = |word: &str| word == owned.uid || word == owned.name;
        // The owner is first, and may be away.
        for mut authority in [
            Authority::default(),
            with_policy(ANY_AGENT),
            with_policy(NAMED),
        ] {
            let admission = authority.admit(&uri("eu"), owned).expect("it is free");
            authority.release(&admission);
            match authority.admit(&uri("us"), theft) {
                Ok(thief) => assert!(!is_of_owner(theft.uid) && !thief.is_name_granted()),
                Err(denied) => assert!(is_of_owner(theft.uid), "{theft:?} {denied}"),
            }
        }
        // The thief is first, and the policy knows the owner.
        let mut authority = with_policy(NAMED);
        match authority.admit(&uri("us"), theft) {
            Ok(thief) => assert!(!is_of_owner(theft.uid) && !thief.is_name_granted()),
            Err(denied) => assert!(is_of_owner(theft.uid), "{theft:?} {denied}"),
        }
        let owner = authority.admit(&uri("eu"), owned).expect("named");
        assert!(owner.is_name_granted());
    }
}

#[test]
fn who_proves_a_word_ends_the_session_that_was_called_so_and_had_proven_nothing() {
    let mut authority = with_policy(ANY_AGENT);
    let called = cluster("x", "uid-eu");
    let nobody = authority
        .admit(&Identity::Anonymous, called)
        .expect("it is free");
    assert!(nobody.is_name_granted());
    let owner = authority.admit(&uri("a"), EU).expect("it is free");
    assert!(owner.shares_a_word_with(&nobody) && nobody.shares_a_word_with(&owner));
    assert_eq!(authority.recheck(&nobody), Err(Denial::CredentialRequired));
    let again = authority
        .admit(&Identity::Anonymous, called)
        .expect("its uid is free");
    assert!(!again.is_name_granted());
    assert!(!owner.shares_a_word_with(&again));
    assert_eq!(authority.recheck(&again), Ok(()));
}

#[test]
fn own_words_may_be_used_as_uid_and_name() {
    let mut authority = with_policy(ANY_AGENT);
    let both = authority
        .admit(&uri("a"), cluster("eu", "eu"))
        .expect("it is free");
    assert!(both.is_name_granted());
    authority.release(&both);
    assert!(authority.admit(&uri("b"), cluster("eu", "x")).is_err());
    assert!(authority.admit(&uri("a"), cluster("eu", "eu")).is_ok());
}

#[test]
fn session_that_a_new_policy_does_not_allow_is_found() {
    let mut authority = with_policy(ANY_AGENT);
    let early = authority.admit(&uri("us"), EU).expect("first");
    authority.replace(Policy::parse(NAMED).expect("valid"));
    assert!(authority.recheck(&early).is_err());
    assert!(authority.admit(&uri("eu"), EU).is_ok());
}

#[test]
fn who_proves_a_cluster_ends_the_session_of_one_who_proved_nothing() {
    let mut authority = with_policy(ANY_AGENT);
    let anonymous = authority
        .admit(&Identity::Anonymous, EU)
        .expect("it is free");
    assert_eq!(authority.recheck(&anonymous), Ok(()));
    assert!(authority.admit(&uri("a"), EU).is_ok());
    assert_eq!(
        authority.recheck(&anonymous),
        Err(Denial::CredentialRequired)
    );
}

#[test]
fn method_that_is_not_known_is_for_admins() {
    let authority = with_policy(ANY_AGENT);
    let denied = authority.check_call(&uri("a"), "/decree.v1.New/Method", None);
    let expected = "spiffe://example.org/a may not call Method";
    assert_eq!(denied.expect_err("unknown").to_string(), expected);
    assert!(
        authority
            .check_call(&uri("a"), "/x/Reconcile", Some(Need::Agent))
            .is_ok()
    );
}

//! Live and superseded sessions.

use decree_api::v1::Mode;
use decree_core::Timestamp;

use super::*;

/// Returns the identity of a session of the cluster with the name `name of CLUSTER`.
fn identity(session_id: &str, cluster_uid: &str, shard: &str, epoch: i64) -> SessionIdentity {
    SessionIdentity {
        session_id: session_id.to_owned(),
        cluster_uid: cluster_uid.to_owned(),
        cluster_name: format!("name of {cluster_uid}"),
        shard: shard.to_owned(),
        agent_instance: "agent-0".to_owned(),
        epoch,
        mode: Mode::Enforce,
        is_kubernetes: true,
        started: Timestamp::default(),
    }
}

fn register(
    registry: &mut SessionRegistry<u32>,
    handle: u32,
    (cluster, shard, epoch): (&str, &str, i64),
) -> Result<Option<(u32, &'static str)>, &'static str> {
    let identity = Arc::new(identity(
        &format!("session-{handle}"),
        cluster,
        shard,
        epoch,
    ));
    let superseded = registry
        .register(Registered { identity, handle })
        .map_err(|refusal| refusal.reason())?;
    Ok(superseded.map(|(older, refusal)| (older.handle, refusal.reason())))
}

#[test]
fn end_of_a_superseded_session_leaves_the_newer_one_registered() {
    let mut registry = SessionRegistry::default();
    assert_eq!(register(&mut registry, 1, ("c1", "", 1)), Ok(None));
    let older = Arc::clone(&registry.of("c1")[0].identity);
    let superseded = register(&mut registry, 2, ("c1", "", 1));
    assert_eq!(superseded, Ok(Some((1, "SESSION_SUPERSEDED"))));
    registry.remove(&older);
    let left: Vec<_> = registry.of("c1").iter().map(|it| it.handle).collect();
    assert_eq!(left, [2]);
}

#[test]
fn clusters_are_found_by_uid_and_name_in_order() {
    let mut registry = SessionRegistry::default();
    for (handle, place) in [(1, ("z", "b", 1)), (2, ("z", "a", 1)), (3, ("a", "", 1))] {
        assert_eq!(register(&mut registry, handle, place), Ok(None));
    }
    let found =
        |cluster: &str| -> Vec<u32> { registry.of(cluster).iter().map(|it| it.handle).collect() };
    assert_eq!(found(""), [3, 2, 1]);
    assert_eq!(found("name of z"), [2, 1]);
    assert!(found("nowhere").is_empty());
}

fn left(names: std::ops::Range<usize>) -> Ledger {
    let mut left = Ledger::default();
    for name in names {
        let (namespace, name) = ("default".into(), name.to_string().into());
        left.insert(namespace, name, decree_core::Account::default());
    }
    left
}

#[test]
fn lost_creates_are_for_the_next_session_of_the_cluster_and_shard_once() {
    let mut registry = SessionRegistry::<()>::default();
    let second = Duration::from_secs;
    registry.keep(second(1), &identity("a", "c1", "0/2", 1), left(0..2));
    for (cluster, shard, taken) in [
        ("c2", "0/2", false),
        ("c1", "1/2", false),
        ("c1", "0/2", true),
        ("c1", "0/2", false),
    ] {
        let found = registry.take(second(4), &identity("b", cluster, shard, 2));
        let expected = taken.then(|| (left(0..2), second(3)));
        assert_eq!(found, expected, "{cluster} {shard}");
    }
}

#[test]
fn lost_creates_of_ended_sessions_are_bounded_and_the_oldest_are_dropped() {
    let mut registry = SessionRegistry::<()>::default();
    let half = ACCOUNTS_MAX / 2;
    for (at, cluster) in [(3, "c1"), (1, "c2"), (2, "c3")] {
        registry.keep(
            Duration::from_secs(at),
            &identity("a", cluster, "", 1),
            left(0..half),
        );
    }
    let mut kept = |cluster| {
        registry
            .take(Duration::from_secs(9), &identity("b", cluster, "", 1))
            .is_some()
    };
    assert_eq!(["c1", "c2", "c3"].map(&mut kept), [true, false, true]);
}

//! Live and superseded sessions.

use decree::v1::Mode;
use server_core::Timestamp;

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
fn newer_session_supersedes_the_older_one() {
    let mut registry = SessionRegistry::default();
    assert_eq!(register(&mut registry, 1, ("c1", "", 1)), Ok(None));
    let superseded = register(&mut registry, 2, ("c1", "", 2));
    assert_eq!(superseded, Ok(Some((1, "SESSION_SUPERSEDED"))));
}

#[test]
fn session_of_an_older_epoch_is_refused() {
    let mut registry = SessionRegistry::default();
    assert_eq!(register(&mut registry, 1, ("c1", "", 2)), Ok(None));
    assert_eq!(
        register(&mut registry, 2, ("c1", "", 1)),
        Err("EPOCH_TOO_OLD")
    );
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

#[test]
fn sessions_are_sorted_by_name_uid_and_shard() {
    let nameless = SessionIdentity {
        cluster_name: String::new(),
        ..identity("s", "c1", "a", 1)
    };
    assert_eq!(nameless.order(), ("c1", "c1", "a"));
    let named = identity("s", "c1", "b", 1);
    assert_eq!(named.order(), ("name of c1", "c1", "b"));
}

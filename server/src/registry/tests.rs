//! Who gets a place, and who loses it.

use super::*;

fn seat(registry: &Arc<Registry>, identity: Identity) -> Result<(Seat, Ending), Refusal> {
    let (asks, _) = mpsc::channel(1);
    let ending = Ending::default();
    let member = Member {
        identity: Arc::new(identity),
        asks,
        ending: ending.clone(),
    };
    Arc::clone(registry).seat(member).map(|seat| (seat, ending))
}

#[tokio::test]
async fn newer_session_orders_the_older_to_end() {
    let registry = Arc::new(Registry::default());
    let (_older, ending) = seat(&registry, Identity::example("c1", "", 1)).expect("free");
    let (_newer, _) = seat(&registry, Identity::example("c1", "", 2)).expect("newer");
    assert_eq!(ending.wait().await.reason(), "SESSION_SUPERSEDED");
}

#[test]
fn older_epoch_finds_the_place_taken() {
    let registry = Arc::new(Registry::default());
    let (_newer, _) = seat(&registry, Identity::example("c1", "", 2)).expect("free");
    let refusal = seat(&registry, Identity::example("c1", "", 1)).expect_err("older");
    assert_eq!(refusal.reason(), "EPOCH_TOO_OLD");
}

#[test]
fn superseded_session_does_not_take_the_newer_ones_place_along() {
    let registry = Arc::new(Registry::default());
    let (older, _) = seat(&registry, Identity::example("c1", "", 1)).expect("free");
    let (_newer, _) = seat(&registry, Identity::example("c1", "", 1)).expect("as new");
    drop(older);
    assert_eq!(registry.of("c1").len(), 1);
}

#[test]
fn clusters_are_found_by_uid_and_name_in_order() {
    let registry = Arc::new(Registry::default());
    let _seats = [("z", "b"), ("z", "a"), ("a", "")].map(|(cluster, shard)| {
        seat(&registry, Identity::example(cluster, shard, 1)).expect("free")
    });
    let found: Vec<_> = registry
        .of("")
        .iter()
        .map(|member| {
            (
                member.identity.cluster_uid.clone(),
                member.identity.shard.clone(),
            )
        })
        .collect();
    let own = |(cluster, shard): (&str, &str)| (cluster.to_owned(), shard.to_owned());
    assert_eq!(found, [("a", ""), ("z", "a"), ("z", "b")].map(own));
    assert_eq!(registry.of("name of z").len(), 2);
    assert!(registry.of("nowhere").is_empty());
}

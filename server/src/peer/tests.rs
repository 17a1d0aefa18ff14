//! The rank and the queue of a peer.

use std::{
    pin::pin,
    task::{Context, Waker},
};

use super::*;

#[tokio::test]
async fn connections_of_a_peer_have_the_queue_of_its_sessions() {
    let places = Places::new(1, 1);
    let local = IpAddr::from([127, 0, 0, 1]);
    let place = places.take(local.into(), PlaceRank::Settled);
    let place = place.expect("it is free");
    let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
    let peer = ConnectionPeer::new(proved, place.handle());
    let queue = FairQueue::one_for_each_peer();
    for identity in [Identity::Anonymous, Identity::Uid(7)] {
        if identity != Identity::Anonymous {
            peer.prove(&identity);
        }
        let session = queue_of(&queue, &identity, peer.source()).enter().await;
        let mut connection = pin!(peer.queue(&queue).pass());
        let mut context = Context::from_waker(Waker::noop());
        let passed = connection.as_mut().poll(&mut context);
        assert!(passed.is_pending(), "{identity} has one permit");
        drop(session);
        connection.await;
    }
}

#[test]
fn peer_that_proves_an_identity_outranks_others() {
    let places = Places::new(1, 1);
    let taken = |last, bid| places.take(IpAddr::from([127, 0, 0, last]).into(), bid);
    let place = taken(1, PlaceRank::Unproven).expect("it is free");
    let proved = transport::Peer::new(PeerAddress::Unix, Credential::None);
    let peer = ConnectionPeer::new(proved, place.handle());
    peer.prove(&Identity::Uid(7));
    assert_eq!(peer.identity(), Some(Identity::Uid(7)));
    assert!(taken(2, PlaceRank::Proven).is_err());
    assert!(taken(2, PlaceRank::Settled).is_ok(), "it is not settled");
}

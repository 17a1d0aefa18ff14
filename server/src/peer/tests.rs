//! The queue of a peer.

use std::{
    pin::pin,
    task::{Context, Waker},
};

use service::admission::Yields;

use super::*;

#[tokio::test]
async fn connections_of_a_peer_have_the_queue_of_its_sessions() {
    let pool = Pool::new(1, Yields::Oldest, Refusal::SessionEnded);
    let local = Owner::Unproven(IpAddr::from([127, 0, 0, 1]).into());
    let slot = pool.take(local, 1, EndSignal::default());
    let slot = slot.expect("it is free");
    let proved = service::transport::Peer::new(PeerAddress::Unix, Credential::None);
    let peer = ConnectionPeer::new(proved, slot.handle());
    let queue = FairQueue::one_for_each_peer();
    for identity in [Identity::Anonymous, Identity::Uid(7)] {
        if identity != Identity::Anonymous {
            peer.prove(&identity);
            assert_eq!(peer.identity(), Some(identity.clone()));
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

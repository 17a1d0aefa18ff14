//! Registrations end with their sessions, and signals reach them.

use server_access::Identity;

use super::*;
use crate::session::tests::identity;

fn register(registry: &Arc<LiveSessions>, epoch: i64) -> (Registration, SessionHandle) {
    let (handle, _) = SessionHandle::new();
    let session = LiveSession {
        identity: Arc::new(identity("c1", epoch)),
        handle: handle.clone(),
    };
    let registration = registry.register(session, owner("own"));
    (registration.expect("none is newer"), handle)
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner::Proven(Identity::Subject(name.to_owned()))
}

#[tokio::test]
async fn newer_session_signals_the_older_to_end() {
    let registry = Arc::new(LiveSessions::new(4));
    let (_older, handle) = register(&registry, 1);
    let (_newer, _) = register(&registry, 2);
    let why = handle.end_signal.wait().await;
    assert_eq!(why.reason(), "SESSION_SUPERSEDED");
}

#[test]
fn session_that_ends_is_forgotten() {
    let registry = Arc::new(LiveSessions::new(4));
    let (older, _) = register(&registry, 1);
    let (newer, _) = register(&registry, 1);
    drop(older);
    assert_eq!(registry.of("c1").len(), 1);
    drop(newer);
    assert!(registry.of("c1").is_empty());
}

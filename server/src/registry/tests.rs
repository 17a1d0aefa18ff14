//! Registrations end with their sessions, and signals reach them.

use super::*;
use crate::session::tests::identity;

fn register(registry: &Arc<LiveSessions>, epoch: i64) -> (Registration, SessionHandle) {
    let (handle, _) = SessionHandle::new();
    let registration = Arc::clone(registry).register(Registered {
        identity: Arc::new(identity("c1", epoch)),
        handle: handle.clone(),
    });
    (registration.expect("none is newer"), handle)
}

#[tokio::test]
async fn newer_session_signals_the_older_to_end() {
    let registry = Arc::new(LiveSessions::default());
    let (_older, handle) = register(&registry, 1);
    let (_newer, _) = register(&registry, 2);
    let why = handle.end_signal.wait().await;
    assert_eq!(why.reason(), "SESSION_SUPERSEDED");
}

#[test]
fn session_that_ends_is_forgotten() {
    let registry = Arc::new(LiveSessions::default());
    let (older, _) = register(&registry, 1);
    let (newer, _) = register(&registry, 1);
    drop(older);
    assert_eq!(registry.of("c1").len(), 1);
    drop(newer);
    assert!(registry.of("c1").is_empty());
}

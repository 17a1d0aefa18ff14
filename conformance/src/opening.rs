//! The opening of sessions, and the rules for every session.

use crate::{
    listener::Listener,
    peer::ConnectedAgent,
    score::{HELLO, LISTS, NOT_BACK, NUMBERS, Notes, ONE_EACH, ORDER, PROTOCOL},
};

/// Accepts a session and verifies how it begins.
pub(crate) async fn opened(
    listener: &mut Listener,
    notes: &mut Notes,
) -> Result<ConnectedAgent, String> {
    let mut peer = listener.accept().await?;
    let open = peer.open().await;
    notes.hold(HELLO, peer.hello.is_some(), || format!("{open:?}"));
    if let Some(hello) = &peer.hello {
        let contains = (hello.protocol_min..=hello.protocol_max).contains(&1);
        notes.hold(PROTOCOL, contains, || {
            format!("{} to {}", hello.protocol_min, hello.protocol_max)
        });
    }
    notes.add(LISTS, open.clone());
    open.map(|()| peer)
}

/// Notes the rules for all frames of a session.
pub(crate) fn sum_up(peer: &ConnectedAgent, notes: &mut Notes) {
    for rule in [HELLO, NUMBERS, ORDER, ONE_EACH, LISTS, NOT_BACK] {
        let fault = peer.faults.get(rule).cloned();
        notes.add(rule, fault.map_or(Ok(()), Err));
    }
}

pub(crate) fn expect_names(
    rule: &'static str,
    peer: &ConnectedAgent,
    names: &[String],
    notes: &mut Notes,
) {
    let there = peer.names();
    notes.hold(rule, there == names, || {
        format!("{there:?} in place of {names:?}")
    });
}

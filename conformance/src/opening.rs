//! The opening of sessions, and the rules for every session.

use crate::{
    listener::Listener,
    peer::ConnectedAgent,
    score::{
        FIELDS, GONE, HELLO, LABELS, LAG, LISTS, NOT_BACK, NUMBERS, Notes, ONE_EACH, ORDER,
        PROTOCOL, VERSIONS,
    },
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
    let of_lists = [LISTS, ORDER, VERSIONS, NOT_BACK, LAG, GONE, LABELS];
    for rule in [HELLO, NUMBERS, ONE_EACH, FIELDS]
        .into_iter()
        .chain(of_lists)
    {
        let fault = peer.faults.get(rule).cloned();
        // A list that lags shows deleted pods, too.
        let fault = fault.filter(|_| rule != GONE || !notes.is_broken(LAG));
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

//! The ends of sessions: by a refusal, a fault, a Drain, another session, silence, and the end of the agent.

use decree_api::v1::{Drain, reconcile_response::Frame as Answer};
use tokio::time::{Duration, Instant, sleep, timeout};
use tonic::Status;

use crate::{
    action::{adopt_absent, batch, create, not_done},
    listener::Listener,
    opening::{expect_names, opened, sum_up},
    peer::{CLOSED, ConnectedAgent, INTERVAL, PATIENCE},
    score::{AFTER, DRAIN, Notes, READ_LATE, REFUSED, SILENCE, STOP, SUPERSEDED, UNREAD, Verdict},
    subject::Running,
};

/// The reconnect delay of a refused or drained agent.
const DELAY: Duration = Duration::from_secs(1);
/// A number of operations whose outcomes exceed the window of a stream.
const MANY: usize = 100;

/// Refuses the agent, and waits for its next stream. The next `accept` returns that stream.
pub(crate) async fn refuse(listener: &mut Listener, notes: &mut Notes) -> Verdict {
    let peer = listener.accept().await?;
    peer.refuse(DELAY).await;
    let verdict = stays_away(listener, Instant::now()).await?;
    notes.add(REFUSED, verdict);
    Ok(())
}

/// Waits until the agent reconnects, which must not happen before its delay has passed.
async fn stays_away(listener: &mut Listener, since: Instant) -> Result<Verdict, String> {
    listener.await_next().await?;
    let waited = since.elapsed();
    // The agent's measurement starts earlier than the kit's, by the time that a frame takes.
    let is_right = waited + DELAY / 10 >= DELAY;
    let why = || format!("it came back after {waited:.1?}, and was told to wait {DELAY:?}");
    Ok(is_right.then_some(()).ok_or_else(why))
}

/// Sends a frame whose number is wrong by this much, and cuts the stream if the agent does not end it.
pub(crate) async fn misnumber(
    mut peer: ConnectedAgent,
    rule: &'static str,
    by: i64,
    notes: &mut Notes,
) {
    peer.misnumber(by).await;
    let closed = timeout(4 * INTERVAL, peer.closed()).await;
    notes.add(rule, closed.map(drop).map_err(|_| still_open()));
    sum_up(&peer, notes);
    peer.cut().await;
}

fn still_open() -> String {
    "the stream is still open after four intervals".to_owned()
}

/// Leaves outcomes unread, first temporarily and then until the end.
pub(crate) async fn unread(
    mut peer: ConnectedAgent,
    listener: &mut Listener,
    notes: &mut Notes,
) -> Result<ConnectedAgent, String> {
    let set = peer.only_set()?;
    let absent = batch(&set, peer.guard(), adopt_absent(&set, MANY));
    let id = peer.start(absent.clone()).await;
    peer.read_nothing(5).await;
    let outcomes = peer.outcomes_of(id, MANY).await;
    notes.add(READ_LATE, outcomes.and_then(|outcomes| not_done(&outcomes)));
    sum_up(&peer, notes);
    peer.start(absent).await;
    peer.read_nothing(2).await;
    peer.end(Status::unavailable("cut")).await;
    // The stream stays open until the agent is back, so that it is not reset.
    let next = opened(listener, notes).await;
    drop(peer);
    notes.add(UNREAD, next.as_ref().map(drop).map_err(Clone::clone));
    next
}

/// Ends a session in favor of another one. The agent must not reconnect, because that would end the other session.
pub(crate) async fn supersede(peer: ConnectedAgent, listener: &mut Listener, notes: &mut Notes) {
    peer.supersede().await;
    let back = timeout(5 * INTERVAL, listener.await_next()).await;
    notes.hold(SUPERSEDED, !matches!(back, Ok(Ok(()))), || {
        "it came back within five seconds".to_owned()
    });
}

/// Requests pods that exist, and drains before the agent has answered each. Accepts the next session.
pub(crate) async fn drain(
    mut peer: ConnectedAgent,
    listener: &mut Listener,
    names: &[String],
    notes: &mut Notes,
) -> Result<ConnectedAgent, String> {
    let set = peer.only_set()?;
    let batch = peer.start(batch(&set, peer.guard(), create(names))).await;
    let drained = Instant::now();
    let drain = Drain {
        close_time: None,
        reconnect_after: DELAY.try_into().ok(),
    };
    peer.send(Answer::Drain(drain)).await;
    let outcomes = peer.outcomes_of(batch, names.len()).await;
    notes.add(DRAIN, outcomes.map(drop));
    let closed = closes(&mut peer).await;
    // An agent whose stream must be cut cannot reconnect earlier.
    let since = if closed.is_ok() {
        drained
    } else {
        Instant::now()
    };
    notes.add(DRAIN, closed);
    sum_up(&peer, notes);
    peer.cut().await;
    notes.add(AFTER, stays_away(listener, since).await?);
    let next = opened(listener, notes).await?;
    expect_names(DRAIN, &next, names, notes);
    Ok(next)
}

async fn closes(peer: &mut ConnectedAgent) -> Verdict {
    match timeout(4 * INTERVAL, peer.closed()).await {
        Ok(end) if end == CLOSED => Ok(()),
        Ok(end) => Err(end),
        Err(_) => Err(still_open()),
    }
}

pub(crate) async fn stop(mut peer: ConnectedAgent, agent: &mut impl Running, notes: &mut Notes) {
    let stopped = agent.stop();
    notes.add(STOP, stopped.map_err(|error| error.to_string()));
    notes.add(STOP, closes(&mut peer).await);
    sum_up(&peer, notes);
    peer.cut().await;
    let until = Instant::now() + PATIENCE;
    while !agent.has_ended() && Instant::now() < until {
        sleep(INTERVAL / 20).await;
    }
    notes.hold(STOP, agent.has_ended(), || {
        "it still runs 20 seconds later".to_owned()
    });
}

/// Sends nothing until the agent leaves.
pub(crate) async fn silence(peer: &mut ConnectedAgent, notes: &mut Notes) {
    peer.be_silent();
    let left = timeout(8 * INTERVAL, peer.closed()).await.is_ok();
    let why = || "it is still there after eight intervals".to_owned();
    notes.hold(SILENCE, left, why);
}

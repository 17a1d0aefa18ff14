//! Questions to several sessions at once, and the views that an answer names as stale.

use decree_api::v1;
use decree_core::Timestamp;
use server_session::Session;
use tokio::task::JoinSet;

use crate::{access::Caller, error::Refusal, registry::LiveSession, shared::Shared};

/// The answers of sessions, in their order.
pub(crate) struct Answers<'a, T> {
    pub(crate) given: Vec<(&'a LiveSession, T)>,
    /// The ids of the sessions that have ended, or did not answer in time.
    pub(crate) missing: Vec<&'a str>,
}

/// Asks sessions at once, as [`SessionHandle::ask`](crate::registry::SessionHandle::ask) does.
pub(crate) async fn ask_all<'a, T: Send + 'static>(
    sessions: &'a [LiveSession],
    caller: &Caller,
    step: impl FnMut(&Session, Timestamp) -> Option<T> + Clone + Send + 'static,
) -> Answers<'a, T> {
    let mut asked = ask_each(sessions, caller, step);
    let mut came: Vec<_> = sessions.iter().map(|_| None).collect();
    while let Some(answered) = asked.join_next().await {
        if let Ok((at, answer)) = answered {
            came[at] = answer.ok();
        }
    }
    let (mut given, mut missing) = (Vec::new(), Vec::new());
    for (session, answer) in sessions.iter().zip(came) {
        match answer {
            Some(answer) => given.push((session, answer)),
            None => missing.push(&*session.identity.session_id),
        }
    }
    Answers { given, missing }
}

/// Asks the sessions of a cluster for the one that knows a ReplicaSet, whose answer is not `None`. Returns the answer with its session.
///
/// # Errors
/// If no session knows it, and one ends or does not answer in time.
pub(crate) async fn ask_first<T: Send + 'static>(
    sessions: Vec<LiveSession>,
    caller: &Caller,
    step: impl FnMut(&Session, Timestamp) -> Option<Option<T>> + Clone + Send + 'static,
) -> Result<Option<(LiveSession, T)>, Refusal> {
    let mut asked = ask_each(&sessions, caller, step);
    let mut missing = Ok(None);
    while let Some(answered) = asked.join_next().await {
        match answered {
            Ok((at, Ok(Some(answer)))) => return Ok(Some((sessions[at].clone(), answer))),
            Ok((_, Ok(None))) => {}
            Ok((_, Err(refusal))) => missing = Err(refusal),
            Err(_) => missing = Err(Refusal::Panicked),
        }
    }
    missing
}

fn ask_each<T: Send + 'static>(
    sessions: &[LiveSession],
    caller: &Caller,
    step: impl FnMut(&Session, Timestamp) -> Option<T> + Clone + Send + 'static,
) -> JoinSet<(usize, Result<T, Refusal>)> {
    let asks = sessions.iter().enumerate().map(|(at, session)| {
        let (handle, caller, step) = (session.handle.clone(), caller.clone(), step.clone());
        async move { (at, handle.ask(&caller, step).await) }
    });
    asks.collect()
}

/// The stale views among sessions. The sessions with these ids have not answered.
pub(crate) fn stale_views(
    shared: &Shared,
    sessions: &[LiveSession],
    missing: &[&str],
) -> Vec<v1::StaleView> {
    let views = sessions.iter().filter_map(|session| {
        let missing = missing.contains(&&*session.identity.session_id);
        stale_view(shared, session, missing)
    });
    views.collect()
}

/// The view of a session, if it is stale or missing.
pub(crate) fn stale_view(
    shared: &Shared,
    session: &LiveSession,
    missing: bool,
) -> Option<v1::StaleView> {
    let LiveSession { identity, handle } = session;
    let shown = &handle.shown;
    let is_stale = missing || shown.is_stale(shared.config.heartbeat_interval);
    is_stale.then(|| v1::StaleView {
        cluster: identity.cluster().to_owned(),
        cluster_uid: identity.cluster_uid.clone(),
        shard: identity.shard.clone(),
        age: shown.age().try_into().ok(),
        missing,
    })
}

#[cfg(test)]
mod tests;

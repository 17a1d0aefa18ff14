//! The calls in flight: each in a task of its own, with a bound on its time.

use std::time::Duration;

use agent_core::api::{ApiError, Call, CallId, Reply};
use runtime::excerpt;
use tokio::{
    task::{JoinError, JoinSet},
    time::timeout,
};

use crate::{cluster::Cluster, traces::CallSpan};

/// How long a call may take, the wait for its turn included. Its effect is unknown then, and the agent resolves it by name;
/// without a bound one lost answer would keep the agent from ever opening a new session.
const CALL_MAX: Duration = Duration::from_secs(60);

/// A call's answer.
pub(crate) type Answered = (CallId, Result<Reply, ApiError>);

/// Makes calls; how many at a time is for the agent to say.
#[derive(Debug)]
pub(crate) struct Executor<C> {
    cluster: C,
    calls: JoinSet<Answered>,
}

/// Returns an error whose text is fit for a status, an event and a terminal: others than the cluster may have had a say in it.
fn readable(error: ApiError) -> ApiError {
    let message = excerpt(&error.message);
    ApiError { message, ..error }
}

// === impl Executor ===

impl<C: Cluster> Executor<C> {
    pub(crate) fn new(cluster: C) -> Self {
        Self {
            cluster,
            calls: JoinSet::new(),
        }
    }

    /// Returns how many calls in flight the cluster bears at the moment.
    pub(crate) fn calls_max(&self) -> usize {
        self.cluster.calls_max()
    }

    /// Makes a call, whose span ends with its answer.
    pub(crate) fn start(&mut self, call: Call, span: CallSpan) {
        let Call { id, request } = call;
        let answer = self.cluster.call(request, span.context());
        self.calls.spawn(async move {
            let reply = timeout(CALL_MAX, answer).await;
            let reply =
                reply.unwrap_or_else(|_| Err(ApiError::no_answer("the call took too long")));
            let reply = reply.map_err(readable);
            span.end(&reply);
            (id, reply)
        });
    }

    /// Waits for the next answer; for ever while no call is in flight.
    pub(crate) async fn next(&mut self) -> Result<Answered, JoinError> {
        match self.calls.join_next().await {
            Some(answered) => answered,
            None => std::future::pending().await,
        }
    }

    /// Returns an answer that is there already.
    pub(crate) fn try_next(&mut self) -> Option<Result<Answered, JoinError>> {
        self.calls.try_join_next()
    }
}

//! The calls in flight: one task for each, with a time limit.

use std::time::Duration;

use agent_core::{
    api::{ApiError, Call, CallId, Reply},
    cluster::Cluster,
};
use runtime::excerpt;
use tokio::{
    task::{JoinError, JoinSet},
    time::timeout,
};

use crate::traces::CallSpan;

/// How long a call may take, including the wait for its turn. After that its effect is unknown, and the agent finds it out by name. Without
/// a limit, one lost answer would keep the agent from ever opening a new session.
const CALL_MAX: Duration = Duration::from_secs(60);

pub(crate) type Answered = (CallId, Result<Reply, ApiError>);

/// Makes calls. The agent limits their number.
#[derive(Debug)]
pub(crate) struct Executor<C> {
    cluster: C,
    calls: JoinSet<Answered>,
}

/// The error with a text fit for a status, an event and a terminal: others than the cluster may have written parts of the text.
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

    pub(crate) fn calls_max(&self) -> usize {
        self.cluster.calls_max()
    }

    /// Makes a call; its span ends with the answer.
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

    /// Waits for the next answer; forever while no call is in flight.
    pub(crate) async fn next(&mut self) -> Result<Answered, JoinError> {
        match self.calls.join_next().await {
            Some(answered) => answered,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn try_next(&mut self) -> Option<Result<Answered, JoinError>> {
        self.calls.try_join_next()
    }
}

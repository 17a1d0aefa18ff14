//! One call to the cluster, with a time limit.

use std::time::Duration;

use agent_core::{
    api::{ApiError, Call, CallId, Reply},
    cluster::Cluster,
};
use service::excerpt;
use tokio::time::timeout;

/// How long a call may take, including the wait for its turn. After that its effect is unknown, and the agent finds it out by name. Without
/// a limit, one lost answer would keep the agent from ever opening a new session.
const CALL_MAX: Duration = Duration::from_secs(60);

pub(crate) type Answered = (CallId, Result<Reply, ApiError>);

/// Makes a call. It may have its effect before the answer is awaited.
pub(crate) fn call<C: Cluster>(
    cluster: &C,
    call: Call,
) -> impl Future<Output = Answered> + Send + use<C> {
    let Call { id, request } = call;
    let answer = cluster.call(request);
    async move {
        let reply = timeout(CALL_MAX, answer).await;
        let reply = reply.unwrap_or_else(|_| Err(ApiError::no_answer("the call took too long")));
        // Others than the cluster may have written parts of the text, which becomes part of a status, an event and a terminal.
        let reply = reply.map_err(|error| ApiError {
            message: excerpt(&error.message),
            ..error
        });
        (id, reply)
    }
}

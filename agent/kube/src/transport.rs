//! One HTTP request and its answer: sent once, bounded in time, refusals read.

use std::{error::Error, sync::Arc, time::Duration};

use agent_core::api::ApiError;
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::{
    codec,
    connect::{Client, ResponseBody},
    metrics::{Exchange, Metrics},
};

/// How long an answer may take, its body included. The effect of a call without an answer is unknown.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How much of a refusal is read.
const REFUSAL_BYTES_MAX: usize = 256 * 1024;

/// Sends requests. Clones share their connection.
#[derive(Clone)]
pub(crate) struct Transport {
    client: Client,
    metrics: Arc<Metrics>,
}

// === impl Transport ===

impl Transport {
    pub(crate) fn new(client: Client, metrics: Metrics) -> Self {
        let metrics = Arc::new(metrics);
        Self { client, metrics }
    }

    /// Returns the metrics of what is sent.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn fetch(&self, request: Request<Body>) -> Result<Bytes, ApiError> {
        let mut exchange = self.metrics.begin(request.method());
        let answer = async {
            let response = self.accepted(request, &mut exchange).await?;
            let body = response.into_body().collect().await;
            body.map(|body| body.to_bytes())
                .map_err(|error| lost(&error))
        };
        timeout(ANSWER_MAX, answer).await.unwrap_or_else(|_| late())
    }

    /// Sends a request whose answer has no end.
    pub(crate) async fn open(&self, request: Request<Body>) -> Result<ResponseBody, ApiError> {
        let mut exchange = self.metrics.begin_watch(request.method());
        let answer = timeout(ANSWER_MAX, self.accepted(request, &mut exchange)).await;
        Ok(answer.unwrap_or_else(|_| late())?.into_body())
    }

    async fn accepted(
        &self,
        request: Request<Body>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Response<ResponseBody>, ApiError> {
        let response = self.client.clone().oneshot(request).await;
        let response = response.map_err(|error| lost(error.as_ref()))?;
        exchange.handle_status(response.status());
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|it| it.to_str().ok()?.parse().ok());
        // Without its body a refusal still is one.
        let body = Limited::new(body, REFUSAL_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Err(codec::refusal(head.status.as_u16(), retry_after, &body))
    }
}

fn late<T>() -> Result<T, ApiError> {
    let seconds = ANSWER_MAX.as_secs();
    Err(ApiError::no_answer(format!("no answer within {seconds} s")))
}

fn lost(error: &(dyn Error + 'static)) -> ApiError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    ApiError::no_answer(text)
}

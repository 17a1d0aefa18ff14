//! One HTTP request and its answer: sent once, bounded in time, refusals read.

use std::{error::Error, sync::Arc, time::Duration};

use agent_core::api::ApiError;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::{sync::Notify, time::timeout};
use tower::ServiceExt as _;

use crate::{
    body::RequestBody,
    codec,
    connect::{Client, ResponseBody, of_renewal},
    lanes::Lanes,
};

/// How long an answer may take, with its body. The effect of an unanswered call is unknown.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The longest answer that is read: a page of 500 objects of 128 KiB each. A longer answer counts as none.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The reason of the error for a longer answer.
pub(crate) const TOO_LONG: &str = "AnswerTooLong";
/// How much of a refusal is read.
const REFUSAL_BYTES_MAX: usize = 256 * 1024;

/// Sends requests. Clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pub(crate) lanes: Lanes,
    /// Notified when the API server does not accept the credentials.
    pub(crate) refused: Arc<Notify>,
}

impl Transport {
    pub(crate) async fn fetch(&self, request: Request<RequestBody>) -> Result<Bytes, ApiError> {
        let answer = async {
            let permit = self.lanes.enter();
            let response = self.accepted(permit.client(), request).await?;
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            let body = body.collect().await;
            body.map(|body| body.to_bytes())
                .map_err(|error| cut_off(error.as_ref()))
        };
        timeout(ANSWER_MAX, answer).await.unwrap_or_else(|_| late())
    }

    /// Sends a request with an endless answer. The request counts as in flight until the answer begins.
    pub(crate) async fn open(
        &self,
        request: Request<RequestBody>,
    ) -> Result<ResponseBody, ApiError> {
        let permit = self.lanes.enter();
        let answer = timeout(ANSWER_MAX, self.accepted(permit.client(), request)).await;
        Ok(answer.unwrap_or_else(|_| late())?.into_body())
    }

    async fn accepted(
        &self,
        client: Client,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, ApiError> {
        let response = client.oneshot(request).await;
        let response = response.map_err(|error| lost(error.as_ref()))?;
        if response.status().is_success() {
            return Ok(response);
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            self.refused.notify_one();
        }
        let (head, body) = response.into_parts();
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|it| it.to_str().ok()?.parse().ok());
        // The status code is enough if the body cannot be read.
        let body = Limited::new(body, REFUSAL_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let error = codec::refusal(Some(head.status.as_u16()), &body);
        Err(ApiError {
            retry_after_seconds: error.retry_after_seconds.or(retry_after),
            ..error
        })
    }
}

fn late<T>() -> Result<T, ApiError> {
    let seconds = ANSWER_MAX.as_secs();
    Err(ApiError::no_answer(format!("no answer within {seconds} s")))
}

fn cut_off(error: &(dyn Error + 'static)) -> ApiError {
    if !error.is::<LengthLimitError>() {
        return lost(error);
    }
    let mebibytes = ANSWER_BYTES_MAX / 1024 / 1024;
    ApiError {
        reason: TOO_LONG.to_owned(),
        ..ApiError::no_answer(format!("the answer is longer than {mebibytes} MiB"))
    }
}

fn lost(error: &(dyn Error + 'static)) -> ApiError {
    if let Some(text) = of_renewal(error) {
        return ApiError::no_answer(text);
    }
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

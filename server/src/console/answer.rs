//! Answers over plain HTTP: JSON, and refusals with the same reasons as over gRPC.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use tonic::Code;

use crate::error::Refusal;

/// A refusal as an answer: `{"reason": …, "message": …}`.
#[derive(Debug)]
pub(super) struct Refused(Refusal);

/// Returns an answer of JSON, which nobody keeps.
pub(super) fn json(text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

/// Returns what a refusal says, for programs and for people.
pub(super) fn text(refusal: &Refusal) -> String {
    json!({"reason": refusal.reason(), "message": refusal.message()}).to_string()
}

// === impl Refused ===

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (status(self.0.code()), json(text(&self.0))).into_response()
    }
}

/// Returns the status of HTTP that stands for a code of gRPC.
fn status(code: Code) -> StatusCode {
    match code {
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
            StatusCode::BAD_REQUEST
        }
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::AlreadyExists
        | Code::Aborted
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

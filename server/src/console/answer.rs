//! Responses over plain HTTP: JSON, and refusals with the same reasons as over gRPC.

use axum::{
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use service::escaped_json;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::error::Refusal;

/// The reasons that show a followed ReplicaSet, or its pods, as absent: they may appear later.
const ABSENT: [&str; 4] = [
    "REPLICA_SET_UNKNOWN",
    "CLUSTER_UNKNOWN",
    "SESSION_ENDED",
    "LIMIT_REACHED",
];

/// A refusal as a response: `{"reason": …, "message": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    code: Code,
    reason: String,
    message: String,
}

/// A JSON response that must not be cached. A terminal may show it.
pub(crate) fn json(text: &str) -> Response {
    escaped(escaped_json(text).into_owned().into())
}

/// The same of JSON that a terminal may show. Responses share its memory.
pub(crate) fn escaped(text: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

impl Refused {
    pub(crate) fn new(code: Code, reason: &str, message: String) -> Self {
        let reason = reason.to_owned();
        Self {
            code,
            reason,
            message,
        }
    }

    pub(crate) fn field(field: &str, description: &str) -> Self {
        let message = format!("{field}: {description}");
        Self::new(Code::InvalidArgument, "INVALID_FIELD", message)
    }

    /// Whether the refusal means that a ReplicaSet, or its pods, are absent at present.
    pub(crate) fn is_absence(&self) -> bool {
        ABSENT.contains(&&*self.reason)
    }

    /// The JSON with the reason for programs and the message for people.
    pub(crate) fn text(&self) -> String {
        json!({"reason": self.reason, "message": self.message}).to_string()
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Status::from(refusal).into()
    }
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        let info = status.get_details_error_info();
        Self {
            code: status.code(),
            reason: info.map(|info| info.reason).unwrap_or_default(),
            message: status.message().to_owned(),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (status(self.code), json(&self.text())).into_response()
    }
}

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

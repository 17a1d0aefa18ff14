//! Errors as the Kubernetes API answers them: code, reason, message and causes.

use std::fmt::Display;

use thiserror::Error;

use crate::kind::Kind;

/// An answer other than success, with the fields of Kubernetes' `Status`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code.
    pub code: u16,
    /// The word for programs, such as `AlreadyExists`.
    pub reason: String,
    /// The text for people.
    pub message: String,
    /// The reasons of `details.causes`, such as `NamespaceTerminating`.
    pub causes: Vec<String>,
    /// How long the server asks to wait (`details.retryAfterSeconds`).
    pub retry_after_seconds: Option<u32>,
}

impl ApiError {
    /// Creates an error with this code, reason and message, without causes.
    pub fn new(code: u16, reason: &str, message: impl Display) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.to_string(),
            causes: Vec::new(),
            retry_after_seconds: None,
        }
    }

    fn with_cause(mut self, cause: &str) -> Self {
        self.causes.push(cause.to_owned());
        self
    }

    /// Returns 429 `TooManyRequests`, with the time to wait.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let message = "Too many requests, please try again later.";
        Self {
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(429, "TooManyRequests", message)
        }
    }

    /// Returns 504 `Timeout`: the effect of the call is unknown.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, "Timeout", message)
    }

    /// Returns 403 `Forbidden` for an object, with the reason of the refusal.
    pub fn forbidden(kind: Kind, name: &str, why: impl Display) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
        Self::new(403, "Forbidden", message)
    }

    pub(crate) fn not_found(kind: Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.resource());
        Self::new(404, "NotFound", message)
    }

    pub(crate) fn already_exists(kind: Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::new(409, "AlreadyExists", message)
    }

    pub(crate) fn conflict(kind: Kind, name: &str, why: impl Display) -> Self {
        let resource = kind.resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::new(409, "Conflict", message)
    }

    pub(crate) fn namespace_terminating(kind: Kind, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        Self::forbidden(kind, name, why).with_cause("NamespaceTerminating")
    }

    pub(crate) fn expired(from: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {from} ({oldest})");
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_version(from: u64, newest: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {from}, current: {newest}");
        let error = Self::new(504, "Timeout", message).with_cause("ResourceVersionTooLarge");
        Self {
            retry_after_seconds: Some(1),
            ..error
        }
    }

    pub(crate) fn bad_request(message: impl Display) -> Self {
        Self::new(400, "BadRequest", message)
    }
}

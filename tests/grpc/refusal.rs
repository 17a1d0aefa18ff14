//! Reads the details of a status.

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Asserts the code and the reason of a refusal, and that its details are complete.
#[track_caller]
pub(crate) fn assert_refusal(status: &Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    assert_eq!(self::reason(status), reason, "{status:?}");
}

/// Asserts that a refusal names this limit of the server as its reason.
#[track_caller]
pub(crate) fn assert_limit(status: &Status, limit: &str) {
    assert_refusal(status, Code::ResourceExhausted, "LIMIT_REACHED");
    assert_eq!(fact(status, "limit").as_deref(), Some(limit));
}

/// Asserts that a refusal names only this field.
#[track_caller]
pub(crate) fn assert_field(status: &Status, field: &str, reason: &str) {
    assert_eq!(fields(status), [(field.to_owned(), reason.to_owned())]);
}

/// Asserts that a refusal reaches clients that accept 8 KiB of headers, including the other headers.
#[track_caller]
pub(crate) fn assert_fits_headers(status: &Status) {
    let encoded = |byte: u8| if byte.is_ascii_graphic() { 1 } else { 3 };
    let message: usize = status.message().bytes().map(encoded).sum();
    let bytes = message + status.details().len() * 4 / 3;
    assert!(bytes < 7 << 10, "{bytes} bytes of headers");
}

#[track_caller]
pub(crate) fn reason(status: &Status) -> String {
    let info = status
        .get_details_error_info()
        .unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
    assert_eq!(info.domain, decree_server::DOMAIN);
    info.reason
}

/// A value in the metadata of a refusal.
pub(crate) fn fact(status: &Status, key: &str) -> Option<String> {
    status.get_details_error_info()?.metadata.get(key).cloned()
}

/// The paths and reasons of the fields that a refusal names, sorted.
pub(crate) fn fields(status: &Status) -> Vec<(String, String)> {
    let bad = status
        .get_details_bad_request()
        .map(|bad| bad.field_violations);
    let named = bad
        .into_iter()
        .flatten()
        .map(|violation| (violation.field, violation.reason));
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

/// Whether a refusal says when to retry.
pub(crate) fn has_retry(status: &Status) -> bool {
    status
        .get_details_retry_info()
        .is_some_and(|info| info.retry_delay.is_some())
}

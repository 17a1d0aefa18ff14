//! Times in the format of the API.

use jiff::Timestamp;

/// To the second.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// To the microsecond, as in Leases.
pub(crate) fn precisely() -> String {
    Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

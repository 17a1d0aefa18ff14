//! The Lease on an API server: a model for every world.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

/// The error of a refusal.
pub(crate) fn refusal(code: u16, reason: &str) -> ApiError {
    ApiError {
        code: Some(code),
        reason: reason.to_owned(),
        message: reason.to_owned(),
        ..ApiError::default()
    }
}

/// Executes a Lease request as the API server does: an update must name the newest version.
pub(crate) fn execute(known: Option<&Record>, command: &Command) -> Result<Record, ApiError> {
    let (record, newest) = match (command, known) {
        (Command::Read, Some(known)) => return Ok(known.clone()),
        (Command::Read | Command::Replace(_), None) => return Err(refusal(404, "NotFound")),
        (Command::Create(_), Some(_)) => return Err(refusal(409, "AlreadyExists")),
        (Command::Create(record), None) => (record, ""),
        (Command::Replace(record), Some(known)) => {
            if record.resource_version != known.resource_version {
                return Err(refusal(409, "Conflict"));
            }
            (record, known.resource_version.as_str())
        }
    };
    let newest: u64 = newest.parse().unwrap_or(0);
    Ok(Record {
        resource_version: (newest + 1).to_string(),
        ..record.clone()
    })
}

//! Configuration: flags over environment over defaults, as clap has it, with errors that quote no password.

use std::{ffi::OsString, time::Duration};

use clap::{Args, Command, Parser, error::ContextValue};
use jiff::SignedDuration;

/// Parses `arguments`, of which the first is the program, with the environment as fallback.
///
/// # Errors
/// As clap's; [`clap::Error::exit`] prints the error and ends the process with code 2. The error names the flag, also if an environment
/// variable sets it.
pub fn parse<A: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
    A::try_parse_from(arguments).map_err(without_passwords)
}

/// Hides user and password of each URL in an error of clap, which quotes the wrong value.
pub fn without_passwords(mut error: clap::Error) -> clap::Error {
    let quoted = error.context().filter_map(|(kind, value)| {
        let ContextValue::String(text) = value else {
            return None;
        };
        Some((kind, text.rsplit_once('@')?))
    });
    // The value may be a URL that lacks its scheme.
    let hidden = quoted.map(|(kind, (user, host))| {
        let scheme = user.find("://").map_or("", |at| &user[..at + 3]);
        (kind, ContextValue::String(format!("{scheme}…@{host}")))
    });
    for (kind, value) in hidden.collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    error
}

/// The values of a group of flags of which none is given, whatever the environment.
///
/// # Panics
/// If a flag must be given.
pub fn defaults<A: Args>() -> A {
    let command = A::augment_args(Command::new("")).mut_args(|arg| arg.env(None));
    let matches = command.try_get_matches_from([""]);
    let parsed = matches.and_then(|matches| A::from_arg_matches(&matches));
    parsed.expect("no flag must be given")
}

/// Parses a duration of a flag in whole milliseconds, such as `500ms` or `2m`.
///
/// # Errors
/// The correct format.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration: Option<SignedDuration> = text.parse().ok();
    let millis = duration.and_then(|it| u64::try_from(it.as_millis()).ok());
    let duration = millis.map(Duration::from_millis);
    duration.ok_or_else(|| "must be numbers with units, such as 500ms, 10s or 1m30s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_name_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "5", "s", "-1s", "1mo", "1d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

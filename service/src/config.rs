//! Configuration: flags over environment over defaults, as clap has it, with errors that name the variable and no password.

use std::{
    env,
    ffi::{OsStr, OsString},
    time::Duration,
};

use clap::{
    Arg, Args, Command, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use jiff::SignedDuration;

/// Parses `arguments`, of which the first is the program, with the environment as fallback.
///
/// # Errors
/// As clap's; [`clap::Error::exit`] prints the error and ends the process with code 2. The error names the flag or the environment
/// variable.
pub fn parse<A: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    parsed(&arguments).map_err(without_passwords)
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

fn parsed<A: Parser>(arguments: &[OsString]) -> Result<A, clap::Error> {
    let command = A::command();
    let matches = command.clone().try_get_matches_from(arguments);
    let matches = matches.map_err(|error| match unreadable_variable(&command) {
        Some(variable) => A::command().error(
            ErrorKind::InvalidUtf8,
            format!("the environment variable {variable} is not UTF-8"),
        ),
        None => naming_variable(command, arguments, error),
    })?;
    A::from_arg_matches(&matches)
}

/// The values of a group of flags of which none is given, whatever the environment.
///
/// # Panics
/// If a flag must be given.
pub fn defaults<A: Args>() -> A {
    let command = without_environment(A::augment_args(Command::new("")));
    let matches = command.try_get_matches_from([""]);
    let parsed = matches.and_then(|matches| A::from_arg_matches(&matches));
    parsed.expect("no flag must be given")
}

/// Adds the environment variable to an error that does not occur with the arguments alone.
fn naming_variable(
    command: Command,
    arguments: &[OsString],
    mut error: clap::Error,
) -> clap::Error {
    let wrong = wrong_flag(&error).and_then(|flag| {
        let mut known = command.get_arguments();
        known.find(|arg| arg.get_long() == Some(&flag))
    });
    let variable = wrong.and_then(Arg::get_env);
    let variable = variable.map(|name| format!("{} in the environment", name.display()));
    let alone = without_environment(command).try_get_matches_from(arguments);
    let is_ours = alone.is_err_and(|alone| alone.kind() == error.kind());
    if let Some(variable) = variable
        && !is_ours
    {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The long name of the flag in an error.
fn wrong_flag(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = shown.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    Some(name.to_owned())
}

/// The first variable that a flag would read, but that is not valid text.
fn unreadable_variable(command: &Command) -> Option<String> {
    let variables = command.get_arguments().filter_map(Arg::get_env);
    let unreadable = |name: &&OsStr| matches!(env::var(name), Err(env::VarError::NotUnicode(_)));
    let mut unreadable = variables.filter(unreadable);
    unreadable.next().map(|name| name.display().to_string())
}

fn without_environment(command: Command) -> Command {
    command.mut_args(|arg| arg.env(None))
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

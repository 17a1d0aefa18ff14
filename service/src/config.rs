//! Configuration in layers: flags over environment over a file over defaults.
//!
//! The file is TOML with one key for each flag, by the flag's long name: `listen = "0.0.0.0:50051"`. Its values take the
//! place of the defaults before the arguments are parsed, so the precedence is clap's own.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Arg, Args, Command, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use toml::{Table, Value};

/// Names the file. Flatten it into the binary's arguments.
#[derive(Args, Clone, Debug)]
pub struct ConfigArgs {
    /// A TOML file with the names of flags as keys, such as `listen = "0.0.0.0:50051"`. Flags and environment variables take
    /// precedence.
    #[arg(long, env = "DECREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug)]
struct Setting {
    id: clap::Id,
    key: String,
    values: Vec<String>,
}

/// Parses `arguments`, of which the first is the program, with environment and file as fallbacks.
///
/// # Errors
/// As clap's; [`clap::Error::exit`] prints the error and ends the process with code 2. The error names the flag, the environment
/// variable, or the file and the wrong key. An unreadable file or an unknown key is a usage error.
pub fn parse<A: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    parsed(&arguments).map_err(without_passwords)
}

/// Hides user and password of each URL in an error of clap, which quotes the wrong value.
#[must_use]
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
    let mut command = A::command();
    if let Some(path) = config_path(command.clone(), arguments) {
        command = with_file(command, &path)?;
    }
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
#[must_use]
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

/// Parses a duration of a flag: a whole number and `ms`, `s` or `m`, such as `500ms`.
///
/// # Errors
/// The correct format.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "" if !digits.is_empty() => return Err("needs a unit: 500ms, 10s or 2m".into()),
        _ => return Err("must be a whole number with a unit, such as 500ms, 10s or 2m".into()),
    };
    let number = digits.parse::<u64>();
    let number =
        number.map_err(|_| "must be a whole number with a unit, such as 500ms, 10s or 2m")?;
    Ok(Duration::from_millis(number.saturating_mul(unit)))
}

fn config_path(command: Command, arguments: &[OsString]) -> Option<PathBuf> {
    let matches = command.ignore_errors(true).try_get_matches_from(arguments);
    matches.ok()?.try_get_one("config").ok()?.cloned()
}

fn with_file(mut command: Command, path: &Path) -> Result<Command, clap::Error> {
    let settings = read(&command, path).map_err(|why| {
        let why = format!("config {}: {why}", path.display());
        command.error(ErrorKind::InvalidValue, why)
    })?;
    check(command.clone(), &settings, path)?;
    for Setting { id, values, .. } in settings {
        command = command.mut_arg(id, |arg| arg.default_values(values).required(false));
    }
    Ok(command)
}

fn read(command: &Command, path: &Path) -> Result<Vec<Setting>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        // The error's own text quotes the line.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = 1 + before.map_or(0, |before| before.matches('\n').count());
        format!("line {line} is not TOML: {}", error.message())
    })?;
    let settings = table
        .into_iter()
        .map(|(key, value)| setting(command, key, &value));
    settings.collect()
}

fn setting(command: &Command, key: String, value: &Value) -> Result<Setting, String> {
    let flags = || command.get_arguments().filter(|arg| is_key(arg));
    let Some(flag) = flags().find(|arg| arg.get_long() == Some(&key)) else {
        let known: Vec<_> = flags().filter_map(Arg::get_long).collect();
        let known = known.join(", ");
        // A value that is here by mistake may be a secret.
        let is_word = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
        let shown = if key.chars().all(is_word) {
            &key
        } else {
            "…"
        };
        return Err(format!("unknown key {shown:?}; known are {known}"));
    };
    let Some(values) = texts(value) else {
        return Err(format!(
            "key {key:?} must be a text, a number, a boolean or a list of these"
        ));
    };
    let id = flag.get_id().clone();
    Ok(Setting { id, key, values })
}

/// Whether a file may set this argument.
fn is_key(arg: &Arg) -> bool {
    let long = arg.get_long();
    long.is_some_and(|flag| !["config", "help", "version"].contains(&flag))
}

/// Checks each value of the file against its flag, without the other arguments. Values that a flag requires besides may come from
/// elsewhere.
fn check(command: Command, settings: &[Setting], path: &Path) -> Result<(), clap::Error> {
    let program = command.get_name().to_owned();
    let flag = |key: &str, value: &str| format!("--{key}={value}");
    let flags = settings
        .iter()
        .flat_map(|setting| setting.values.iter().map(|value| flag(&setting.key, value)));
    let arguments: Vec<_> = [program].into_iter().chain(flags).collect();
    let Err(mut error) = without_environment(command).try_get_matches_from(arguments) else {
        return Ok(());
    };
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return Ok(());
    }
    if let Some(key) = wrong_flag(&error) {
        let named = format!("{key} in {}", path.display());
        error.insert(ContextKind::InvalidArg, ContextValue::String(named));
    }
    Err(error)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value.as_array() {
        Some(values) => values.iter().map(text).collect(),
        None => Some(vec![text(value)?]),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // A float has its decimal point, so that a flag for a whole number refuses 1.0 too.
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        Value::Array(_) | Value::Datetime(_) | Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::NamedTempFile;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        config: ConfigArgs,
        #[arg(long, default_value = "127.0.0.1:1")]
        listen: String,
        #[arg(long, default_value_t = 1)]
        count: u8,
        #[arg(long)]
        manifest: Vec<String>,
    }

    fn file(text: &str) -> NamedTempFile {
        let file = NamedTempFile::new().expect("a file");
        fs::write(&file, text).expect("it can be written");
        file
    }

    fn parse_with(file: &NamedTempFile, flags: &[&str]) -> Result<Program, clap::Error> {
        let start = ["program".into(), "--config".into(), file.path().into()];
        parse(start.into_iter().chain(flags.iter().map(OsString::from)))
    }

    #[test]
    fn file_goes_before_the_default() {
        let program = parse_with(&file("listen = \"file:1\"\nmanifest = [\"a\", \"b\"]"), &[])
            .expect("valid");
        assert_eq!(program.listen, "file:1");
        assert_eq!(program.manifest, ["a", "b"]);
        assert!(program.config.config.is_some());
        assert_eq!(program.count, 1);
    }

    #[test]
    fn flag_goes_before_the_file() {
        let program =
            parse_with(&file("listen = \"file:1\""), &["--listen", "flag:1"]).expect("valid");
        assert_eq!(program.listen, "flag:1");
    }

    #[test]
    fn what_no_flag_can_have_is_refused_with_its_key_and_the_file() {
        for (text, wrong) in [
            ("manifest = [[\"a\"]]", "config {}: key \"manifest\""),
            ("config = \"file\"", "config {}: unknown key \"config\""),
            ("count = 1.0", "'1.0' for 'count in {}'"),
            ("count = [1, 2]", "'count in {}'"),
        ] {
            let file = file(text);
            let error = parse_with(&file, &[]).expect_err(text);
            let wrong = wrong.replace("{}", &file.path().display().to_string());
            assert!(error.to_string().contains(&wrong), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn durations_name_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1h", "1.5s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

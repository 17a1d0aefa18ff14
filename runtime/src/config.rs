//! Configuration in layers: flags over environment over a file over defaults.
//!
//! The file is TOML with one key for each flag, by the flag's long name: `listen = "0.0.0.0:50051"`. Its values take the
//! place of the defaults before the arguments are parsed, so the precedence is clap's own.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Command, Parser, error::ErrorKind};
use thiserror::Error;
use toml::{Table, Value};

/// Names the file. Flatten it into the binary's arguments.
#[derive(Args, Clone, Debug)]
pub struct ConfigArgs {
    /// A TOML file with a key for each flag, such as `listen = "0.0.0.0:50051"`. Flags and environment go before it.
    #[arg(long, env = "DECREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Error)]
enum FileError {
    #[error("config {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("config {}: {source}", path.display())]
    Syntax {
        path: PathBuf,
        source: toml::de::Error,
    },
    #[error("config {}: unknown key {key:?}; known are {known}", path.display())]
    Unknown {
        path: PathBuf,
        key: String,
        known: String,
    },
    #[error("config {}: key {key:?} must be a text, a number, a boolean or a list of these", path.display())]
    Shape { path: PathBuf, key: String },
}

/// Parses `arguments`, the first of which is the program, over environment and file.
///
/// # Errors
/// As clap's; [`clap::Error::exit`] prints it and ends the process. An unreadable file or an unknown key is a usage error.
pub fn parse<A: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let mut command = A::command();
    if let Some(path) = config_path(command.clone(), &arguments) {
        command = with_file(command, &path)
            .map_err(|error| A::command().error(ErrorKind::InvalidValue, error))?;
    }
    let matches = command.try_get_matches_from(arguments)?;
    A::from_arg_matches(&matches)
}

/// Reads a duration as flags write it: a whole number and `ms`, `s` or `m`, such as `500ms`.
///
/// # Errors
/// Says what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err("must be a whole number and one of ms, s, m".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "must begin with a whole number".to_owned())?;
    Ok(Duration::from_millis(number.saturating_mul(unit)))
}

fn config_path(command: Command, arguments: &[OsString]) -> Option<PathBuf> {
    let matches = command
        .ignore_errors(true)
        .try_get_matches_from(arguments)
        .ok()?;
    matches.try_get_one("config").ok()?.cloned()
}

fn with_file(mut command: Command, path: &Path) -> Result<Command, FileError> {
    let read = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let syntax = |source| FileError::Syntax {
        path: path.to_owned(),
        source,
    };
    let table: Table = fs::read_to_string(path)
        .map_err(read)?
        .parse()
        .map_err(syntax)?;
    for (key, value) in table {
        let Some(id) = id_of(&command, &key) else {
            let known = keys(&command).collect::<Vec<_>>().join(", ");
            return Err(FileError::Unknown {
                path: path.to_owned(),
                key,
                known,
            });
        };
        let Some(defaults) = texts(&value) else {
            return Err(FileError::Shape {
                path: path.to_owned(),
                key,
            });
        };
        command = command.mut_arg(id, |arg| arg.default_values(defaults).required(false));
    }
    Ok(command)
}

fn id_of(command: &Command, key: &str) -> Option<clap::Id> {
    let named = |arg: &&clap::Arg| arg.get_long() == Some(key) && key != "config";
    command
        .get_arguments()
        .find(named)
        .map(|arg| arg.get_id().clone())
}

fn keys(command: &Command) -> impl Iterator<Item = &str> {
    let flags = command.get_arguments().filter_map(clap::Arg::get_long);
    flags.filter(|flag| !["config", "help", "version"].contains(flag))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Float(number) => Some(vec![number.to_string()]),
        Value::Boolean(flag) => Some(vec![flag.to_string()]),
        Value::Array(values) => values
            .iter()
            .map(texts)
            .collect::<Option<Vec<_>>>()
            .map(|nested| nested.concat()),
        Value::Datetime(_) | Value::Table(_) => None,
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
    }

    #[test]
    fn flag_goes_before_the_file() {
        let program =
            parse_with(&file("listen = \"file:1\""), &["--listen", "flag:1"]).expect("valid");
        assert_eq!(program.listen, "flag:1");
    }

    #[test]
    fn unknown_key_is_refused_by_name() {
        let error = parse_with(&file("lisen = \"file:1\""), &[]).expect_err("a typing error");
        assert!(
            error.to_string().contains("unknown key \"lisen\""),
            "{error}"
        );
    }

    #[test]
    fn key_with_a_table_is_refused() {
        let error = parse_with(&file("[listen]\nport = 1"), &[]).expect_err("not a flag's value");
        assert!(error.to_string().contains("key \"listen\""), "{error}");
    }

    #[test]
    fn unreadable_file_is_a_usage_error() {
        let arguments = ["program", "--config", "/nowhere/at/all"].map(OsString::from);
        let error = parse::<Program>(arguments).expect_err("no such file");
        assert_eq!(error.exit_code(), 2);
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

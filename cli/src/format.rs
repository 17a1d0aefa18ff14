//! Output formats, as kubectl takes them after `-o`.

use std::{borrow::Cow, io::Write};

use clap::{Args as Group, ValueEnum};
use decree_api::json::Json;
use prost::Message;
use serde_json::Value;
use service::escaped_json;

use crate::{
    exit::{Exit, Failure},
    page::one_line,
};

/// The values of `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For people, with all columns and details
    Wide,
    /// For programs, an object on each line
    Json,
    /// For programs, a document for each object
    Yaml,
    /// Only names, as input for kubectl
    Name,
}

/// How a command prints.
#[derive(Clone, Copy, Debug, Default, Group)]
pub(crate) struct PrintArgs {
    /// Output format. The shape of JSON is in docs/cli.md
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// A message as JSON, by its name in `decree.v1`. For many messages, keep a [`Json`].
pub(crate) fn proto_json(name: &str, message: &impl Message) -> serde_json::Result<Value> {
    Json::default().value(name, message)
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Exit::No, error.to_string())
    }
}

impl Format {
    /// Whether the reader is a person.
    pub(crate) const fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::Wide)
    }

    /// Writes one object for a program; `names` are the ReplicaSets in it. Writes JSON for tables.
    pub(crate) fn write(
        self,
        out: &mut dyn Write,
        object: &Value,
        names: &[&str],
    ) -> Result<(), Failure> {
        match self {
            Self::Table | Self::Wide | Self::Json => {
                writeln!(out, "{}", escaped_json(&object.to_string()))?;
            }
            Self::Yaml => {
                // JSON is YAML, and can escape each character.
                if let Cow::Owned(json) = escaped_json(&object.to_string()) {
                    return Ok(writeln!(out, "---\n{json}")?);
                }
                let text = serde_saphyr::to_string(object).map_err(|error| {
                    Failure::new(Exit::No, format!("cannot be written as YAML: {error}"))
                })?;
                write!(out, "---\n{text}")?;
            }
            Self::Name => names
                .iter()
                .try_for_each(|name| writeln!(out, "replicaset.apps/{}", one_line(name)))?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(format: Format, object: &Value) -> String {
        let mut text = Vec::new();
        let written = format.write(&mut text, object, &["a\u{202e}b"]);
        written.expect("it can be written");
        String::from_utf8(text).expect("it is UTF-8")
    }

    #[test]
    fn no_format_steers_a_terminal_and_each_means_the_same() {
        let text = "\u{1b}[2J \u{9b}2J \u{7f} \u{202e} \u{2028} \u{feff} ö 東京";
        let object = json!({"text": text, text: ["a", 1, null]});
        for format in [Format::Json, Format::Yaml, Format::Name] {
            let written = written(format, &object);
            let lines = written.lines().map(service::escaped);
            assert!(written.lines().eq(lines), "{format:?}: {written:?}");
        }
        let read: Value =
            serde_json::from_str(&written(Format::Json, &object)).expect("it is JSON");
        assert_eq!(read, object);
        let read: Value =
            serde_saphyr::from_str(&written(Format::Yaml, &object)).expect("it is YAML");
        assert_eq!(read, object);
        assert_eq!(written(Format::Yaml, &json!({"a": "ö"})), "---\na: ö\n");
    }
}

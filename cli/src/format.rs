//! Output formats, as kubectl takes them after `-o`.

use std::io::Write;

use clap::{Args as Group, ValueEnum};
use serde_json::Value;

use crate::{
    exit::{Exit, Failure},
    table::one_line,
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
#[derive(Clone, Copy, Debug, Group)]
pub(crate) struct PrintArgs {
    /// Output format. The shape of JSON is in docs/cli.md
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Format,
    /// Print tables without the line of headers
    #[arg(long)]
    pub(crate) no_headers: bool,
}

// === impl Format ===

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
            Self::Table | Self::Wide | Self::Json => writeln!(out, "{object}")?,
            Self::Yaml => {
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

//! Logs: lines for people on a terminal, JSON elsewhere.

use std::{
    io::{self, IsTerminal},
    panic,
};

use clap::{Args, ValueEnum};
use thiserror::Error;
use tracing_subscriber::{
    EnvFilter, fmt,
    util::{SubscriberInitExt, TryInitError},
};

/// How a binary logs. Flatten it into the binary's arguments.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// How log lines look: `pretty` on a terminal and `json` elsewhere if `auto`. They go to standard error.
    #[arg(long, env = "DECREE_LOG_FORMAT", value_enum, default_value_t = Format::Auto)]
    pub log_format: Format,

    /// The least severe level that is logged, or filters by target such as `info,decree_server=debug`.
    #[arg(
        long,
        env = "DECREE_LOG_LEVEL",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log_level: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people on a terminal, for programs elsewhere.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// One JSON object a line, the fields of the event at its top level.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, Error)]
pub enum LogError {
    /// The filter is not one.
    #[error("log level {filter:?} is not a level or a list of filters")]
    Filter {
        /// As it was given.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// A subscriber is installed already.
    #[error("logging is set up already")]
    Twice(#[source] TryInitError),
}

// === impl LogArgs ===

impl LogArgs {
    /// Sets the logs of the process up; a panic becomes an ERROR line as well.
    ///
    /// # Errors
    /// If the filter cannot be read, or this was done before.
    pub fn init(&self) -> Result<(), LogError> {
        let filter = EnvFilter::try_new(&self.log_level).map_err(|source| LogError::Filter {
            filter: self.log_level.clone(),
            source,
        })?;
        let lines = fmt().with_env_filter(filter).with_writer(io::stderr);
        if self.is_pretty() {
            let ansi = io::stderr().is_terminal();
            lines
                .with_ansi(ansi)
                .with_target(false)
                .finish()
                .try_init()
                .map_err(LogError::Twice)?;
        } else {
            let json = lines.json().flatten_event(true).with_span_list(false);
            json.finish().try_init().map_err(LogError::Twice)?;
        }
        panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
        Ok(())
    }

    fn is_pretty(&self) -> bool {
        match self.log_format {
            Format::Auto => io::stderr().is_terminal(),
            Format::Pretty => true,
            Format::Json => false,
        }
    }
}

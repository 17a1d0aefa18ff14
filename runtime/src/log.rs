//! Logs: lines for people on a terminal, JSON elsewhere.

mod fields;
mod filter;
mod line;

use std::{
    io::{self, IsTerminal, Write as _},
    panic,
};

use clap::{Args, ValueEnum};
use serde_json::Map;
use thiserror::Error;
use tracing::{Event, Subscriber, span};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::{SubscriberInitExt as _, TryInitError},
};

use self::{
    fields::Fields,
    line::{Line, LineStyle},
};
pub use self::{
    filter::{Filter, FilterError},
    line::{escaped, excerpt},
};

/// How a binary logs. Flatten it into the binary's arguments.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// The format of the log on standard error; `auto` is `pretty` on a terminal and `json` elsewhere.
    #[arg(long, env = "DECREE_LOG_FORMAT", value_enum, default_value_t = Format::Auto)]
    pub log_format: Format,

    /// The log level (off, error, warn, info, debug or trace), or a list with levels for targets, such as
    /// `info,decree_server=debug`.
    #[arg(
        long,
        env = "DECREE_LOG_LEVEL",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log_level: Filter,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `pretty` on a terminal, `json` elsewhere.
    #[default]
    Auto,
    /// For people: the time in UTC, the level, the message, its fields, and then those of its session.
    Pretty,
    /// One JSON object a line, with all fields at its top level.
    Json,
}

/// A subscriber is already installed.
#[derive(Debug, Error)]
#[error("logging is set up already")]
pub struct LogError(#[source] TryInitError);

/// Writes a line for each event, with the fields of the spans around it.
struct Lines(LineStyle);

// === impl LogArgs ===

impl LogArgs {
    /// Sets up the logs of the process. A panic becomes an ERROR line as well.
    ///
    /// # Errors
    /// If the logs are already set up.
    pub fn init(&self) -> Result<(), LogError> {
        let lines = Lines(self.shape());
        tracing_subscriber::registry()
            .with(EnvFilter::new(self.log_level.to_string()))
            .with(lines)
            .try_init()
            .map_err(LogError)?;
        panic::set_hook(Box::new(crate::failure::panicked));
        Ok(())
    }

    fn shape(&self) -> LineStyle {
        let terminal = io::stderr().is_terminal();
        match self.log_format {
            Format::Auto if !terminal => LineStyle::Json,
            Format::Auto | Format::Pretty => LineStyle::Pretty { color: terminal },
            Format::Json => LineStyle::Json,
        }
    }
}

// === impl Lines ===

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, span: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        span.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut around = Map::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                for (name, value) in &fields.values {
                    let entry = around.entry(name.clone());
                    entry.or_insert_with(|| value.clone());
                }
            }
        }
        let line = Line::of(event, around).written(self.0);
        // If the log cannot be written, there is no better place to report that.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

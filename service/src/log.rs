//! Logs: lines for people on a terminal, JSON elsewhere.

mod filter;
mod limit;

use std::{
    io::{self, IsTerminal as _},
    panic,
};

use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    field::MakeExt as _,
    fmt::{self, MakeWriter, format::debug_fn},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

pub use self::filter::Filter;
use self::limit::PeerLimit;
use crate::escape::{escaped, escaped_json, json_without_passwords};

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
    /// One JSON object a line, with the fields of its session in `span`.
    Json,
}

/// Writes JSON without the characters that steer a terminal, and without passwords. Each write is a whole line.
struct CleanJson<W>(W);

impl LogArgs {
    /// Sets up the logs of the process. A panic becomes an ERROR line as well.
    ///
    /// # Errors
    /// If the logs are already set up.
    pub fn init(&self) -> io::Result<()> {
        let is_terminal = io::stderr().is_terminal();
        let is_json = match self.log_format {
            Format::Auto => !is_terminal,
            Format::Pretty => false,
            Format::Json => true,
        };
        let lines = if is_json {
            json(io::stderr)
        } else {
            pretty(is_terminal, io::stderr)
        };
        tracing_subscriber::registry()
            .with(self.log_level.0.clone())
            .with(PeerLimit::default())
            .with(lines)
            .try_init()
            .map_err(io::Error::other)?;
        panic::set_hook(Box::new(crate::failure::panicked));
        Ok(())
    }
}

fn json<S, O, W>(output: O) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    O: Fn() -> W + Send + Sync + 'static,
    W: io::Write + 'static,
{
    let lines = fmt::layer().json().flatten_event(true);
    let lines = lines.with_span_list(false);
    lines.with_writer(move || CleanJson(output())).boxed()
}

/// Lines whose values are escaped one by one: the library escapes no line breaks, and the colors of a line must stay.
fn pretty<S, W>(has_colors: bool, output: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let fields = debug_fn(|writer, field, value| {
        let text = escaped(&format!("{value:?}"));
        match field.name() {
            "message" => writer.write_str(&text),
            name => write!(writer, "{name}={text}"),
        }
    });
    let lines = fmt::layer().compact().with_target(false);
    let lines = lines
        .with_ansi(has_colors)
        .fmt_fields(fields.delimited(" "));
    lines.with_writer(output).boxed()
}

impl<W: io::Write> io::Write for CleanJson<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let clean = json_without_passwords(&text);
        self.0.write_all(escaped_json(&clean).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use serde_json::{Value, json};
    use tracing::{Dispatch, dispatcher::with_default, error_span, info};
    use tracing_subscriber::Registry;

    use super::*;

    type Written = Arc<Mutex<Vec<u8>>>;
    type Output = Box<dyn Fn() -> Kept + Send + Sync>;
    type Lines = Box<dyn Layer<Registry> + Send + Sync>;

    /// A writer that keeps what is written.
    struct Kept(Written);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs texts of a peer, and returns the log.
    fn logged(lines: impl FnOnce(Output) -> Lines) -> String {
        let written = Written::default();
        let output = Arc::clone(&written);
        let lines = lines(Box::new(move || Kept(Arc::clone(&output))));
        with_default(
            &Dispatch::new(tracing_subscriber::registry().with(lines)),
            || {
                let span = error_span!("session", cluster = "c\n\u{1b}[2J", shard = "");
                let hostile = "\u{9b}2J\u{202e}\r\nINFO \"forged\"";
                let url = "http://me:secret@host/x";
                span.in_scope(|| info!(why = %hostile, url, count = 3, "opened {hostile}"));
            },
        );
        let written = written.lock().expect("no one panics").clone();
        String::from_utf8(written).expect("it is UTF-8")
    }

    #[test]
    fn json_line_is_one_object_of_harmless_characters_without_passwords() {
        let line = logged(json);
        let text = line.strip_suffix('\n').expect("a line break");
        let is_harmless = |it: char| !it.is_control() && it != '\u{202e}';
        assert!(text.chars().all(is_harmless), "{text}");
        let line: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(line["level"], "INFO");
        assert_eq!(
            line["message"],
            "opened \u{9b}2J\u{202e}\r\nINFO \"forged\""
        );
        assert_eq!(line["url"], "http://…@host/x");
        assert_eq!(line["count"], 3);
        let span = json!({"cluster": "c\n\u{1b}[2J", "shard": "", "name": "session"});
        assert_eq!(line["span"], span);
    }

    #[test]
    fn pretty_line_is_one_line_of_harmless_characters_without_passwords() {
        let line = logged(|output| pretty(false, output));
        let (_, text) = line.split_once("INFO ").expect("a level");
        assert_eq!(
            text,
            "session: opened \\u{9b}2J\\u{202e}\\r\\nINFO \"forged\" why=\\u{9b}2J\\u{202e}\\r\\nINFO \"forged\" \
             url=\"http://…@host/x\" count=3 cluster=\"c\\n\\u{1b}[2J\" shard=\"\"\n"
        );
        let colored = logged(|output| pretty(true, output));
        assert!(colored.contains("\u{1b}[32m INFO\u{1b}[0m"), "{colored}");
        assert_eq!(colored.matches('\n').count(), 1, "{colored}");
        assert!(!colored.contains("\u{1b}[2J"), "{colored}");
    }
}

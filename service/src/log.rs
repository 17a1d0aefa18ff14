//! Logs: lines for people on a terminal, JSON elsewhere.

mod fields;
mod filter;
mod line;
mod repeats;

use std::{
    io::{self, IsTerminal, Write},
    panic,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use serde_json::Map;
use tracing::{Event, Subscriber, span};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

pub use self::filter::Filter;
use self::{
    fields::Fields,
    line::{Line, LineStyle},
    repeats::Repeats,
};

/// How often lines that wait are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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

/// The logs of a process. Its drop writes the lines that wait, so it lasts as long as the process.
#[must_use]
pub struct Log(Lines);

/// Writes a line for each event, with the fields of the spans around it. A line with a field `peer`, at level INFO or above, is one that
/// the peer can cause at will: there is one a minute of each peer and kind. Clones share the lines that wait.
#[derive(Clone)]
struct Lines {
    style: LineStyle,
    output: Arc<Mutex<Output>>,
}

struct Output {
    repeats: Repeats,
    writer: Box<dyn Write + Send>,
}

impl LogArgs {
    /// Sets up the logs of the process. A panic becomes an ERROR line as well.
    ///
    /// # Errors
    /// If the logs are already set up, or a thread cannot be started.
    pub fn init(&self) -> io::Result<Log> {
        let lines = Lines::new(self.shape(), io::stderr());
        tracing_subscriber::registry()
            .with(self.log_level.0.clone())
            .with(lines.clone())
            .try_init()
            .map_err(io::Error::other)?;
        panic::set_hook(Box::new(crate::failure::panicked));
        let waiting = lines.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                loop {
                    thread::park_timeout(LOOK_EVERY);
                    waiting.write_due(Instant::now());
                }
            })?;
        Ok(Log(lines))
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
        let line = Line::of(event, around);
        let mut output = self.output();
        let admitted = output.repeats.admit(Instant::now(), line);
        output.write(admitted, self.style);
    }
}

impl Lines {
    fn new(style: LineStyle, writer: impl Write + Send + 'static) -> Self {
        let output = Output {
            repeats: Repeats::default(),
            writer: Box::new(writer),
        };
        Self {
            style,
            output: Arc::new(Mutex::new(output)),
        }
    }

    /// Writes the lines whose minute is over at `now`.
    fn write_due(&self, now: Instant) {
        let mut output = self.output();
        let due = output.repeats.due(now);
        output.write(due, self.style);
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    fn write(&mut self, lines: impl IntoIterator<Item = Line>, style: LineStyle) {
        for line in lines {
            let line = line.written(style);
            // If the log cannot be written, there is no better place to report that.
            let _ = self.writer.write_all(line.as_bytes());
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.write_due(Instant::now() + repeats::MINUTE);
    }
}

#[cfg(test)]
mod tests {
    use tracing::{debug, error_span, info, subscriber::with_default, warn};

    use super::*;

    /// A writer that keeps what is written. Clones share it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        /// The lines since the last call, without their times.
        fn take(&self) -> Vec<String> {
            let bytes = std::mem::take(&mut *self.0.lock().expect("no one panics"));
            let text = String::from_utf8(bytes).expect("it is UTF-8");
            let lines = text
                .lines()
                .map(|line| line.split_once("Z ").expect("a time").1);
            lines.map(|line| line.trim_start().to_owned()).collect()
        }
    }

    fn logged(act: impl FnOnce()) -> (Written, Lines) {
        let written = Written::default();
        let lines = Lines::new(LineStyle::Pretty { color: false }, written.clone());
        with_default(tracing_subscriber::registry().with(lines.clone()), act);
        (written, lines)
    }

    fn minutes(count: u32) -> Instant {
        Instant::now() + repeats::MINUTE * count
    }

    #[test]
    fn peer_has_a_line_a_minute_of_each_kind_with_the_number_left_out() {
        let begun = minutes(0);
        let (written, lines) = logged(|| {
            for number in 0..1_000 {
                info!(peer = "a", number, "opened");
                error_span!("session", peer = "b").in_scope(|| info!(number, "closed"));
                for reason in ["NO", "NEVER"] {
                    warn!(peer = "a", reason, "denied");
                }
            }
        });
        let first = [
            "INFO opened peer=a number=0",
            "INFO closed number=0 peer=b",
            "WARN denied peer=a reason=NO",
            "WARN denied peer=a reason=NEVER",
        ];
        assert_eq!(written.take(), first);
        lines.write_due(begun);
        assert_eq!(written.take(), [""; 0], "their minute has begun");
        lines.write_due(minutes(1));
        let last = [
            "INFO opened peer=a number=999 omitted=998",
            "INFO closed number=999 omitted=998 peer=b",
            "WARN denied peer=a reason=NO omitted=998",
            "WARN denied peer=a reason=NEVER omitted=998",
        ];
        assert_eq!(written.take(), last);
        lines.write_due(minutes(3));
        let Output { repeats, .. } = &*lines.output();
        assert!(
            repeats.is_empty(),
            "nothing is kept for peers that are silent"
        );
    }

    #[test]
    fn lines_that_no_peer_causes_and_those_for_debugging_are_all_written() {
        let (written, _) = logged(|| {
            for _ in 0..3 {
                warn!("no peer");
                debug!(peer = "a", "for debugging");
            }
        });
        assert_eq!(written.take().len(), 6);
    }

    #[test]
    fn any_number_of_peers_takes_bounded_room_and_lines() {
        let long = "x".repeat(10_000);
        let (written, lines) = logged(|| {
            for peer in 0..3_000 {
                for _ in 0..2 {
                    info!(peer = peer.to_string(), long, "opened");
                }
            }
        });
        assert_eq!(written.take().len(), repeats::KINDS_MAX + 1);
        lines.write_due(minutes(1));
        let last = written.take();
        assert_eq!(last.len(), repeats::KINDS_MAX + 1);
        assert!(
            last.iter().all(|line| line.len() < 1_000),
            "they were kept short"
        );
        let omitted = 2 * (3_000 - repeats::KINDS_MAX) - 2;
        let shared = format!(" omitted={omitted}");
        assert!(last.iter().any(|line| line.ends_with(&shared)), "{shared}");
    }
}

//! The final error of a process, so that no process ends without a reason.

use std::{
    error::Error,
    io::{self, Write as _},
    panic::PanicHookInfo,
};

use tracing::Level;

use crate::escape::escaped;

/// Reports why the process ends, and the causes. Logs an ERROR line if the logs show lines of this crate. Otherwise prints plain text on
/// standard error, because the logs may be off or not set up yet.
pub fn report(error: &dyn Error) {
    let (text, causes) = (error.to_string(), causes(error));
    if tracing::enabled!(Level::ERROR) {
        let cause = (!causes.is_empty()).then(|| causes.join(": "));
        tracing::error!(error = text, cause, "the process cannot continue");
        return;
    }
    let mut lines = format!("error: {}\n", escaped(&text));
    for cause in causes {
        lines = format!("{lines}  because: {}\n", escaped(&cause));
    }
    say(&lines);
}

/// An error and its causes in one line, without repetitions.
pub fn chain(error: &dyn Error) -> String {
    let mut texts = causes(error);
    texts.insert(0, error.to_string());
    texts.join(": ")
}

pub(crate) fn panicked(panic: &PanicHookInfo<'_>) {
    if tracing::enabled!(Level::ERROR) {
        tracing::error!(%panic, "panicked");
    } else {
        say(&format!("error: {}\n", escaped(&panic.to_string())));
    }
}

/// Prints a warning, regardless of the log level.
pub fn warn(text: &str) {
    if tracing::enabled!(Level::WARN) {
        tracing::warn!("{text}");
    } else {
        say(&format!("warning: {}\n", escaped(text)));
    }
}

fn say(text: &str) {
    // There is no better place to report that standard error is closed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The causes of an error, without the causes whose text the error ends with.
fn causes(error: &dyn Error) -> Vec<String> {
    let mut said = error.to_string();
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !said.ends_with(&cause) {
            causes.push(cause.clone());
            said = cause;
        }
        source = error.source();
    }
    causes
}

#[cfg(test)]
mod tests {
    use thiserror::Error;

    use super::*;

    #[derive(Debug, Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        cause: Option<Box<Self>>,
    }

    #[test]
    fn chain_names_each_cause_once() {
        let layers = ["refused", "connect: refused", "transport error"];
        let error = layers
            .into_iter()
            .fold(None, |cause, text| Some(Box::new(Layer { text, cause })));
        let error = error.expect("there are layers");
        assert_eq!(chain(&*error), "transport error: connect: refused");
    }
}

//! The last words of a process: none ends without saying why.

use std::{
    error::Error,
    io::{self, Write as _},
    panic::PanicHookInfo,
};

use tracing::Level;

use crate::log::escaped;

/// Says why the process ends: as an ERROR line where the logs show those of this crate, else as plain text on standard error, since the
/// logs may be off or not there yet. The causes follow the error, each once.
pub fn report(error: &dyn Error) {
    let (text, causes) = (error.to_string(), causes(error));
    if tracing::enabled!(Level::ERROR) {
        let cause = (!causes.is_empty()).then(|| causes.join(": "));
        tracing::error!(error = text, cause, "the process cannot go on");
        return;
    }
    let mut lines = format!("error: {}\n", escaped(&text));
    for cause in causes {
        lines = format!("{lines}  because: {}\n", escaped(&cause));
    }
    say(&lines);
}

/// Returns an error and its causes in one line, each once.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut texts = causes(error);
    texts.insert(0, error.to_string());
    texts.join(": ")
}

/// Says that something panicked, and where.
pub(crate) fn panicked(panic: &PanicHookInfo<'_>) {
    if tracing::enabled!(Level::ERROR) {
        tracing::error!(%panic, "panicked");
    } else {
        say(&format!("error: {}\n", escaped(&panic.to_string())));
    }
}

/// Says a warning, however quiet the logs are.
pub fn warn(text: &str) {
    if tracing::enabled!(Level::WARN) {
        tracing::warn!("{text}");
    } else {
        say(&format!("warning: {text}\n"));
    }
}

fn say(text: &str) {
    // There is no better place to report that standard error is closed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns the causes of an error, without those that the text before them ends with.
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

//! The final error of a process, so that no process ends without a reason.

use std::{
    error::Error,
    io::{self, Write as _},
    panic::{self, PanicHookInfo},
    process,
    sync::OnceLock,
};

use tracing::Level;

use crate::escape::escaped;

/// The exit code of Rust's own programs that panic.
const PANICKED: i32 = 101;

/// Whether a panic of this thread would be caught, where all others end the process.
static CATCHES: OnceLock<fn() -> bool> = OnceLock::new();

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
    let catches = CATCHES.get();
    if catches.is_some_and(|catches| catches()) {
        return;
    }
    if tracing::enabled!(Level::ERROR) {
        tracing::error!(%panic, "panicked");
    } else {
        say(&format!("error: {}\n", escaped(&panic.to_string())));
    }
    if catches.is_some() {
        end_at_once(PANICKED);
    }
}

/// From now on, a panic of any task ends the process after its report, unless the thread `catches` it, which then reports the fault itself.
/// For programs that keep no state: a restart finds out what happened, and the place of a task that is gone looks quiet for ever.
pub fn end_on_panic(catches: fn() -> bool) {
    // A program calls this once.
    let _ = CATCHES.set(catches);
    panic::set_hook(Box::new(panicked));
}

#[expect(
    clippy::disallowed_methods,
    reason = "a panic or a second signal asks for the end at once, and a destructor could hang"
)]
pub(crate) fn end_at_once(code: i32) -> ! {
    process::exit(code)
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
    use std::{env, process::Command, thread};

    use thiserror::Error;

    use super::*;

    #[derive(Debug, Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        cause: Option<Box<Self>>,
    }

    /// Set in the process that panics.
    const PANICS: &str = "DECREE_TEST_PANICS";

    #[test]
    fn panic_of_any_thread_ends_the_process() {
        if env::var_os(PANICS).is_some() {
            end_on_panic(|| thread::current().name() == Some("catches"));
            let catches = thread::Builder::new().name("catches".to_owned());
            let caught = catches.spawn(|| panic!("a caught panic"));
            assert!(caught.expect("it starts").join().is_err());
            let _ = thread::spawn(|| panic!("an odd object")).join();
            return;
        }
        let test = "failure::tests::panic_of_any_thread_ends_the_process";
        let mut process = Command::new(env::current_exe().expect("it runs"));
        let process = process.args(["--exact", test, "--nocapture"]);
        let output = process.env(PANICS, "1").output().expect("it starts");
        assert_eq!(output.status.code(), Some(PANICKED));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("an odd object"), "{said}");
        assert!(!said.contains("a caught panic"), "{said}");
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

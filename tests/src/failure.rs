//! A failed run of a world.

use std::fmt;

use crate::trace::Trace;

/// The objection of a checker, and how to repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The checker that objects.
    pub checker: &'static str,
    /// The reason.
    pub text: String,
    /// The world.
    pub world: String,
    /// The command that repeats the run.
    pub repeat: String,
    /// The trace; empty unless recorded.
    pub trace: Trace,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            checker,
            text,
            world,
            repeat,
            trace,
        } = self;
        let count = trace.lines().len();
        writeln!(f, "{checker}: {text}\n\nthe last of {count} happenings:")?;
        for line in trace.last() {
            writeln!(f, "  {line}")?;
        }
        write!(f, "\n{world} goes wrong. It is repeated by:\n  {repeat}")
    }
}

/// Runs a world, and once more with its trace if it fails.
///
/// # Errors
/// The failure, with its trace.
pub fn traced<T>(run: impl Fn(bool) -> Result<T, Failure>) -> Result<T, Failure> {
    run(false).or_else(|_| run(true))
}

//! Why a process cannot use what it was given, in words.

use std::error::Error;

/// A flag, a file or a folder that cannot be used, and the error behind that, if there is one.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Fault {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A fault with nothing behind it.
    pub fn new(what: impl Into<String>) -> Self {
        let (what, source) = (what.into(), None);
        Self { what, source }
    }

    /// A fault, and the error that caused it.
    pub fn because(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let (what, source) = (what.into(), Some(source.into()));
        Self { what, source }
    }
}

//! What a check came to.

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line of the answer.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) grade: Grade,
    pub(super) check: String,
    pub(super) detail: String,
    pub(super) hint: String,
}

// === impl Grade ===

impl Grade {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }

    /// Returns the mark of a line, in plain letters where the terminal has no others.
    pub(super) const fn mark(self, utf8: bool) -> &'static str {
        match (self, utf8) {
            (Self::Ok, true) => "√",
            (Self::Warn, true) => "‼",
            (Self::Fail, true) => "×",
            (Self::Ok, false) => "[ok]",
            (Self::Warn, false) => "[warn]",
            (Self::Fail, false) => "[fail]",
        }
    }
}

// === impl Finding ===

impl Finding {
    pub(super) fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            grade: Grade::Ok,
            check: check.into(),
            detail: detail.into(),
            hint: String::new(),
        }
    }

    pub(super) fn warn(
        check: impl Into<String>,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            grade: Grade::Warn,
            hint: hint.into(),
            ..Self::ok(check, detail)
        }
    }

    pub(super) fn fail(
        check: impl Into<String>,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            grade: Grade::Fail,
            ..Self::warn(check, detail, hint)
        }
    }
}

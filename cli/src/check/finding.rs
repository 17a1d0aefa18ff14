//! The result of a check.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line of the output.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) grade: Grade,
    pub(super) check: String,
    /// The result. Further lines are details of it.
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

    /// The mark of a line; ASCII on a terminal without UTF-8.
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

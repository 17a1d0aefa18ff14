//! The result of a check.

use decree::v1::Severity;

use crate::paint::Paint;

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

impl Grade {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }

    /// The mark of a line, in the color of how bad it is.
    pub(super) fn painted(self, paint: Paint) -> String {
        let (mark, severity) = match self {
            Self::Ok => ("√", Severity::InSync),
            Self::Warn => ("‼", Severity::Slow),
            Self::Fail => ("×", Severity::Blocked),
        };
        paint.paint(severity, mark)
    }
}

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

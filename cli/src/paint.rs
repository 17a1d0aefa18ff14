//! Colors on a terminal: how much something needs a person, and marks of what failed.
//!
//! [`Io`](crate::Io) says of each stream whether colors are wanted; text for programs never has any.

use clap::builder::styling::{AnsiColor, Style};
use decree::v1::Severity;

/// Whether a stream shows colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Without `is_on`, text stays unchanged.
    pub(crate) const fn new(is_on: bool) -> Self {
        Self(is_on)
    }

    /// The color of a severity: red, yellow, blue or green. An unknown severity has no color.
    pub(crate) fn paint(self, severity: Severity, text: &str) -> String {
        self.styled(style(severity), text)
    }

    /// The word before an error.
    pub(crate) fn error(self, text: &str) -> String {
        self.styled(style(Severity::Blocked).bold(), text)
    }

    /// The word before a hint.
    pub(crate) fn hint(self, text: &str) -> String {
        self.styled(AnsiColor::Cyan.on_default().bold(), text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

const fn style(severity: Severity) -> Style {
    match severity {
        Severity::Blocked => AnsiColor::Red.on_default(),
        Severity::Slow => AnsiColor::Yellow.on_default(),
        Severity::Working => AnsiColor::Blue.on_default(),
        Severity::InSync => AnsiColor::Green.on_default(),
        Severity::Unspecified => Style::new(),
    }
}

/// The severity of a state, for lists without a severity.
pub(crate) fn severity_of(state: &str) -> Severity {
    match state {
        "Blocked" => Severity::Blocked,
        "Slow" => Severity::Slow,
        "Working" => Severity::Working,
        "In sync" => Severity::InSync,
        _ => Severity::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_color_of_their_severity_on_a_stream_with_colors() {
        let (on, off) = (Paint::new(true), Paint::default());
        for (state, color) in [
            ("Blocked", 31),
            ("Slow", 33),
            ("Working", 34),
            ("In sync", 32),
        ] {
            let painted = format!("\u{1b}[{color}m{state}\u{1b}[0m");
            assert_eq!(on.paint(severity_of(state), state), painted);
            assert_eq!(off.paint(severity_of(state), state), state);
        }
        assert_eq!(on.paint(severity_of("STATE"), "STATE"), "STATE");
        assert_eq!(
            (on.error(""), off.error("error:")),
            ("".into(), "error:".into())
        );
    }
}

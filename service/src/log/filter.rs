//! The filter of log lines.

use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};

/// The filter of log lines: a level, `TARGET=LEVEL`, or a comma-separated list of these.
///
/// Stricter than [`Targets`], which treats an unknown word as a target, so that a misspelt level would silence everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(super) Targets);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new();
        for directive in text.split(',').map(str::trim) {
            let (target, level) = directive.rsplit_once('=').unwrap_or(("", directive));
            let is_part = |it: char| it.is_alphanumeric() || "_:-.".contains(it);
            let is_valid = !level.is_empty() && target.chars().all(is_part);
            let level: Option<LevelFilter> = level.parse().ok().filter(|_| is_valid);
            let level = level.ok_or_else(|| refusal(directive))?;
            targets = targets.with_target(target, level);
        }
        Ok(Self(targets))
    }
}

fn refusal(text: &str) -> String {
    format!(
        "{text:?} is neither a level (off, error, warn, info, debug, trace) nor TARGET=LEVEL, such as decree_server=debug"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_with_levels_are_taken() {
        for (text, filter) in [
            ("info", "=info"),
            ("WARN", "=warn"),
            ("off", "=off"),
            ("info, crate::listen=trace", "crate::listen=trace,=info"),
        ] {
            let parsed = text.parse::<Filter>().expect(text);
            assert_eq!(parsed.0.to_string(), filter);
        }
    }

    #[test]
    fn what_is_neither_is_refused_by_its_part() {
        for (text, part) in [
            ("loud", "loud"),
            ("", ""),
            ("info,", ""),
            ("foo=bar=baz", "foo=bar=baz"),
            ("foo=bar=info", "foo=bar=info"),
            ("info,decree_server=loud", "decree_server=loud"),
            ("decree_server", "decree_server"),
            ("decree_server=", "decree_server="),
            ("decree server=info", "decree server=info"),
            ("[session]=debug", "[session]=debug"),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(refusal(part)), "{text}");
        }
    }
}

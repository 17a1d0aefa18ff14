//! The filter of log lines.

use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

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
            let (target, level) = match directive.rsplit_once('=') {
                Some((target, level)) => (Some(target), level),
                None => (None, directive),
            };
            let parsed = parse(level).filter(|_| target.is_none_or(is_target));
            let level = parsed.ok_or_else(|| refusal(directive))?;
            targets = match target {
                Some(target) => targets.with_target(target, level),
                None => targets.with_default(level),
            };
        }
        Ok(Self(targets))
    }
}

/// A level by its name. [`LevelFilter`] also knows numbers.
fn parse(level: &str) -> Option<LevelFilter> {
    let is_level = LEVELS.iter().any(|it| it.eq_ignore_ascii_case(level));
    level.parse().ok().filter(|_| is_level)
}

fn is_target(target: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || "_:-.".contains(it);
    !target.is_empty() && target.chars().all(is_part)
}

fn refusal(text: &str) -> String {
    let levels = LEVELS.join(", ");
    format!("{text:?} is neither a level ({levels}) nor TARGET=LEVEL, such as decree_server=debug")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_with_levels_are_taken() {
        for (text, filter) in [
            ("info", "info"),
            ("WARN", "warn"),
            ("off", "off"),
            ("info, crate::listen=trace", "crate::listen=trace,info"),
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
            ("=info", "=info"),
            ("decree server=info", "decree server=info"),
            ("[session]=debug", "[session]=debug"),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(refusal(part)), "{text}");
        }
    }
}

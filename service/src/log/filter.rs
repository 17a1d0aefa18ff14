//! The filter of log lines.

use std::{fmt, str::FromStr};

use tracing_subscriber::EnvFilter;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter of log lines: a level, `TARGET=LEVEL`, or a comma-separated list of these.
///
/// Stricter than [`EnvFilter`], which treats an unknown word as a target, so that a misspelt level would silence everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(String);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let directives = text.split(',').map(str::trim).map(directive);
        let directives: Vec<_> = directives.collect::<Result<_, _>>()?;
        Ok(Self(directives.join(",")))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Checks one directive: `LEVEL`, or `TARGET[SPAN{FIELD=VALUE}]=LEVEL` with the parts before the level optional.
fn directive(text: &str) -> Result<&str, String> {
    let (subject, level) = match text.rsplit_once('=') {
        Some((subject, level)) => (Some(subject), level),
        None => (None, text),
    };
    let target = subject.map(|subject| subject.split('[').next().unwrap_or_default());
    let is_target = |target: &str| {
        let mut characters = target.chars();
        characters.all(|it| it.is_alphanumeric() || "_:-.".contains(it))
    };
    let is_level = LEVELS.iter().any(|it| it.eq_ignore_ascii_case(level));
    let is_valid = is_level && subject != Some("") && target.is_none_or(is_target);
    if is_valid && EnvFilter::try_new(text).is_ok() {
        Ok(text)
    } else {
        Err(refusal(text))
    }
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
            ("WARN", "WARN"),
            ("off", "off"),
            ("info,decree_server=debug", "info,decree_server=debug"),
            ("info, crate::listen=trace", "info,crate::listen=trace"),
            (
                "[session{cluster=prod}]=debug",
                "[session{cluster=prod}]=debug",
            ),
        ] {
            let parsed = text.parse::<Filter>().expect(text);
            assert_eq!(parsed.to_string(), filter);
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
            (
                "[session{cluster=prod]=debug",
                "[session{cluster=prod]=debug",
            ),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(refusal(part)), "{text}");
        }
    }
}

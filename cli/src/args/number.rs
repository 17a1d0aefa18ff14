//! Numbers as values of flags.

use std::ops::RangeInclusive;

/// The validity of a certificate, in days.
const DAYS: RangeInclusive<u16> = 1..=3650;

pub(super) fn at_least<T: TryFrom<i128>, const LEAST: i64>(text: &str) -> Result<T, String> {
    let number: i128 = text
        .parse()
        .map_err(|_| format!("must be a whole number, {LEAST} or more"))?;
    if number < i128::from(LEAST) {
        return Err(format!("must be {LEAST} or more"));
    }
    T::try_from(number).map_err(|_| "is too large".to_owned())
}

pub(super) fn days(text: &str) -> Result<u16, String> {
    let days = text.parse().ok().filter(|days| DAYS.contains(days));
    days.ok_or_else(|| format!("must be from {} to {}", DAYS.start(), DAYS.end()))
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::{super::Args, *};

    #[test]
    fn numbers_that_are_too_small_are_refused_with_the_least() {
        assert_eq!(at_least::<i32, 0>("0"), Ok(0));
        let too_small = Err("must be 0 or more".to_owned());
        assert_eq!(at_least::<i32, 0>("-1"), too_small);
        assert_eq!(at_least::<u16, 1>("0"), Err("must be 1 or more".to_owned()));
        assert_eq!(at_least::<u16, 1>("65536"), Err("is too large".to_owned()));
        let no_number = Err("must be a whole number, 0 or more".to_owned());
        assert_eq!(at_least::<i32, 0>("three"), no_number);
        assert_eq!((days("365"), days("0").is_err()), (Ok(365), true));
    }

    /// A command line with -1 for each flag whose value is a number.
    fn negative(command: &Command, above: &[String]) -> Vec<Vec<String>> {
        let is_number = |arg: &&clap::Arg| {
            let mut names = arg.get_value_names().unwrap_or_default().iter();
            names.any(|name| ["NUMBER", "COUNT", "RATIO"].contains(&name.as_str()))
        };
        let flags = command.get_arguments().filter(is_number);
        let lines = flags.filter_map(|arg| {
            let flag = [format!("--{}", arg.get_long()?), "-1".to_owned()];
            Some([above, &flag].concat())
        });
        let below = command.get_subcommands().flat_map(|command| {
            let path = [above, &[command.get_name().to_owned()]].concat();
            negative(command, &path)
        });
        lines.chain(below).collect()
    }

    #[test]
    fn negative_numbers_are_taken_for_values_and_not_for_flags() {
        let lines = negative(&Args::command(), &["decree".to_owned()]);
        assert!(lines.len() > 7, "only {} lines", lines.len());
        for line in lines {
            let words: Vec<_> = line.iter().map(std::ffi::OsString::from).collect();
            let parsed = super::super::parse(&words);
            let error = parsed.expect_err("it is too small");
            let text = error.to_string();
            assert!(text.contains("invalid value '-1' for "), "{line:?}: {text}");
        }
    }
}

//! Suggestions for unknown commands.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue},
};

use crate::near;

/// Adds the commands that the user probably meant to the error, with the commands above them.
pub(super) fn command(mut error: Error, root: &Command) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let mut known = Vec::new();
    for command in root.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = command.get_name();
        known.push((name.to_owned(), name.to_owned()));
        let below = command.get_subcommands().map(Command::get_name);
        known.extend(below.map(|it| (it.to_owned(), format!("{name} {it}"))));
    }
    let is_exact = known.iter().any(|(name, _)| name == word);
    let is_known = error.get(ContextKind::SuggestedSubcommand).is_some();
    if is_known && !is_exact {
        return error;
    }
    let names = known.iter().map(|(name, _)| name.as_str());
    let Some(meant) = near::nearest(word, names) else {
        return error;
    };
    let paths = known.iter().filter(|(name, _)| name == meant);
    let paths: Vec<_> = paths.map(|(_, path)| path.clone()).collect();
    error.insert(
        ContextKind::SuggestedSubcommand,
        ContextValue::Strings(paths),
    );
    error
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::parse;

    #[test]
    fn command_that_was_meant_is_named() {
        for (line, meant) in [
            ("gte rs", Some("'get'")),
            ("explian web", Some("'explain'")),
            ("scale web 3", Some("'demo scale'")),
            ("quota 3", Some("'demo quota'")),
            ("demo scal web 3", Some("'scale'")),
            ("frobnicate", None),
        ] {
            let words = ["decree"].into_iter().chain(line.split(' '));
            let words: Vec<_> = words.map(OsString::from).collect();
            let error = parse(&words).expect_err("it is unknown");
            let text = error.to_string();
            let tip = text.lines().find(|line| line.contains("tip: "));
            match meant {
                Some(meant) => assert!(tip.is_some_and(|tip| tip.contains(meant)), "{text}"),
                None => assert_eq!(tip, None, "{text}"),
            }
        }
    }
}

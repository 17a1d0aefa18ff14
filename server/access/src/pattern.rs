//! Texts in which `*` matches any text, also none.

use serde::Deserialize;

/// A text in which each `*` matches any text, also none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Pattern(String);

impl Pattern {
    /// The pattern of a text; every text is a pattern.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        // The earliest match of each part leaves the most text for the later parts.
        let middle = parts.try_fold(rest, |rest, part| {
            rest.find(part).map(|at| &rest[at + part.len()..])
        });
        middle.is_some_and(|rest| rest.ends_with(last))
    }

    /// Whether the pattern matches this text and no other.
    pub(crate) fn is_exactly(&self, text: &str) -> bool {
        self.0 == text && !text.contains('*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("eu", "eu", true),
            ("eu", "eu-1", false),
            ("", "", true),
            ("*", "", true),
            ("*", "anything", true),
            ("eu-*", "eu-1", true),
            ("eu-*", "us-eu-1", false),
            ("*-prod", "eu-prod", true),
            ("*-prod", "eu-prod-2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
        ] {
            let matches = Pattern::new(pattern).matches(text);
            assert_eq!(matches, expected, "{pattern} {text}");
        }
    }
}

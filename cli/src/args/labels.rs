//! Label selectors, as kubectl takes them after `-l`.

use std::str::FromStr;

use server_core::{Labels, Parts, Selector};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelFilter(Selector);

/// Key, operator, values.
type Requirement<'a> = (&'a str, &'static str, Vec<&'a str>);

impl LabelFilter {
    pub(crate) fn matches<'a>(
        &self,
        labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> bool {
        let labels = labels.into_iter();
        let labels = labels.map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        self.0.matches(&labels.collect::<Labels>())
    }
}

impl FromStr for LabelFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = Parts {
            match_labels: Vec::new(),
            match_expressions: split(text)
                .map(requirement)
                .collect::<Option<_>>()
                .ok_or("must be like app=web,tier in (front,back),!old")?,
        };
        Selector::parse(Some(parts))
            .map(Self)
            .map_err(|quarantine| quarantine.detail)
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .map(str::trim)
}

fn requirement(text: &str) -> Option<Requirement<'_>> {
    if let Some(key) = text.strip_prefix('!') {
        return Some((key.trim(), "DoesNotExist", Vec::new()));
    }
    for (sign, operator) in [("!=", "NotIn"), ("==", "In"), ("=", "In")] {
        if let Some((key, value)) = text.split_once(sign) {
            return Some((key.trim(), operator, vec![value.trim()]));
        }
    }
    let Some((key, rest)) = text.split_once(char::is_whitespace) else {
        return (!text.is_empty()).then_some((text, "Exists", Vec::new()));
    };
    let (word, values) = rest.trim().strip_suffix(')')?.split_once('(')?;
    let operator = match word.trim() {
        "in" => "In",
        "notin" => "NotIn",
        _ => return None,
    };
    Some((key, operator, values.split(',').map(str::trim).collect()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn selectors_read_as_in_kubectl() {
        let labels = [("app", "web"), ("tier", "front")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
        for (selector, expected) in [
            ("app=web", Some(true)),
            ("app==web,tier=front", Some(true)),
            ("app=api", Some(false)),
            ("app!=api", Some(true)),
            ("tier in (back, front),app", Some(true)),
            ("tier notin (front)", Some(false)),
            ("!old", Some(true)),
            ("!app", Some(false)),
            ("absent", Some(false)),
            ("", None),
            ("app=web,", None),
            ("a b=c", None),
            ("tier in front", None),
            ("tier in (a", None),
            ("tier like (a)", None),
            ("a=b c", None),
        ] {
            let filter = selector.parse::<LabelFilter>().ok();
            let matches = filter.map(|filter| filter.matches(&labels));
            assert_eq!(matches, expected, "{selector}");
        }
    }
}

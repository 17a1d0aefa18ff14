//! The refusals of an agent, by its messages. The messages of the bundled agent are parsed, and others are repeated.

use decree_api::{causes, v1};

use super::finding::{Names, blocked, said};

pub(super) fn refusal(words: &str, names: Names<'_>) -> v1::Cause {
    held(words, names)
        .unwrap_or_else(|| blocked(said("The agent refuses", words), "", names.explain()))
}

/// Reads `deletes in SCOPE are held since TIME: DETAIL; resume with: COMMAND`. The command is written anew, as the text comes from a peer.
fn held(words: &str, names: Names<'_>) -> Option<v1::Cause> {
    let (what, rest) = words.split_once(" are held since ")?;
    let (_, scope) = what.split_once("s in ")?;
    let (_, rest) = rest.split_once(": ")?;
    let (detail, _) = rest.split_once("; resume with: ").unwrap_or((rest, ""));
    let Names { namespace, name } = names;
    let (what, resume) = if scope.starts_with("replica set ") {
        (causes::HELD_BY_BUDGET, format!("{namespace}/{name}"))
    } else if scope == "the cluster" {
        (causes::HELD_BY_BUDGET_OF_CLUSTER, "--all".to_owned())
    } else {
        return None;
    };
    let text = match detail.strip_prefix("another controller is at work: ") {
        Some(other) => said(causes::OTHER_CONTROLLER, other),
        None => said(what, detail),
    };
    let group = if what == causes::HELD_BY_BUDGET {
        String::new()
    } else {
        text.clone()
    };
    Some(blocked(text, group, format!("decree resume {resume}")))
}

//! Reads the grants of a policy from TOML.

use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::permissions::{Grant, Role};

/// The fault of a policy, with its line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct PolicyError {
    /// The line, from 1: that of the value, or that at which its grant begins.
    pub line: usize,
    /// The fault, and the correct form.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    grant: Vec<Spanned<Grant>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Vec<Arc<Grant>>, PolicyError> {
    let at = |offset: usize, message: String| {
        let before = bytes.iter().take(offset);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        PolicyError { line, message }
    };
    let text = str::from_utf8(bytes);
    let text = text.map_err(|error| at(error.valid_up_to(), "is not UTF-8".to_owned()))?;
    let file: File = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        at(offset, without_values(error.message()))
    })?;
    if file.grant.is_empty() {
        let message = "a policy needs at least one [[grant]]: without any nobody may do anything";
        return Err(at(0, message.to_owned()));
    }
    let grants = file.grant.into_iter();
    let grants = grants.map(|grant| match fault(grant.get_ref()) {
        Some(fault) => Err(at(grant.span().start, fault.to_owned())),
        None => Ok(Arc::new(grant.into_inner())),
    });
    grants.collect()
}

/// The message of the parser on one line, without the value that it quotes: somebody may have named a file with a secret.
fn without_values(message: &str) -> String {
    let text = match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}…{}", &message[..=first], &message[last..])
        }
        _ => message.to_owned(),
    };
    text.replace('\n', "; ")
}

/// The fault of a grant, with the correct form.
fn fault(grant: &Grant) -> Option<&'static str> {
    let lists = [&grant.clusters, &grant.names, &grant.shards];
    let mut lists = lists.into_iter().flatten();
    match grant.role {
        Role::Admin if lists.next().is_some() => Some(
            "an admin's clusters are all: leave out clusters, names and shards, or write another role",
        ),
        Role::Agent | Role::Viewer if grant.clusters.is_none() && grant.names.is_none() => Some(
            "this role needs its clusters: write clusters = [\"UID\"] or names = [\"*\"], for example",
        ),
        _ if grant.identities.is_empty() || lists.any(Vec::is_empty) => {
            Some("an empty list makes the grant one for nothing; write \"*\" for all")
        }
        Role::Admin | Role::Agent | Role::Viewer => None,
    }
}

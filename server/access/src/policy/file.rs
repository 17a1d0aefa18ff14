//! The grants of a policy, and their TOML, with the line of each value for errors.

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::{
    identity::{Identity, IdentityPattern},
    pattern::Pattern,
    permissions::GrantScope,
};

/// A role that identities have for clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) identities: Vec<IdentityPattern>,
    pub(super) role: Role,
    /// The clusters; an admin has all.
    pub(super) scope: GrantScope,
}

/// The role of an identity for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Opens sessions for the cluster, and sees it.
    Agent,
    /// Sees the cluster.
    Viewer,
    /// Sees all clusters, and may call methods that no other role may call.
    Admin,
}

/// The fault of a policy, with its line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct PolicyError {
    /// The line, from 1.
    pub line: usize,
    /// The field, its fault, and the correct form.
    pub message: String,
}

/// A list with its position and the position of each text.
type Texts = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    grant: Vec<RawGrant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGrant {
    identities: Texts,
    role: Spanned<String>,
    clusters: Option<Texts>,
    names: Option<Texts>,
    shards: Option<Texts>,
}

impl Grant {
    pub(super) fn is_for(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|it| it.matches(identity))
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Vec<Grant>, PolicyError> {
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
    let grants = file.grant.into_iter().enumerate();
    let grants = grants.map(|(number, raw)| {
        grant(raw)
            .map_err(|Wrong { offset, message }| at(offset, format!("grant[{number}].{message}")))
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

/// A fault, and the byte at which it is.
struct Wrong {
    offset: usize,
    message: String,
}

fn wrong<T>(at: &Spanned<T>, message: impl Into<String>) -> Wrong {
    Wrong {
        offset: at.span().start,
        message: message.into(),
    }
}

fn grant(raw: RawGrant) -> Result<Grant, Wrong> {
    let RawGrant {
        identities,
        role: role_text,
        clusters,
        names,
        shards,
    } = raw;
    let role = role(&role_text)?;
    let lists = [
        ("clusters", &clusters),
        ("names", &names),
        ("shards", &shards),
    ];
    let mut given = lists
        .into_iter()
        .filter_map(|(field, list)| Some((field, list.as_ref()?)));
    if role == Role::Admin
        && let Some((field, list)) = given.next()
    {
        let message =
            format!("{field}: an admin's clusters are all; leave it out, or write another role");
        return Err(wrong(list, message));
    }
    if role != Role::Admin && clusters.is_none() && names.is_none() {
        let message = "role: say of which clusters, as in clusters = [\"UID\"] or names = [\"*\"]";
        return Err(wrong(&role_text, message));
    }
    let [clusters, names, shards] = lists.map(|(field, texts)| patterns(field, texts.as_ref()));
    Ok(Grant {
        identities: self::identities(&identities)?,
        role,
        scope: GrantScope {
            clusters: clusters?,
            names: names?,
            shards: shards?,
        },
    })
}

fn role(role: &Spanned<String>) -> Result<Role, Wrong> {
    match role.get_ref().as_str() {
        "agent" => Ok(Role::Agent),
        "viewer" => Ok(Role::Viewer),
        "admin" => Ok(Role::Admin),
        other => {
            let message = format!("role: {other:?} is not a role; write agent, viewer or admin");
            Err(wrong(role, message))
        }
    }
}

fn identities(texts: &Texts) -> Result<Vec<IdentityPattern>, Wrong> {
    not_empty("identities", texts)?;
    let parse = |(number, text): (usize, &Spanned<String>)| {
        let parsed = IdentityPattern::parse(text.get_ref());
        parsed.map_err(|fault| wrong(text, format!("identities[{number}]: {fault}")))
    };
    texts.get_ref().iter().enumerate().map(parse).collect()
}

fn patterns(field: &str, texts: Option<&Texts>) -> Result<Vec<Pattern>, Wrong> {
    let Some(texts) = texts else {
        return Ok(vec![Pattern::new("*")]);
    };
    not_empty(field, texts)?;
    let texts = texts.get_ref().iter();
    Ok(texts.map(|text| Pattern::new(text.get_ref())).collect())
}

fn not_empty(field: &str, texts: &Texts) -> Result<(), Wrong> {
    if texts.get_ref().is_empty() {
        let message = format!(
            "{field}: is empty, so that the grant would be for nothing; write \"*\" for all"
        );
        return Err(wrong(texts, message));
    }
    Ok(())
}

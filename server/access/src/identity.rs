//! The proven identity of a peer, and the form of identities in a policy.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{denial::Denial, pattern::Pattern};

/// The proven identity of a peer. Its text is its name in a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A peer without a credential: `anonymous`.
    Anonymous,
    /// A page of the console without a token, from the server's own machine or through a forwarded port: `console`.
    Console,
    /// The URI of a certificate, such as a SPIFFE id: `spiffe://example.org/agent`.
    Uri(String),
    /// The DNS name of a certificate without a URI: `dns:agent.example.org`.
    Dns(String),
    /// The subject of a token: `sub:system:serviceaccount:decree-system:decree-agent`.
    Subject(String),
    /// The user of a process at a Unix socket: `uid:65532`.
    Uid(u32),
}

/// Identities of one kind in a policy: the text of an identity, in which `*` matches any text. It matches no identity of another kind,
/// whatever the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdentityPattern {
    kind: &'static str,
    text: Pattern,
}

/// The kinds of identities in a policy, those with a text as its prefix. A text with none of these is a URI.
const KINDS: [&str; 5] = ["anonymous", "console", "dns:", "sub:", "uid:"];

impl Identity {
    /// Whether a credential proves it.
    pub const fn is_proven(&self) -> bool {
        !matches!(self, Self::Anonymous | Self::Console)
    }

    /// The kind and the text, as in a policy.
    fn parts(&self) -> (&'static str, Cow<'_, str>) {
        match self {
            Self::Anonymous => ("anonymous", "".into()),
            Self::Console => ("console", "".into()),
            Self::Uri(uri) => ("", uri.into()),
            Self::Dns(name) => ("dns:", name.into()),
            Self::Subject(subject) => ("sub:", subject.into()),
            Self::Uid(uid) => ("uid:", uid.to_string().into()),
        }
    }

    /// Returns the identity of a certificate that a trusted authority has signed, by its subject alternative names: its URI, or its DNS name
    /// if it has no URI.
    ///
    /// # Errors
    /// If it has no such name, or two of the kind that counts, so that its subject is unclear. A URI without an authority
    /// (`SCHEME://…`) names nobody: its text could read like an identity of another kind.
    pub fn of_certificate(uris: &[String], dns_names: &[String]) -> Result<Self, Denial> {
        match (uris, dns_names) {
            ([uri], _) if is_uri(uri) => Ok(Self::Uri(uri.clone())),
            ([_], _) | ([], []) => Err(Denial::IdentityMissing),
            ([], [name]) => Ok(Self::Dns(name.clone())),
            (_, _) => Err(Denial::IdentityAmbiguous),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = self.parts();
        write!(f, "{kind}{text}")
    }
}

impl<'de> Deserialize<'de> for IdentityPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl IdentityPattern {
    /// Parses a pattern. The error gives the correct form, if the pattern can never match an identity.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let is_whole = |kind: &&str| kind.ends_with(':') || *kind == text;
        let kinds = KINDS.into_iter().filter(is_whole);
        let mut parts = kinds.filter_map(|kind| Some((kind, text.strip_prefix(kind)?)));
        let (kind, text) = parts.next().unwrap_or(("", text));
        let number = text.parse::<u32>();
        let is_valid = match kind {
            "dns:" | "sub:" => !text.is_empty(),
            "uid:" => text == "*" || number.is_ok(),
            "" => is_uri(text),
            _ => true,
        };
        if !is_valid {
            // The text is not quoted, because it may be a token that is here by mistake.
            return Err(
                "is not an identity; write spiffe://DOMAIN/PATH, dns:NAME, sub:SUBJECT, uid:NUMBER, console or anonymous",
            );
        }
        let text = match number {
            Ok(number) if kind == "uid:" => Pattern::new(&number.to_string()),
            Ok(_) | Err(_) => Pattern::new(text),
        };
        Ok(Self { kind, text })
    }

    pub(crate) fn matches(&self, identity: &Identity) -> bool {
        let (kind, text) = identity.parts();
        self.kind == kind && self.text.matches(&text)
    }
}

/// Returns whether a text is a URI with an authority, or a pattern of such URIs.
fn is_uri(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.split_once("://").is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(valid)
            && !rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uris: &[&str], dns_names: &[&str]) -> Result<Identity, Denial> {
        let owned = |names: &[&str]| Vec::from_iter(names.iter().map(|name| (*name).to_owned()));
        Identity::of_certificate(&owned(uris), &owned(dns_names))
    }

    #[test]
    fn certificate_is_named_by_its_only_uri_or_else_its_only_dns_name() {
        let uri = Ok(Identity::Uri("spiffe://a/b".into()));
        assert_eq!(of(&["spiffe://a/b"], &["x", "y"]), uri);
        assert_eq!(of(&[], &["x"]), Ok(Identity::Dns("x".into())));
        assert_eq!(of(&[], &[]), Err(Denial::IdentityMissing));
        let two = of(&["spiffe://a/b", "spiffe://a/c"], &["x"]);
        assert_eq!(two, Err(Denial::IdentityAmbiguous));
        assert_eq!(of(&[], &["x", "y"]), Err(Denial::IdentityAmbiguous));
    }

    #[test]
    fn pattern_of_one_kind_matches_no_other() {
        let patterns = [
            "anonymous",
            "console",
            "spiffe://a/*",
            "dns:*",
            "sub:*",
            "uid:*",
        ];
        // Each text reads like an identity of some other kind.
        for text in [
            "anonymous",
            "console",
            "spiffe://a/b",
            "dns:a",
            "sub:a",
            "uid:7",
            "7",
        ] {
            let identities = [
                Identity::Uri(text.into()),
                Identity::Dns(text.into()),
                Identity::Subject(text.into()),
            ];
            for (kind, identity) in ["spiffe://a/*", "dns:*", "sub:*"].iter().zip(identities) {
                for pattern in patterns.iter().filter(|pattern| *pattern != kind) {
                    let pattern = IdentityPattern::parse(pattern).expect("valid");
                    assert!(!pattern.matches(&identity), "{pattern:?} {identity:?}");
                }
            }
        }
    }

    #[test]
    fn pattern_matches_identities_of_its_kind() {
        for (pattern, identity, expected) in [
            ("spiffe://a/*", Identity::Uri("spiffe://a/b".into()), true),
            ("dns:*.a", Identity::Dns("b.a".into()), true),
            ("sub:a*", Identity::Subject("ab".into()), true),
            ("uid:*", Identity::Uid(7), true),
            ("uid:7", Identity::Uid(70), false),
            ("anonymous", Identity::Anonymous, true),
            ("anonymous", Identity::Console, false),
            ("console", Identity::Console, true),
            ("console", Identity::Anonymous, false),
        ] {
            let pattern = IdentityPattern::parse(pattern).expect("valid");
            assert_eq!(pattern.matches(&identity), expected, "{pattern:?}");
        }
    }

    #[test]
    fn uri_that_reads_like_another_kind_names_no_one() {
        for uri in "anonymous console dns:ops.a sub:a uid:7 urn:uuid:7 ://a a://".split(' ') {
            for names in [&[][..], &["x"][..]] {
                assert_eq!(of(&[uri], names), Err(Denial::IdentityMissing), "{uri}");
            }
        }
    }

    #[test]
    fn text_that_is_no_identity_is_refused_with_what_would_be_right() {
        for text in " * agent uid:x uid: dns: sub: ://x *://x Anonymous".split(' ') {
            let error = IdentityPattern::parse(text).expect_err(text);
            assert!(error.contains("write spiffe://"), "{error}");
        }
    }
}

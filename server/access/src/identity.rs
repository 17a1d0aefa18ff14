//! The proven identity of a peer, and the form of identities in a policy.

use std::fmt;

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
pub(crate) enum IdentityPattern {
    /// A peer without a credential: `anonymous`.
    Anonymous,
    /// A page of the console without a token: `console`.
    Console,
    /// URIs: `spiffe://example.org/*`.
    Uri(Pattern),
    /// DNS names: `dns:*.example.org`.
    Dns(Pattern),
    /// Subjects of tokens: `sub:system:serviceaccount:decree-system:*`.
    Subject(Pattern),
    /// One user, or all of them: `uid:65532`, `uid:*`.
    Uid(Option<u32>),
}

impl Identity {
    /// Whether a credential proves it.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        !matches!(self, Self::Anonymous | Self::Console)
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
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::Console => f.write_str("console"),
            Self::Uri(uri) => f.write_str(uri),
            Self::Dns(name) => write!(f, "dns:{name}"),
            Self::Subject(subject) => write!(f, "sub:{subject}"),
            Self::Uid(uid) => write!(f, "uid:{uid}"),
        }
    }
}

impl IdentityPattern {
    /// Parses a pattern. The error gives the correct form, if the pattern can never match an identity.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let pattern = |text: &str| (!text.is_empty()).then(|| Pattern::new(text));
        let parsed = if text == "anonymous" {
            Some(Self::Anonymous)
        } else if text == "console" {
            Some(Self::Console)
        } else if let Some(name) = text.strip_prefix("dns:") {
            pattern(name).map(Self::Dns)
        } else if let Some(subject) = text.strip_prefix("sub:") {
            pattern(subject).map(Self::Subject)
        } else if let Some(uid) = text.strip_prefix("uid:") {
            let is_any = uid == "*";
            (is_any || uid.parse::<u32>().is_ok()).then(|| Self::Uid(uid.parse().ok()))
        } else {
            is_uri(text).then(|| Self::Uri(Pattern::new(text)))
        };
        // The text is not quoted, because it may be a token that is here by mistake.
        parsed.ok_or(
            "is not an identity; write spiffe://DOMAIN/PATH, dns:NAME, sub:SUBJECT, uid:NUMBER, console or anonymous",
        )
    }

    /// Returns the identity, if the pattern matches no other.
    pub(crate) fn exact(&self) -> Option<Identity> {
        let exact = |pattern: &Pattern| pattern.exact().map(str::to_owned);
        match self {
            Self::Anonymous => Some(Identity::Anonymous),
            Self::Console => Some(Identity::Console),
            Self::Uri(uri) => exact(uri).map(Identity::Uri),
            Self::Dns(name) => exact(name).map(Identity::Dns),
            Self::Subject(subject) => exact(subject).map(Identity::Subject),
            Self::Uid(uid) => uid.map(Identity::Uid),
        }
    }

    pub(crate) fn matches(&self, identity: &Identity) -> bool {
        match self {
            Self::Anonymous => *identity == Identity::Anonymous,
            Self::Console => *identity == Identity::Console,
            Self::Uri(uri) => matches!(identity, Identity::Uri(text) if uri.matches(text)),
            Self::Dns(name) => matches!(identity, Identity::Dns(text) if name.matches(text)),
            Self::Subject(it) => matches!(identity, Identity::Subject(text) if it.matches(text)),
            Self::Uid(None) => matches!(identity, Identity::Uid(_)),
            Self::Uid(Some(uid)) => *identity == Identity::Uid(*uid),
        }
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

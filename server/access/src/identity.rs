//! Who a peer has proven to be, and how identities are written in a policy.

use std::fmt;

use crate::{denial::Denial, pattern::Pattern};

/// What a connection's transport has verified of its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: plain text, or TLS without a client certificate.
    #[default]
    None,
    /// A client certificate that a trusted authority has signed, with its subject alternative names.
    Certificate {
        /// The URIs.
        uris: Vec<String>,
        /// The DNS names.
        dns_names: Vec<String>,
    },
    /// The process at the other end of a unix socket, by its user's id.
    UnixUid(u32),
}

/// Who a peer has proven to be. Its text is how a policy names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A peer that has proven nothing: `anonymous`.
    Anonymous,
    /// The URI of a certificate, such as a SPIFFE id: `spiffe://example.org/agent`.
    Uri(String),
    /// The DNS name of a certificate without a URI: `dns:agent.example.org`.
    Dns(String),
    /// The subject of a token: `sub:system:serviceaccount:decree-system:decree-agent`.
    Subject(String),
    /// The user of a process at a unix socket: `uid:65532`.
    Uid(u32),
}

/// Identities as a policy names them: an identity, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityPattern(Pattern);

// === impl Identity ===

impl Identity {
    /// Returns the identity that a credential proves. The URI of a certificate counts, without one its DNS name.
    ///
    /// # Errors
    /// If a certificate has no such name, or two of the kind that counts: then it is not clear who it is for.
    pub fn of(credential: &Credential) -> Result<Self, Denial> {
        match credential {
            Credential::None => Ok(Self::Anonymous),
            Credential::UnixUid(uid) => Ok(Self::Uid(*uid)),
            Credential::Certificate { uris, dns_names } => {
                match (uris.as_slice(), dns_names.as_slice()) {
                    ([uri], _) => Ok(Self::Uri(uri.clone())),
                    ([], [name]) => Ok(Self::Dns(name.clone())),
                    ([], []) => Err(Denial::IdentityMissing),
                    (_, _) => Err(Denial::IdentityAmbiguous),
                }
            }
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::Uri(uri) => f.write_str(uri),
            Self::Dns(name) => write!(f, "dns:{name}"),
            Self::Subject(subject) => write!(f, "sub:{subject}"),
            Self::Uid(uid) => write!(f, "uid:{uid}"),
        }
    }
}

// === impl IdentityPattern ===

impl IdentityPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Says what would be right, if it can never match an identity.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = |prefix| text.strip_prefix(prefix).map(|rest: &str| !rest.is_empty());
        let is_uid = text
            .strip_prefix("uid:")
            .map(|uid| uid == "*" || uid.parse::<u32>().is_ok());
        let is_uri = text
            .split_once("://")
            .map(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty());
        let is_valid = is_uid
            .or_else(|| rest("dns:"))
            .or_else(|| rest("sub:"))
            .or(is_uri)
            .unwrap_or(text == "anonymous");
        if is_valid {
            Ok(Self(Pattern::new(text)))
        } else {
            Err(format!(
                "{text:?} is not an identity; write spiffe://DOMAIN/PATH, dns:NAME, sub:SUBJECT, uid:NUMBER or anonymous"
            ))
        }
    }

    /// Returns whether it stands for an identity.
    #[must_use]
    pub fn matches(&self, identity: &Identity) -> bool {
        self.0.matches(&identity.to_string())
    }
}

fn is_scheme(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(uris: &[&str], dns_names: &[&str]) -> Credential {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Credential::Certificate {
            uris: owned(uris),
            dns_names: owned(dns_names),
        }
    }

    #[test]
    fn uri_of_a_certificate_counts_before_its_dns_names() {
        let of = |uris: &[&str], names: &[&str]| Identity::of(&certificate(uris, names));
        assert_eq!(
            of(&["spiffe://a/b"], &["x", "y"]),
            Ok(Identity::Uri("spiffe://a/b".into()))
        );
        assert_eq!(of(&[], &["x"]), Ok(Identity::Dns("x".into())));
    }

    #[test]
    fn certificate_without_a_name_or_with_two_is_no_identity() {
        let of = |uris: &[&str], names: &[&str]| Identity::of(&certificate(uris, names));
        assert_eq!(of(&[], &[]), Err(Denial::IdentityMissing));
        assert_eq!(
            of(&["spiffe://a/b", "spiffe://a/c"], &["x"]),
            Err(Denial::IdentityAmbiguous)
        );
        assert_eq!(of(&[], &["x", "y"]), Err(Denial::IdentityAmbiguous));
    }

    #[test]
    fn pattern_of_one_kind_matches_no_other() {
        let pattern = |text| IdentityPattern::parse(text).expect("valid");
        let subject = Identity::Subject("spiffe://a/b".into());
        assert!(!pattern("spiffe://a/*").matches(&subject));
        assert!(pattern("spiffe://a/*").matches(&Identity::Uri("spiffe://a/b".into())));
        assert!(pattern("uid:*").matches(&Identity::Uid(7)));
        assert!(!pattern("uid:7").matches(&Identity::Uid(70)));
        assert!(pattern("anonymous").matches(&Identity::Anonymous));
    }

    #[test]
    fn text_that_is_no_identity_is_refused_with_what_would_be_right() {
        for text in [
            "",
            "*",
            "agent",
            "uid:x",
            "uid:",
            "dns:",
            "sub:",
            "://x",
            "*://x",
            "Anonymous",
        ] {
            let error = IdentityPattern::parse(text).expect_err(text);
            assert!(error.contains("write spiffe://"), "{error}");
        }
    }
}

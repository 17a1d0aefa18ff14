//! Why something is denied.

use thiserror::Error;

use crate::token::TokenError;

/// Why a call or a session is denied. The text is for the peer: it says nothing of others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// The peer has proven nothing, and something is needed.
    #[error("this call needs a client certificate or a token")]
    CredentialRequired,
    /// The call carries a token that does not count.
    #[error("the token does not count: {0}")]
    TokenInvalid(TokenError),
    /// The token that a stream was opened with has expired.
    #[error("the token has expired; renew the session before it does")]
    TokenExpired,
    /// The certificate names no one.
    #[error(
        "the client certificate has no URI such as spiffe://DOMAIN/PATH and no DNS name alone among its subject alternative names"
    )]
    IdentityMissing,
    /// The certificate names several.
    #[error("the client certificate has more than one URI, or no URI and more than one DNS name")]
    IdentityAmbiguous,
    /// The identity may not do this.
    #[error("{identity} may not {what}")]
    NotAllowed {
        /// The peer's own identity.
        identity: String,
        /// What it asked for, in its own words.
        what: String,
    },
    /// The cluster belongs to another identity; the peer is told what it is told where it may not be the cluster's agent.
    #[error("{identity} may not {what}")]
    OtherOwner {
        /// The peer's own identity.
        identity: String,
        /// What it asked for, in its own words.
        what: String,
    },
}

// === impl Denial ===

impl Denial {
    /// Returns whether the peer has to prove who it is, rather than that it may not.
    #[must_use]
    pub const fn is_about_proof(&self) -> bool {
        match self {
            Self::CredentialRequired | Self::TokenInvalid(_) | Self::TokenExpired => true,
            Self::IdentityMissing
            | Self::IdentityAmbiguous
            | Self::NotAllowed { .. }
            | Self::OtherOwner { .. } => false,
        }
    }

    /// Returns the reason that the peer is told: `ErrorInfo.reason`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        if matches!(self, Self::OtherOwner { .. }) {
            "NOT_ALLOWED"
        } else {
            self.cause()
        }
    }

    /// Returns the reason that is counted and logged, which also says what the peer is not told.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::CredentialRequired => "CREDENTIAL_REQUIRED",
            Self::TokenInvalid(_) => "TOKEN_INVALID",
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::IdentityMissing => "IDENTITY_MISSING",
            Self::IdentityAmbiguous => "IDENTITY_AMBIGUOUS",
            Self::NotAllowed { .. } => "NOT_ALLOWED",
            Self::OtherOwner { .. } => "OTHER_OWNER",
        }
    }
}

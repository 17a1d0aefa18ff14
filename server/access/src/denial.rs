//! The causes of denials.

use thiserror::Error;

use crate::token::TokenError;

/// Why a call or a session is denied. The text is for the peer: it says nothing about others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// The peer has no credential, and needs one.
    #[error("this call needs a client certificate or a token")]
    CredentialRequired,
    /// The page has no token, and this server accepts none.
    #[error(
        "the policy of this server grants `console` no role, and the server accepts no tokens; add a grant with identities = [\"console\"]"
    )]
    ConsoleNotGranted,
    /// The call carries an invalid token.
    #[error("the token is not valid: {0}")]
    TokenInvalid(TokenError),
    /// The token of an open stream has expired.
    #[error("the token has expired; renew the session before it does")]
    TokenExpired,
    /// The certificate names nobody.
    #[error(
        "the client certificate has no URI such as spiffe://DOMAIN/PATH and no DNS name alone among its subject alternative names"
    )]
    IdentityMissing,
    /// The certificate has several names.
    #[error("the client certificate has more than one URI, or no URI and more than one DNS name")]
    IdentityAmbiguous,
    /// The identity may not do this.
    #[error("{identity} may not {what}")]
    NotAllowed {
        /// The peer's own identity.
        identity: String,
        /// The request, in the peer's own words.
        what: String,
    },
}

impl Denial {
    /// Whether the peer lacks a proof of its identity, and not a permission.
    pub const fn is_about_proof(&self) -> bool {
        matches!(
            self,
            Self::CredentialRequired | Self::TokenInvalid(_) | Self::TokenExpired
        )
    }

    /// The reason for programs: `ErrorInfo.reason`, in metrics and in logs.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::CredentialRequired => "CREDENTIAL_REQUIRED",
            Self::TokenInvalid(_) => "TOKEN_INVALID",
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::IdentityMissing => "IDENTITY_MISSING",
            Self::IdentityAmbiguous => "IDENTITY_AMBIGUOUS",
            Self::NotAllowed { .. } | Self::ConsoleNotGranted => "NOT_ALLOWED",
        }
    }
}

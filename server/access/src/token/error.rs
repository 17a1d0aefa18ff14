//! Why a token is invalid.

use thiserror::Error;

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is longer than [`super::TOKEN_BYTES_MAX`].
    #[error("it is longer than 8192 bytes")]
    TooLong,
    /// It is not a compact JWS with the required claims.
    #[error("it cannot be read")]
    Malformed,
    /// It names an algorithm other than its key's, or an unsupported one.
    #[error("its algorithm must be that of its key, RS256 or ES256")]
    Algorithm,
    /// Its key is not among the issuer's keys.
    #[error("its key is not known")]
    UnknownKey,
    /// Its signature does not match its key.
    #[error("its signature is wrong")]
    Signature,
    /// It is from another issuer.
    #[error("it is from another issuer")]
    Issuer,
    /// It is for another audience.
    #[error("it is for another audience")]
    Audience,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// Its time has not begun.
    #[error("it is not valid yet")]
    NotYetValid,
}

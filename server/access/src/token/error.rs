//! Why a token does not count.

use thiserror::Error;

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is longer than [`super::TOKEN_BYTES_MAX`].
    #[error("it is longer than 8192 bytes")]
    TooLong,
    /// It is not a compact JWS with the claims that are needed.
    #[error("it cannot be read")]
    Malformed,
    /// It names an algorithm that is not that of its key, or that is not taken at all.
    #[error("its algorithm must be that of its key, RS256 or ES256")]
    Algorithm,
    /// Its key is not among the issuer's.
    #[error("its key is not known")]
    UnknownKey,
    /// Its signature is not of its key.
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
    /// Its time has not come.
    #[error("it is not valid yet")]
    NotYetValid,
}

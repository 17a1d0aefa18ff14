//! Tokens: JSON Web Tokens of a service account, checked against the keys of their issuer.
//!
//! Only tokens of a Kubernetes API server are accepted: a compact JWS, signed with RS256 or ES256. A key knows its algorithm, and a token
//! that names another algorithm is refused. So neither `none` nor a shared secret made of a public key can pass.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use thiserror::Error;

pub use self::keys::Keys;

mod keys;

/// The longest accepted token, in bytes. Tokens of service accounts have about 1,000.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;
/// The longest accepted subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 512;
/// The maximum difference between the clocks of the issuer and of this machine, in seconds.
const LEEWAY: i64 = 10;

/// The conditions of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    /// The `iss` that a token must have.
    pub issuer: String,
    /// The audience that its `aud` must contain.
    pub audience: String,
}

/// The claims of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The subject.
    pub subject: String,
    /// When it expires, in seconds since 1970.
    pub expires: i64,
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is longer than [`TOKEN_BYTES_MAX`].
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

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; the verifier understands none.
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Payload {
    iss: String,
    sub: String,
    aud: Audience,
    exp: i64,
    nbf: Option<i64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Verifier {
    /// Checks a token at `now`.
    ///
    /// # Errors
    /// Says why the token is invalid. After [`TokenError::UnknownKey`], it may be valid with newer keys.
    pub fn verify(&self, now: i64, keys: &Keys, token: &str) -> Result<Claims, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let header: Header = read(header)?;
        if header.crit.is_some() {
            return Err(TokenError::Malformed);
        }
        let signature = decode(signature)?;
        keys.check(
            &header.alg,
            header.kid.as_deref(),
            signed.as_bytes(),
            &signature,
        )?;
        let Payload {
            iss,
            sub,
            aud,
            exp,
            nbf,
        } = read(payload)?;
        if iss != self.issuer {
            Err(TokenError::Issuer)
        } else if !aud.contains(&self.audience) {
            Err(TokenError::Audience)
        } else if exp.saturating_add(LEEWAY) <= now {
            Err(TokenError::Expired)
        } else if nbf.is_some_and(|nbf| nbf > now.saturating_add(LEEWAY)) {
            Err(TokenError::NotYetValid)
        } else if !(1..=SUBJECT_BYTES_MAX).contains(&sub.len()) || sub.contains(char::is_control) {
            Err(TokenError::Malformed)
        } else {
            Ok(Claims {
                subject: sub,
                expires: exp.saturating_add(LEEWAY),
            })
        }
    }
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenError::Malformed)
}

fn read<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| TokenError::Malformed)
}

impl Audience {
    fn contains(&self, wanted: &str) -> bool {
        match self {
            Self::One(one) => one == wanted,
            Self::Many(many) => many.iter().any(|one| one == wanted),
        }
    }
}

#[cfg(test)]
mod tests;

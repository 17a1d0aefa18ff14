//! The public keys of an issuer, as a JSON Web Key Set.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::TokenError;

/// The maximum number of keys of one issuer. API servers have one, or two while they rotate.
const KEYS_MAX: usize = 64;
/// The accepted sizes of a modulus in bytes: 2,048 to 8,192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// The bytes of a coordinate of P-256.
const COORDINATE_BYTES: usize = 32;

/// The keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Vec<IssuerKey>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct IssuerKey {
    id: Option<String>,
    public: Public,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Public {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

/// A key in JSON; other fields are not needed.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Parses a JSON Web Key Set. Keys of other kinds and purposes are left out.
    ///
    /// # Errors
    /// If it is no key set, has no usable key, or more keys than an issuer needs. The text quotes nothing of it: somebody may have named a
    /// file with a secret.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let JwkSet { keys } = serde_json::from_slice(json).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("is not a JSON Web Key Set, as line {line}, column {column} shows")
        })?;
        if keys.len() > KEYS_MAX {
            return Err(format!("has more than {KEYS_MAX} keys"));
        }
        let keys: Vec<_> = keys.into_iter().filter_map(IssuerKey::read).collect();
        if keys.is_empty() {
            let text = "has no RSA key of 2048 to 8192 bits and no EC key on P-256 for signatures";
            return Err(text.to_owned());
        }
        Ok(Self(keys))
    }

    /// Checks a signature. Without a key id, it tries each key of the algorithm.
    pub(super) fn check(
        &self,
        algorithm: &str,
        id: Option<&str>,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenError> {
        if !["RS256", "ES256"].contains(&algorithm) {
            return Err(TokenError::Algorithm);
        }
        let is_named = |key: &&IssuerKey| id.is_none() || key.id.as_deref() == id;
        let mut named = self.0.iter().filter(is_named).peekable();
        if named.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        let mut fitting = named
            .filter(|key| key.public.algorithm() == algorithm)
            .peekable();
        if fitting.peek().is_none() {
            Err(TokenError::Algorithm)
        } else if fitting.any(|key| key.public.has_signed(signed, signature)) {
            Ok(())
        } else {
            Err(TokenError::Signature)
        }
    }
}

impl IssuerKey {
    fn read(jwk: Jwk) -> Option<Self> {
        let Jwk {
            kty,
            kid,
            purpose,
            alg,
            n,
            e,
            crv,
            x,
            y,
        } = jwk;
        let public = match kty.as_str() {
            "RSA" => Public::rsa(&n?, &e?),
            "EC" if crv? == "P-256" => Public::p256(&x?, &y?),
            _ => None,
        }?;
        let fits = purpose.is_none_or(|purpose| purpose == "sig")
            && alg.is_none_or(|alg| alg == public.algorithm());
        fits.then_some(Self { id: kid, public })
    }
}

impl Public {
    fn rsa(n: &str, e: &str) -> Option<Self> {
        let (n, e) = (decode(n)?, decode(e)?);
        MODULUS_BYTES
            .contains(&n.len())
            .then_some(Self::Rsa { n, e })
    }

    fn p256(x: &str, y: &str) -> Option<Self> {
        let (x, y) = (decode(x)?, decode(y)?);
        let fits = x.len() == COORDINATE_BYTES && y.len() == COORDINATE_BYTES;
        fits.then(|| Self::P256([&[4][..], &x, &y].concat()))
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
                .is_ok(),
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(signed, signature)
                .is_ok(),
        }
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

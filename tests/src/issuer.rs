//! An issuer of tokens like an API server: it signs for service accounts, publishes its keys in a file, and rotates them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

/// The claim `iss` of its tokens.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How long a server accepts a token after it has expired, in seconds.
pub const LEEWAY: i64 = 10;

/// An issuer with one key for ES256, and the file of its key set.
#[derive(Debug)]
pub struct Issuer {
    key: EcdsaKeyPair,
    id: u32,
    random: SystemRandom,
    file: PathBuf,
}

impl Issuer {
    /// Makes a key, and publishes it in `jwks.json` of a folder.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn new(folder: &Path) -> Self {
        let random = SystemRandom::new();
        let issuer = Self {
            key: key(&random),
            id: 1,
            random,
            file: folder.join("jwks.json"),
        };
        issuer.publish();
        issuer
    }

    /// Returns the file with the set of keys.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Replaces the key, and publishes the new one in place of the old one.
    pub fn rotate(&mut self) {
        (self.key, self.id) = (key(&self.random), self.id + 1);
        self.publish();
    }

    /// Returns the claims of a token for `subject` and the audience `decree` that a server accepts for `seconds` from now.
    ///
    /// # Panics
    /// If the clock is before 1970.
    pub fn claims(subject: &str, seconds: i64) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = i64::try_from(now.expect("after 1970").as_secs()).expect("before year 292e9");
        json!({"iss": ISSUER, "sub": subject, "aud": ["decree"], "exp": now + seconds - LEEWAY})
    }

    /// Returns a token for `subject` that is valid for an hour.
    pub fn token(&self, subject: &str) -> String {
        self.sign(&Self::claims(subject, 3_600))
    }

    /// Returns a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({"alg": "ES256", "kid": self.id.to_string()}), claims)
    }

    /// Returns a token with this header and these claims, signed with ES256 for any header.
    ///
    /// # Panics
    /// If there is no randomness.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let signed = signed(header, claims);
        let signature = self.key.sign(&self.random, signed.as_bytes());
        format!("{signed}.{}", encode(signature.expect("it signs").as_ref()))
    }

    fn publish(&self) {
        let point = self.key.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
        let id = self.id.to_string();
        let key = json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id, "x": x, "y": y});
        // A reader never sees a half-written set.
        let next = self.file.with_extension("next");
        fs::write(&next, json!({"keys": [key]}).to_string()).expect("the folder can be written");
        fs::rename(&next, &self.file).expect("the folder can be written");
    }
}

fn key(random: &SystemRandom) -> EcdsaKeyPair {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, random).expect("there is randomness");
    EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), random).expect("it is a key")
}

fn signed(header: &Value, claims: &Value) -> String {
    [header, claims]
        .map(|part| encode(part.to_string().as_bytes()))
        .join(".")
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

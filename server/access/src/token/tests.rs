//! A token is valid only if everything about it is right.

use ring::{
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_800_000_000;

/// An issuer with one key of each algorithm.
struct Issuer {
    ec: EcdsaKeyPair,
    rsa: RsaKeyPair,
    random: SystemRandom,
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn claims() -> Value {
    json!({"iss": "https://issuer", "sub": "system:serviceaccount:a:b", "aud": ["x", "decree"], "exp": NOW + 600, "nbf": NOW})
}

fn verifier() -> Verifier {
    Verifier {
        issuer: "https://issuer".to_owned(),
        audience: "decree".to_owned(),
    }
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let ec = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let ec = EcdsaKeyPair::from_pkcs8(algorithm, ec.as_ref(), &random).expect("it is one");
        let rsa = RsaKeyPair::from_pkcs8(include_bytes!("../../testdata/rsa.pk8"));
        let rsa = rsa.expect("it is one");
        Self { ec, rsa, random }
    }

    fn jwks(&self) -> Value {
        let point = self.ec.public_key().as_ref();
        let rsa: rsa::PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        json!({"keys": [
            {"kty": "EC", "kid": "ec", "crv": "P-256", "alg": "ES256", "use": "sig", "x": base64(&point[1..33]), "y": base64(&point[33..])},
            {"kty": "RSA", "kid": "rsa", "n": base64(&rsa.n), "e": base64(&rsa.e)},
            {"kty": "oct", "kid": "shared", "k": "AAAA"},
            {"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AAAA", "y": "AAAA"},
        ]})
    }

    fn keys(&self) -> Keys {
        Keys::parse(self.jwks().to_string().as_bytes()).expect("a set")
    }

    /// Signs a header with this key's id, and claims, with that key.
    fn sign(&self, header: &Value, claims: &Value) -> String {
        let parts = [header, claims].map(|part| base64(part.to_string().as_bytes()));
        let signed = parts.join(".");
        let signature = if header["kid"] == "rsa" {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            let padding = &RSA_PKCS1_SHA256;
            self.rsa
                .sign(padding, &self.random, signed.as_bytes(), &mut signature)
                .expect("it signs");
            signature
        } else {
            let signature = self.ec.sign(&self.random, signed.as_bytes());
            signature.expect("it signs").as_ref().to_vec()
        };
        format!("{signed}.{}", base64(&signature))
    }
}

fn es256() -> Value {
    json!({"alg": "ES256", "kid": "ec"})
}

fn changed(mut of: Value, key: &str, value: Value) -> Value {
    of[key] = value;
    of
}

#[test]
fn token_of_either_algorithm_counts() {
    let issuer = Issuer::new();
    let expected = Claims {
        subject: "system:serviceaccount:a:b".to_owned(),
        expires: NOW + 610,
    };
    for header in [
        es256(),
        json!({"alg": "RS256", "kid": "rsa"}),
        json!({"alg": "ES256"}),
    ] {
        let token = issuer.sign(&header, &claims());
        let verified = verifier().verify(NOW, &issuer.keys(), &token);
        assert_eq!(verified, Ok(expected.clone()), "{header}");
    }
    let one = changed(claims(), "aud", json!("decree"));
    let token = issuer.sign(&es256(), &one);
    assert!(verifier().verify(NOW, &issuer.keys(), &token).is_ok());
}

#[test]
fn claims_that_are_not_right_are_told_apart() {
    let issuer = Issuer::new();
    let with = |key: &str, value: Value| changed(claims(), key, value);
    for (claims, expected) in [
        (with("iss", json!("https://other")), TokenError::Issuer),
        (
            with("aud", json!(["https://kubernetes.default.svc"])),
            TokenError::Audience,
        ),
        (with("aud", json!([])), TokenError::Audience),
        (with("exp", json!(NOW - 10)), TokenError::Expired),
        (with("nbf", json!(NOW + 11)), TokenError::NotYetValid),
        (with("exp", json!("never")), TokenError::Malformed),
        (with("exp", Value::Null), TokenError::Malformed),
        (with("nbf", json!("2026")), TokenError::Malformed),
        (with("sub", json!("")), TokenError::Malformed),
        (with("sub", json!("a\nb")), TokenError::Malformed),
        (with("sub", json!("x".repeat(513))), TokenError::Malformed),
        (json!({}), TokenError::Malformed),
        (json!([]), TokenError::Malformed),
    ] {
        let token = issuer.sign(&es256(), &claims);
        let verified = verifier().verify(NOW, &issuer.keys(), &token);
        assert_eq!(verified, Err(expected), "{claims}");
    }
    // The leeway covers clocks that differ.
    for claims in [with("exp", json!(NOW - 9)), with("nbf", json!(NOW + 10))] {
        let token = issuer.sign(&es256(), &claims);
        let verified = verifier().verify(NOW, &issuer.keys(), &token);
        assert!(verified.is_ok(), "{claims}");
    }
}

#[test]
fn algorithm_follows_from_the_key_and_never_from_the_token() {
    let issuer = Issuer::new();
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "none", "kid": "ec"}),
        json!({"alg": "HS256", "kid": "ec"}),
        json!({"alg": "HS256", "kid": "rsa"}),
        json!({"alg": "RS512", "kid": "rsa"}),
        json!({"alg": "RS256", "kid": "ec"}),
        json!({"alg": "ES256", "kid": "rsa"}),
    ] {
        let token = issuer.sign(&header, &claims());
        let verified = verifier().verify(NOW, &issuer.keys(), &token);
        assert_eq!(verified, Err(TokenError::Algorithm), "{header}");
    }
}

#[test]
fn signature_of_another_key_and_keys_that_are_not_known_are_refused() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    let token = other.sign(&es256(), &claims());
    let verified = verifier().verify(NOW, &issuer.keys(), &token);
    assert_eq!(verified, Err(TokenError::Signature));
    let token = issuer.sign(&json!({"alg": "ES256", "kid": "next"}), &claims());
    let verified = verifier().verify(NOW, &issuer.keys(), &token);
    assert_eq!(verified, Err(TokenError::UnknownKey));
}

#[test]
fn text_that_is_no_token_is_refused() {
    let issuer = Issuer::new();
    let good = issuer.sign(&es256(), &claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let critical = json!({"alg": "ES256", "kid": "ec", "crit": ["b64"]});
    for (token, expected) in [
        (String::new(), TokenError::Malformed),
        ("a.b.c".to_owned(), TokenError::Malformed),
        (signed.to_owned(), TokenError::Malformed),
        (format!("{signed}."), TokenError::Signature),
        (format!("{signed}.{signature}="), TokenError::Malformed),
        (format!("{good}.{signature}"), TokenError::Signature),
        (issuer.sign(&critical, &claims()), TokenError::Malformed),
        ("x".repeat(TOKEN_BYTES_MAX + 1), TokenError::TooLong),
    ] {
        assert_eq!(
            verifier().verify(NOW, &issuer.keys(), &token),
            Err(expected),
            "{token}"
        );
    }
}

#[test]
fn sets_without_a_key_that_can_be_used_are_refused() {
    let parse = |json: &str| Keys::parse(json.as_bytes()).map(|_| ());
    assert!(parse("{}").is_err_and(|error| error.contains("JSON Web Key Set")));
    assert!(parse("nothing").is_err());
    for json in [
        r#"{"keys": []}"#,
        r#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#,
        r#"{"keys": [{"kty": "RSA", "n": "AAAA", "e": "AQAB"}]}"#,
        r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}]}"#,
    ] {
        assert!(
            parse(json).is_err_and(|error| error.contains("has no RSA key")),
            "{json}"
        );
    }
    let many = vec![json!({"kty": "oct"}); 65];
    let error = parse(&json!({"keys": many}).to_string());
    assert!(error.is_err_and(|error| error.contains("more than 64")));
}

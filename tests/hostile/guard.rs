//! A server with authentication: its certificates, keys and policy, and the valid and invalid credentials of its peers.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use rcgen::ExtendedKeyUsagePurpose;
use serde::Deserialize;
use serde_json::{Value, json};
use service::transport::{Connector, Metrics};
use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    pki::{self, Authority, Files, Pair, Request},
};

const HOUR: Duration = Duration::from_secs(3600);
/// The lifetime of a certificate or a token that ends a stream: longer than a slow attacker takes to open one.
const SHORT: Duration = Duration::from_secs(20);

/// The permissions: every identity is the name in a certificate or a token.
const POLICY: &str = include_str!("policy.toml");

/// The proof of identity that peers of a cell need.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Proof {
    /// Certificates, and tokens in addition.
    Certificates,
    /// Only tokens: the server requires no certificate.
    Tokens,
}

/// The credentials of a peer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Who {
    /// The certificate, by its name in [`Guard::connector`]; `None` for no certificate.
    pub(crate) certificate: Option<String>,
    /// The token, by its name in [`Guard::token`].
    pub(crate) token: Option<String>,
}

/// The files of a server with authentication, and the credentials of its peers.
pub(crate) struct Guard {
    proof: Proof,
    authority: Authority,
    /// A CA that the server does not know.
    stranger: Authority,
    issuer: Issuer,
    /// The files of the server.
    files: Files,
    folder: TempDir,
    /// The credentials of peers so far, by the name of the certificate.
    peers: Mutex<HashMap<String, (Arc<Files>, Pair)>>,
}

impl Who {
    /// With this certificate.
    pub(crate) fn certified(name: &str) -> Self {
        Self {
            certificate: Some(name.to_owned()),
            token: None,
        }
    }

    /// With this token.
    pub(crate) fn bearing(name: &str) -> Self {
        Self {
            certificate: None,
            token: Some(name.to_owned()),
        }
    }
}

impl Guard {
    pub(crate) fn new(proof: Proof) -> Self {
        let folder = TempDir::new().expect("a folder");
        let authority = Authority::new("CA of the cells");
        let [(rsa, _), (sha1, _)] = pki::weak();
        let trusted = [&authority.pem, rsa, sha1].concat();
        let files = Files::new(&authority.issue(&Request::server()), &trusted);
        files.write("ca.crl", &authority.revoke(&[], SystemTime::now() + HOUR));
        let guard = Self {
            proof,
            stranger: Authority::new("another CA"),
            issuer: Issuer::new(folder.path()),
            files,
            folder,
            peers: Mutex::default(),
            authority,
        };
        guard.write("policy", POLICY);
        guard
    }

    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = self.files.flags();
        match self.proof {
            Proof::Certificates => {
                flags.push(format!("--tls-crl={}", self.files.path("ca.crl").display()));
            }
            Proof::Tokens => flags.retain(|flag| !flag.starts_with("--tls-ca")),
        }
        flags.extend([
            "--tls-reload-interval=100ms".to_owned(),
            "--access-interval=100ms".to_owned(),
            format!("--policy={}", self.path("policy").display()),
            format!("--token-keys={}", self.issuer.file().display()),
            format!("--token-issuer={ISSUER}"),
        ]);
        flags
    }

    /// Valid credentials of this name: the certificate or the token that the cell's server requires.
    pub(crate) fn who(&self, name: &str) -> Who {
        match self.proof {
            Proof::Certificates => Who::certified(name),
            Proof::Tokens => Who::bearing(name),
        }
    }

    /// A connector with this certificate, or without one.
    pub(crate) fn connector(&self, address: &str, certificate: Option<&str>) -> Connector {
        let (files, _) = self.peer(certificate.unwrap_or("none"));
        let mut args = files.client();
        if certificate.is_none() {
            (args.files.tls_cert, args.files.tls_key) = (None, None);
        }
        // The certificate exists before, and the files of a peer never change.
        args.files.tls_reload_interval = HOUR;
        let url = format!("https://{address}").parse().expect("an address");
        Connector::new(url, &args, Metrics::default()).expect("the files are right")
    }

    /// The certificate of a peer by its name, as files and in memory; made on the first call.
    fn peer(&self, name: &str) -> (Arc<Files>, Pair) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let pair = self.pair(name);
            (Arc::new(Files::new(&pair, &self.authority.pem)), pair)
        };
        peers.entry(name.to_owned()).or_insert_with(made).clone()
    }

    /// The certificate of this name, and the CA of the server, for a client with its own handshakes.
    pub(crate) fn pems(&self, name: &str) -> (Pair, &str) {
        (self.peer(name).1, &self.authority.pem)
    }

    /// A certificate with the fault of this name, or a valid one of this name.
    fn pair(&self, name: &str) -> Pair {
        let (now, own) = (SystemTime::now(), Request::client(&uri(name)));
        let issue = |request: &Request| self.authority.issue(request);
        match name {
            "of another CA" => self.stranger.issue(&Request::client(&uri("agent-a"))),
            "self-signed" => Request::client(&uri("agent-a")).self_signed(),
            "expired" => issue(&own.valid(now - 2 * HOUR, now - HOUR)),
            "of tomorrow" => issue(&own.valid(now + 23 * HOUR, now + 24 * HOUR)),
            "for servers" => issue(&own.usage(ExtendedKeyUsagePurpose::ServerAuth)),
            "agent-short" => issue(&own.valid(now - HOUR, now + SHORT)),
            "of RSA 1024" => pki::weak()[0].1.clone(),
            "of SHA-1" => pki::weak()[1].1.clone(),
            "no name" => issue(&Request {
                uris: Vec::new(),
                ..own
            }),
            "two URIs" => issue(&Request {
                uris: vec![uri("agent-a"), uri("admin")],
                ..own
            }),
            "two DNS names" => issue(&Request {
                uris: Vec::new(),
                names: vec!["a.test".to_owned(), "b.test".to_owned()],
                ..own
            }),
            "1,000 names" => issue(&Request {
                names: (0..1_000).map(|at| format!("n{at}.decree.test")).collect(),
                ..own
            }),
            names if names.starts_with("URI ") || names.starts_with("DNS ") => {
                let (uris, names) = alternative_names(names);
                issue(&Request { uris, names, ..own })
            }
            "long name" => issue(&Request::client(&uri(&"x".repeat(10_000)))),
            _ => issue(&own),
        }
    }

    /// The file of the CA of peers and servers.
    pub(crate) fn ca(&self) -> PathBuf {
        self.peer("none").0.path("ca.crt")
    }

    /// A certificate for a server with the fault of this name.
    pub(crate) fn server_pair(&self, name: &str) -> Pair {
        let (now, own) = (SystemTime::now(), Request::server());
        let issue = |request: &Request| self.authority.issue(request);
        match name {
            "right" => issue(&own),
            "of another CA" => self.stranger.issue(&own),
            "self-signed" => own.self_signed(),
            "expired" => issue(&own.valid(now - 2 * HOUR, now - HOUR)),
            "of tomorrow" => issue(&own.valid(now + 23 * HOUR, now + 24 * HOUR)),
            "for clients" => issue(&own.usage(ExtendedKeyUsagePurpose::ClientAuth)),
            "of another name" => issue(&Request {
                names: vec!["elsewhere.test".to_owned()],
                ..own
            }),
            "of RSA 1024" => pki::weak()[0].1.clone(),
            _ => panic!("no server has a certificate {name}"),
        }
    }

    /// A token with the fault of this name, or a valid one for a subject of this name.
    pub(crate) fn token(&self, name: &str, number: u64) -> String {
        let issuer = &self.issuer;
        let claims = |seconds| Issuer::claims("agent-a", seconds);
        let with = |key: &str, value: Value| {
            let mut claims = claims(600);
            claims[key] = value;
            issuer.sign(&claims)
        };
        let headed = |header: &Value| issuer.sign_as(header, &claims(600));
        match name {
            "expired" => issuer.sign(&claims(-1)),
            "short" => issuer.sign(&claims(SHORT.as_secs().cast_signed())),
            "of 1970" => with("exp", json!(0)),
            "before 1970" => with("exp", json!(i64::MIN)),
            "for ever" => with("exp", json!(i64::MAX)),
            "of a broken time" => with("exp", json!("tomorrow")),
            "without expiry" => with("exp", Value::Null),
            "of tomorrow" => with("nbf", json!(9_000_000_000_i64)),
            "for another audience" => with("aud", json!(["https://kubernetes.default.svc"])),
            "without audience" => with("aud", Value::Null),
            "for 300 audiences" => with("aud", (0..300).map(|at| format!("a-{at}")).collect()),
            "of another issuer" => with("iss", json!("https://issuer.example.org")),
            "of no subject" => with("sub", json!("")),
            "of a subject of 600 bytes" => with("sub", json!("x".repeat(600))),
            "of a subject with a line end" => with("sub", json!("agent-a\nagent-b")),
            "of claims in 200 lists" => deep(issuer, 200),
            "alg none" => headed(&json!({"alg": "none", "kid": "1"})),
            "HS256 by the public key" => issuer.sign_by_public_key(&claims(600)),
            "RS256 for a key on P-256" => headed(&json!({"alg": "RS256", "kid": "1"})),
            "of an unknown key" => headed(&json!({"alg": "ES256", "kid": format!("k-{number}")})),
            "of a key of 4 KB" => headed(&json!({"alg": "ES256", "kid": "k".repeat(4_000)})),
            "with an extension" => headed(&json!({"alg": "ES256", "kid": "1", "crit": ["exp"]})),
            "cut off" => issuer.token("agent-a").split_at(60).0.to_owned(),
            "of another signature" => format!("{}AA", issuer.token("agent-a")),
            "no JSON" => "bm8.bm8.bm8".to_owned(),
            "empty" => String::new(),
            "of dots" => ".".repeat(5_000),
            "of 9 KB" => "x".repeat(9_000),
            "of 60 KB" => "x".repeat(60_000),
            subject => issuer.token(subject),
        }
    }

    /// Executes a step of a script: `revoke NAME`, `trust another`, `policy …`, `keys …`, `certificate …`.
    pub(crate) fn turn(&self, words: &[&str]) {
        match words {
            ["revoke", name] => self.revoke(name),
            ["revocations", "broken"] => self.files.write("ca.crl", "no list"),
            ["trust", "another"] => self.files.write("ca.crt", &self.stranger.pem),
            ["certificate", "broken"] => self.files.write("tls.crt", "no certificate"),
            ["certificate", "half"] => {
                let next = self.authority.issue(&Request::server());
                self.files.write("tls.crt", &next.cert);
            }
            ["policy", "broken"] => self.write("policy", "[[grant]]\nidentities = 7"),
            ["policy", "empty"] => self.write("policy", ""),
            ["policy", "huge"] => self.write("policy", &"#\n".repeat(1 << 20)),
            ["policy", "gone"] => fs::remove_file(self.path("policy")).expect("it is there"),
            ["policy", "strict"] => {
                let least = POLICY.split("[[grant]]").take(5).collect::<Vec<_>>();
                self.write("policy", &least.join("[[grant]]"));
            }
            ["keys", "broken"] => fs::write(self.issuer.file(), "{").expect("it can be written"),
            ["keys", "gone"] => fs::remove_file(self.issuer.file()).expect("it is there"),
            ["keys", "thousand"] => {
                let keys: Vec<_> = (0..1_000)
                    .map(|at| json!({"kty": "EC", "kid": at.to_string()}))
                    .collect();
                let text = json!({ "keys": keys }).to_string();
                fs::write(self.issuer.file(), text).expect("it can be written");
            }
            _ => panic!("{words:?} turns nothing"),
        }
    }

    fn revoke(&self, name: &str) {
        let pair = self.peer(name).1;
        let list = self.authority.revoke(&[&pair], SystemTime::now() + HOUR);
        self.files.write("ca.crl", &list);
    }

    /// Writes a file of the server in one step.
    fn write(&self, name: &str, text: &str) {
        let (path, next) = (self.path(name), self.path(&format!("{name}.next")));
        fs::write(&next, text).expect("it can be written");
        fs::rename(&next, &path).expect("it can be written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A token whose claims are nested lists.
fn deep(issuer: &Issuer, depth: usize) -> String {
    let claims = (0..depth).fold(json!(0), |inner, _| json!([inner]));
    issuer.sign(&claims)
}

/// Reads the alternative names of a certificate: `URI spiffe://a.test/b DNS c.test`.
fn alternative_names(text: &str) -> (Vec<String>, Vec<String>) {
    let words: Vec<_> = text.split(' ').collect();
    let of = |kind: &str| {
        let pairs = words.chunks_exact(2).filter(|pair| pair[0] == kind);
        pairs.map(|pair| pair[1].to_owned()).collect()
    };
    (of("URI"), of("DNS"))
}

fn uri(name: &str) -> String {
    format!("spiffe://decree.test/{}", name.replace(' ', "-"))
}

//! A server with authentication: its certificates, keys and policy, and the valid and invalid credentials of its peers.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::json;
use service::transport::{Connector, Metrics};
use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    pki::{Authority, Files, Pair, Request},
};

const HOUR: Duration = Duration::from_secs(3600);

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
        let files = Files::new(&authority.issue(&Request::server()), &authority.pem);
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
        fs::write(guard.policy(), POLICY).expect("it can be written");
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
            format!("--policy={}", self.policy().display()),
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

    /// A certificate of this name: `long name`, `1,000 names`, alternative names, or a valid one for this peer.
    fn pair(&self, name: &str) -> Pair {
        let own = Request::client(&uri(name));
        let issue = |request: &Request| self.authority.issue(request);
        match name {
            "of another CA" => self.stranger.issue(&Request::client(&uri("agent-a"))),
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

    /// A token that is long, deep or of a wrong key, by its name, or a valid one for a subject of this name.
    pub(crate) fn token(&self, name: &str, number: u64) -> String {
        let issuer = &self.issuer;
        let claims = || Issuer::claims("agent-a", 600);
        let of_key = |key: String| {
            let header = json!({"alg": "ES256", "kid": key});
            issuer.sign_as(&header, &claims())
        };
        match name {
            "for 300 audiences" => {
                let mut claims = claims();
                claims["aud"] = (0..300).map(|at| format!("a-{at}")).collect();
                issuer.sign(&claims)
            }
            "of claims in 200 lists" => {
                issuer.sign(&(0..200).fold(json!(0), |inner, _| json!([inner])))
            }
            "of an unknown key" => of_key(format!("k-{number}")),
            "of a key of 4 KB" => of_key("k".repeat(4_000)),
            "of another signature" => format!("{}AA", issuer.token("agent-a")),
            "of dots" => ".".repeat(5_000),
            "of 9 KB" => "x".repeat(9_000),
            "of 60 KB" => "x".repeat(60_000),
            subject => issuer.token(subject),
        }
    }

    fn policy(&self) -> PathBuf {
        self.folder.path().join("policy")
    }
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

//! Certificates for tests: valid ones, and ones with a single fault.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SanType, SerialNumber,
};
use rustls::{ServerConfig, SupportedProtocolVersion, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use service::transport::{ClientArgs, ClientAuth, ServerArgs, TlsArgs};
use tempfile::TempDir;

use crate::{binaries, fenced, running::output_of};

/// The interval at which a test's changes of files are noticed.
const RELOAD_INTERVAL: Duration = Duration::from_millis(10);
/// The folder of the certificates for a trial.
pub const TRIAL: &str = "decree-pki";
/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3600);

/// A CA.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, in PEM.
    pub pem: String,
}

/// The contents of a certificate.
#[derive(Clone, Debug)]
pub struct Request {
    /// The URIs of the subject's alternative names.
    pub uris: Vec<String>,
    /// The DNS names.
    pub names: Vec<String>,
    /// The purpose; `None` for any.
    pub usage: Option<ExtendedKeyUsagePurpose>,
    /// The start of its validity.
    pub not_before: SystemTime,
    /// The end of its validity.
    pub not_after: SystemTime,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub cert: String,
    /// The key.
    pub key: String,
    serial: SerialNumber,
}

/// The files of one process in a separate folder.
#[derive(Debug)]
pub struct Files {
    folder: TempDir,
}

/// Makes the certificates for a trial as docs/security.md shows, valid for this many days, in the folder [`TRIAL`] of `folder`.
///
/// # Panics
/// If the commands fail.
pub fn trial(folder: &Path, days: u32) {
    let manual = fs::read_to_string(binaries::checkout().join("docs/security.md"));
    let blocks = fenced::blocks(&manual.expect("it is there"));
    let block = blocks
        .iter()
        .find(|it| it.journey() == Some("makes-certificates"));
    let commands = &block.expect("it shows them").text;
    let commands = commands.replace("-days 365", &format!("-days {days}"));
    output_of(binaries::shell(&commands, &[]).current_dir(folder));
}

impl Authority {
    /// Returns a new CA.
    ///
    /// # Panics
    /// Never: its parameters are valid.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("there is randomness");
        let pem = params.self_signed(&key).expect("it can be signed").pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Issues a certificate.
    ///
    /// # Panics
    /// If a certificate cannot have the names.
    pub fn issue(&self, request: &Request) -> Pair {
        let (params, serial) = request.params();
        let key = KeyPair::generate().expect("there is randomness");
        let cert = params
            .signed_by(&key, &self.issuer)
            .expect("it can be signed");
        Pair {
            cert: cert.pem(),
            key: key.serialize_pem(),
            serial,
        }
    }

    /// Returns the revocation list of these certificates, in PEM; current until `next_update`.
    ///
    /// # Panics
    /// Never: its parameters are valid.
    pub fn revoke(&self, pairs: &[&Pair], next_update: SystemTime) -> String {
        let revoked = |pair: &&Pair| RevokedCertParams {
            serial_number: pair.serial.clone(),
            revocation_time: SystemTime::now().into(),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: (SystemTime::now() - HOUR).into(),
            next_update: next_update.into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: pairs.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).expect("it can be signed");
        list.pem().expect("it can be written")
    }
}

impl Request {
    /// Returns the request of a server on this machine.
    pub fn server() -> Self {
        Self {
            names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            uris: Vec::new(),
            ..Self::client("")
        }
        .usage(ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Returns the request of a client with a SPIFFE id.
    pub fn client(uri: &str) -> Self {
        let now = SystemTime::now();
        Self {
            uris: vec![uri.to_owned()],
            names: Vec::new(),
            usage: Some(ExtendedKeyUsagePurpose::ClientAuth),
            not_before: now - HOUR,
            not_after: now + HOUR,
        }
    }

    /// Sets the purpose.
    pub fn usage(self, usage: ExtendedKeyUsagePurpose) -> Self {
        Self {
            usage: Some(usage),
            ..self
        }
    }

    /// Sets the validity.
    pub fn valid(self, not_before: SystemTime, not_after: SystemTime) -> Self {
        Self {
            not_before,
            not_after,
            ..self
        }
    }

    /// Returns a self-signed certificate.
    ///
    /// # Panics
    /// If a certificate cannot have the names.
    pub fn self_signed(&self) -> Pair {
        let (params, serial) = self.params();
        let key = KeyPair::generate().expect("there is randomness");
        Pair {
            cert: params.self_signed(&key).expect("it can be signed").pem(),
            key: key.serialize_pem(),
            serial,
        }
    }

    fn params(&self) -> (CertificateParams, SerialNumber) {
        let mut params = CertificateParams::new(self.names.clone()).expect("they are names");
        let uris = self.uris.iter().map(|uri| {
            let uri = uri.as_str().try_into().expect("it is a URI");
            SanType::URI(uri)
        });
        params.subject_alt_names.extend(uris);
        params
            .distinguished_name
            .push(DnType::CommonName, "a peer of tests");
        params.extended_key_usages.extend(self.usage.clone());
        params.not_before = self.not_before.into();
        params.not_after = self.not_after.into();
        let drawn = KeyPair::generate().expect("there is randomness");
        let serial = SerialNumber::from_slice(&drawn.public_key_raw()[1..17]);
        params.serial_number = Some(serial.clone());
        (params, serial)
    }
}

impl Pair {
    /// Returns the configuration of a server that presents the certificate with these versions of TLS, and requires none.
    ///
    /// # Panics
    /// Never: certificate and key match.
    pub fn server_config(&self, versions: &[&'static SupportedProtocolVersion]) -> ServerConfig {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(versions);
        let builder = builder.expect("they are known").with_no_client_auth();
        let chain = CertificateDer::pem_slice_iter(self.cert.as_bytes()).flatten();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let config = builder.with_single_cert(chain.collect(), key);
        config.expect("they belong together")
    }
}

impl Files {
    /// Writes a certificate with its key, and the CAs for the other side.
    ///
    /// # Panics
    /// If the files cannot be written.
    pub fn new(pair: &Pair, ca: &str) -> Self {
        let files = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        files.write("tls.crt", &pair.cert);
        files.write("tls.key", &pair.key);
        files.write("ca.crt", ca);
        files
    }

    /// Replaces a file atomically.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let beside = self.path(&format!("{name}.new"));
        fs::write(&beside, text).expect("it can be written");
        fs::rename(&beside, self.path(name)).expect("it can be renamed");
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the flags for a server.
    pub fn server(&self, tls_client_auth: ClientAuth) -> ServerArgs {
        ServerArgs {
            files: self.args(),
            tls_client_auth,
            insecure: false,
        }
    }

    /// Returns the flags for a client.
    pub fn client(&self) -> ClientArgs {
        ClientArgs {
            files: self.args(),
            ..ClientArgs::default()
        }
    }

    /// Returns the flags as command-line arguments.
    pub fn flags(&self) -> Vec<String> {
        let file = |flag: &str, name| format!("{flag}={}", self.path(name).display());
        let files = [
            ("--tls-cert", "tls.crt"),
            ("--tls-key", "tls.key"),
            ("--tls-ca", "ca.crt"),
        ];
        files.map(|(flag, name)| file(flag, name)).to_vec()
    }

    fn args(&self) -> TlsArgs {
        let list = self.path("ca.crl");
        TlsArgs {
            tls_cert: Some(self.path("tls.crt")),
            tls_key: Some(self.path("tls.key")),
            tls_ca: Some(self.path("ca.crt")),
            tls_crl: list.exists().then_some(list),
            tls_reload_interval: RELOAD_INTERVAL,
        }
    }
}

/// Certificates that no current tool issues, of a CA with a key of 1,024 bits and of one that signs with SHA-1: the CA and its
/// certificate.
pub fn weak() -> [(&'static str, Pair); 2] {
    let pair = |cert: &str| Pair {
        cert: cert.to_owned(),
        key: include_str!("pki/leaf.key").to_owned(),
        serial: SerialNumber::from(0),
    };
    [
        (
            include_str!("pki/weak-ca.pem"),
            pair(include_str!("pki/weak-leaf.pem")),
        ),
        (
            include_str!("pki/sha1-ca.pem"),
            pair(include_str!("pki/sha1-leaf.pem")),
        ),
    ]
}

//! The TLS files: read completely, and converted for rustls, or to an error that names the file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use runtime::file;
use rustls::RootCertStore;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_parser::parse_x509_crl;

use crate::{args::TlsArgs, certificate::not_after, failure::LoadError};

/// More than any bundle of CAs takes.
const BYTES_MAX: u64 = 4 << 20;

/// The contents of the files, for comparison and parsing.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    cert: Option<PemFile>,
    key: Option<PemFile>,
    ca: Option<PemFile>,
    crl: Option<PemFile>,
}

/// A file.
#[derive(Clone, PartialEq, Eq)]
struct PemFile {
    /// The flag, and the path.
    name: String,
    bytes: Vec<u8>,
}

/// The parsed files.
pub(crate) struct Parsed {
    /// The certificate and key of this process, if both are given.
    pub(crate) pair: Option<CertificateAndKey>,
    /// The CAs that verify the other side, if given.
    pub(crate) roots: Option<Arc<RootCertStore>>,
    /// The revocation lists, if given.
    pub(crate) crls: Option<Vec<CertificateRevocationListDer<'static>>>,
    pub(crate) expiries: Expiries,
}

/// A certificate with its chain, and its key.
pub(crate) type CertificateAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The expiries of the files' contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expiries {
    pub(crate) cert: Option<Timestamp>,
    pub(crate) ca: Option<Timestamp>,
    pub(crate) crl: Option<Timestamp>,
}

// === impl Contents ===

impl Contents {
    pub(crate) fn read(args: &TlsArgs) -> Result<Self, LoadError> {
        let read = |flag, path: &Option<PathBuf>| {
            let path = path.as_deref();
            path.map(|path| PemFile::read(flag, path)).transpose()
        };
        Ok(Self {
            cert: read("--tls-cert", &args.tls_cert)?,
            key: read("--tls-key", &args.tls_key)?,
            ca: read("--tls-ca", &args.tls_ca)?,
            crl: read("--tls-crl", &args.tls_crl)?,
        })
    }

    pub(crate) fn parse(&self) -> Result<Parsed, LoadError> {
        let mut expiries = Expiries::default();
        let mut pair = None;
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            let key = key.key()?;
            let chain = cert.items("certificate")?;
            expiries.cert = not_after(&chain);
            pair = Some((chain, key));
        }
        let mut roots = None;
        if let Some(file) = &self.ca {
            let cas = file.items("certificate")?;
            expiries.ca = not_after(&cas);
            let mut store = RootCertStore::empty();
            for certificate in cas {
                let added = store.add(certificate);
                added.map_err(|error| file.wrong(error.to_string()))?;
            }
            roots = Some(Arc::new(store));
        }
        let crls = self.crl.as_ref().map(|file| file.items("revocation list"));
        let crls = crls.transpose()?;
        expiries.crl = crls.as_deref().and_then(outdated);
        Ok(Parsed {
            pair,
            roots,
            crls,
            expiries,
        })
    }
}

// === impl PemFile ===

impl PemFile {
    fn read(flag: &str, path: &Path) -> Result<Self, LoadError> {
        let name = format!("{flag} {}", path.display());
        match file::read(path, BYTES_MAX) {
            Ok(bytes) => Ok(Self { name, bytes }),
            Err(source) => Err(LoadError::Read { file: name, source }),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, LoadError> {
        let key = PrivateKeyDer::from_pem_slice(&self.bytes);
        key.map_err(|error| {
            if matches!(error, pem::Error::NoItemsFound) {
                return self.holds_no("private key");
            }
            self.wrong(format!("is not PEM: {error}"))
        })
    }

    /// All items of one kind, of which there must be any.
    fn items<T: PemObject>(&self, what: &str) -> Result<Vec<T>, LoadError> {
        let items: Result<Vec<_>, _> = T::pem_slice_iter(&self.bytes).collect();
        let items = items.map_err(|error| self.wrong(format!("is not PEM: {error}")))?;
        if items.is_empty() {
            return Err(self.holds_no(what));
        }
        Ok(items)
    }

    fn holds_no(&self, what: &str) -> LoadError {
        self.wrong(format!("holds no {what} in PEM"))
    }

    fn wrong(&self, detail: String) -> LoadError {
        LoadError::Content(format!("{}: {detail}", self.name))
    }
}

/// The first time at which one of the lists becomes outdated; `None` if no list has such a time.
fn outdated(lists: &[CertificateRevocationListDer<'_>]) -> Option<Timestamp> {
    let updates = lists.iter().filter_map(|list| {
        let (_, list) = parse_x509_crl(list).ok()?;
        Timestamp::from_second(list.next_update()?.timestamp()).ok()
    });
    updates.min()
}

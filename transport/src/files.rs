//! The TLS files: read completely, and converted for rustls, or to an error that names the file.

use std::{path::PathBuf, sync::Arc};

use jiff::Timestamp;
use runtime::file;
use rustls::RootCertStore;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_parser::parse_x509_crl;

use crate::{args::TlsArgs, failure::LoadError};

/// More than any bundle of CAs takes.
const BYTES_MAX: u64 = 4 << 20;

/// The contents of the files, for comparison and parsing.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    cert: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    ca: Option<Vec<u8>>,
    crl: Option<Vec<u8>>,
}

/// The parsed files.
pub(crate) struct Parsed {
    /// The certificate and key of this process, if both are given.
    pub(crate) pair: Option<CertificateAndKey>,
    /// The CAs that verify the other side, if given.
    pub(crate) cas: Option<Vec<CertificateDer<'static>>>,
    /// The revocation lists, if given.
    pub(crate) crls: Option<Vec<CertificateRevocationListDer<'static>>>,
}

/// A certificate with its chain, and its key.
pub(crate) type CertificateAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

// === impl Contents ===

impl Contents {
    pub(crate) fn read(args: &TlsArgs) -> Result<Self, LoadError> {
        let read = |flag, path: &Option<PathBuf>| {
            let Some(path) = path else { return Ok(None) };
            match file::read(path, BYTES_MAX) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(source) => Err(LoadError::Read {
                    flag,
                    path: path.clone(),
                    source,
                }),
            }
        };
        Ok(Self {
            cert: read("--tls-cert", &args.tls_cert)?,
            key: read("--tls-key", &args.tls_key)?,
            ca: read("--tls-ca", &args.tls_ca)?,
            crl: read("--tls-crl", &args.tls_crl)?,
        })
    }

    pub(crate) fn parse(&self, args: &TlsArgs) -> Result<Parsed, LoadError> {
        let read = |ca: &Vec<u8>| certificates("--tls-ca", &args.tls_ca, ca);
        Ok(Parsed {
            pair: self.pair(args)?,
            cas: self.ca.as_ref().map(read).transpose()?,
            crls: self.crls(args)?,
        })
    }

    fn pair(&self, args: &TlsArgs) -> Result<Option<CertificateAndKey>, LoadError> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else {
            return Ok(None);
        };
        let wrong_key = |error| content("--tls-key", &args.tls_key, &detail(error, "private key"));
        let key = PrivateKeyDer::from_pem_slice(key).map_err(wrong_key)?;
        Ok(Some((
            certificates("--tls-cert", &args.tls_cert, cert)?,
            key,
        )))
    }

    fn crls(
        &self,
        args: &TlsArgs,
    ) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>, LoadError> {
        let Some(crl) = &self.crl else {
            return Ok(None);
        };
        let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(crl).collect();
        let wrong = |error| {
            content(
                "--tls-crl",
                &args.tls_crl,
                &detail(error, "revocation list"),
            )
        };
        let lists = lists.map_err(wrong)?;
        if lists.is_empty() {
            return Err(content(
                "--tls-crl",
                &args.tls_crl,
                "holds no revocation list in PEM",
            ));
        }
        Ok(Some(lists))
    }
}

// === impl Parsed ===

impl Parsed {
    /// The CAs in the form of rustls, if given.
    pub(crate) fn roots(&self, args: &TlsArgs) -> Result<Option<Arc<RootCertStore>>, LoadError> {
        let Some(cas) = &self.cas else {
            return Ok(None);
        };
        let mut roots = RootCertStore::empty();
        for certificate in cas {
            let added = roots.add(certificate.clone());
            added.map_err(|error| content("--tls-ca", &args.tls_ca, &error.to_string()))?;
        }
        Ok(Some(Arc::new(roots)))
    }
}

/// The first time at which one of the lists becomes outdated; `None` if no list has such a time.
pub(crate) fn outdated(lists: &[CertificateRevocationListDer<'_>]) -> Option<Timestamp> {
    let updates = lists.iter().filter_map(|list| {
        let (_, list) = parse_x509_crl(list).ok()?;
        Timestamp::from_second(list.next_update()?.timestamp()).ok()
    });
    updates.min()
}

fn certificates(
    flag: &'static str,
    path: &Option<PathBuf>,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let read = read.map_err(|error| content(flag, path, &detail(error, "certificate")))?;
    if read.is_empty() {
        return Err(content(flag, path, "holds no certificate in PEM"));
    }
    Ok(read)
}

fn content(flag: &'static str, path: &Option<PathBuf>, detail: &str) -> LoadError {
    LoadError::Content {
        flag,
        path: path.clone().unwrap_or_default(),
        detail: detail.to_owned(),
    }
}

fn detail(error: pem::Error, what: &str) -> String {
    if matches!(error, pem::Error::NoItemsFound) {
        format!("holds no {what} in PEM")
    } else {
        format!("is not PEM: {error}")
    }
}

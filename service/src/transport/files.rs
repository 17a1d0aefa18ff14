//! The TLS files: read completely, and converted for rustls, or to an error that names the file.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{Fault, file};
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_parser::parse_x509_crl;

use crate::transport::{args::TlsArgs, certificate::not_after};

/// More than any bundle of CAs takes.
const BYTES_MAX: u64 = 4 << 20;

/// Files that must fit together, by their paths or contents. The files of another part may be invalid meanwhile.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Part<F> {
    /// A certificate and its key.
    Pair(F, F),
    Ca(F),
    Crl(F),
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PemFile {
    /// The flag, and the path.
    name: String,
    bytes: Vec<u8>,
}

#[derive(Clone, Default)]
pub(crate) struct Parsed {
    /// The certificate and key of this process, if both are given.
    pub(crate) pair: Option<Arc<CertificateAndKey>>,
    /// The CAs that verify the other side, if given.
    pub(crate) roots: Option<Arc<RootCertStore>>,
    /// The revocation lists, if given.
    pub(crate) crls: Option<Vec<CertificateRevocationListDer<'static>>>,
    pub(crate) expiries: Expiries,
}

/// A certificate with its chain, and its key.
pub(crate) type CertificateAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expiries {
    pub(crate) cert: Option<Timestamp>,
    pub(crate) ca: Option<Timestamp>,
    pub(crate) crl: Option<Timestamp>,
}

impl Part<PathBuf> {
    pub(crate) fn of(args: &TlsArgs) -> Vec<Self> {
        let pair = args.tls_cert.clone().zip(args.tls_key.clone());
        let pair = pair.map(|(cert, key)| Self::Pair(cert, key));
        let (ca, crl) = (args.tls_ca.clone(), args.tls_crl.clone());
        let parts = [pair, ca.map(Self::Ca), crl.map(Self::Crl)];
        parts.into_iter().flatten().collect()
    }

    pub(crate) fn read(&self) -> Result<Part<PemFile>, Fault> {
        Ok(match self {
            Self::Pair(cert, key) => Part::Pair(
                PemFile::read("--tls-cert", cert)?,
                PemFile::read("--tls-key", key)?,
            ),
            Self::Ca(file) => Part::Ca(PemFile::read("--tls-ca", file)?),
            Self::Crl(file) => Part::Crl(PemFile::read("--tls-crl", file)?),
        })
    }

    /// The flags, for people.
    pub(crate) const fn flags(&self) -> &'static str {
        match self {
            Self::Pair(..) => "--tls-cert, --tls-key",
            Self::Ca(_) => "--tls-ca",
            Self::Crl(_) => "--tls-crl",
        }
    }
}

impl Part<PemFile> {
    /// Parses the files. All else is as in `older`.
    pub(crate) fn parse(&self, older: &Parsed) -> Result<Parsed, Fault> {
        let mut parsed = older.clone();
        match self {
            Self::Pair(cert, key) => {
                let key = key.key()?;
                let chain = cert.items("certificate")?;
                parsed.expiries.cert = not_after(&chain);
                parsed.pair = Some(Arc::new((chain, key)));
            }
            Self::Ca(file) => {
                let cas = file.items("certificate")?;
                parsed.expiries.ca = not_after(&cas);
                let mut store = RootCertStore::empty();
                for certificate in cas {
                    let added = store.add(certificate);
                    added.map_err(|error| file.wrong(error.to_string()))?;
                }
                parsed.roots = Some(Arc::new(store));
            }
            Self::Crl(file) => {
                let lists = file.items("revocation list")?;
                parsed.expiries.crl = outdated(&lists);
                parsed.crls = Some(lists);
            }
        }
        Ok(parsed)
    }
}

impl PemFile {
    fn read(flag: &str, path: &Path) -> Result<Self, Fault> {
        let name = format!("{flag} {}", path.display());
        match file::read(path, BYTES_MAX) {
            Ok(bytes) => Ok(Self { name, bytes }),
            Err(source) => Err(unreadable(&name, source)),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Fault> {
        let key = PrivateKeyDer::from_pem_slice(&self.bytes);
        key.map_err(|error| {
            if matches!(error, pem::Error::NoItemsFound) {
                return self.holds_no("private key");
            }
            self.wrong(described(&error).to_owned())
        })
    }

    /// All items of one kind, of which there must be any.
    fn items<T: PemObject>(&self, what: &str) -> Result<Vec<T>, Fault> {
        let items: Result<Vec<_>, _> = T::pem_slice_iter(&self.bytes).collect();
        let items = items.map_err(|error| self.wrong(described(&error).to_owned()))?;
        if items.is_empty() {
            return Err(self.holds_no(what));
        }
        Ok(items)
    }

    fn holds_no(&self, what: &str) -> Fault {
        self.wrong(format!("holds no {what} in PEM"))
    }

    fn wrong(&self, detail: String) -> Fault {
        Fault::new(format!("{}: {detail}", self.name))
    }
}

/// The fault of files, named by their flags, that cannot be read.
pub(crate) fn unreadable(files: &str, source: io::Error) -> Fault {
    Fault::because(format!("{files}: cannot be read"), source)
}

/// Describes an error in PEM without the bytes that the error quotes: a file that lacks its line breaks quotes its key.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a new kind of error may quote the file too"
)]
const fn described(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "is not PEM: a section has no END line",
        pem::Error::IllegalSectionStart { .. } => "is not PEM: a BEGIN line is wrong",
        pem::Error::Base64Decode(_) => "is not PEM: a section is not Base64",
        _ => "is not PEM",
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

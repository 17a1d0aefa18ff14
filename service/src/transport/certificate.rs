//! The parts of a certificate that describe its owner.

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

/// A certificate whose key a peer has proved to own, with the chain that the peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The peer's own certificate, then the ones that lead to a CA.
    pub chain: Vec<CertificateDer<'static>>,
    /// The URIs of the subject's alternative names, such as a SPIFFE id, in the order of the certificate.
    pub uri_names: Vec<String>,
    /// The DNS names of the subject's alternative names.
    pub dns_names: Vec<String>,
    /// The earliest expiry in the chain.
    pub not_after: Timestamp,
}

impl Certificate {
    /// Parses a chain. `None` if its first entry is not a certificate, or its alternative names are unreadable or there twice.
    pub fn read(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (_, own) = parse_x509_certificate(chain.first()?).ok()?;
        let (mut uri_names, mut dns_names) = (Vec::new(), Vec::new());
        let names = own.subject_alternative_name().ok()?;
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            if let GeneralName::URI(uri) = name {
                uri_names.push((*uri).to_owned());
            } else if let GeneralName::DNSName(name) = name {
                dns_names.push((*name).to_owned());
            }
        }
        Some(Self {
            uri_names,
            dns_names,
            not_after: not_after(chain)?,
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
        })
    }
}

/// The earliest expiry in a chain.
pub(crate) fn not_after(chain: &[CertificateDer<'_>]) -> Option<Timestamp> {
    let expiry = |one: &CertificateDer<'_>| {
        let (_, certificate) = parse_x509_certificate(one).ok()?;
        let seconds = certificate.validity().not_after.timestamp();
        // The year 9999 means never, but exceeds the range of a timestamp with a zone. The greatest timestamp has the same effect.
        Some(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
    };
    chain.iter().filter_map(expiry).min()
}

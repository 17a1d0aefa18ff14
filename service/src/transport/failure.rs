//! Errors of TLS handshakes and of their setup, for people and as labels of a metric.

use std::{fmt::Display, io, time::Duration};

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use thiserror::Error;

use crate::Fault;

/// The effect of `--insecure`, for the warning at each start.
pub(crate) const EXPOSED: &str =
    "--insecure: plain text leaves this machine, anyone on the path can read and change it";

/// Why a handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The handshake took too long.
    #[error("no TLS handshake within {} s", .0.as_secs_f64())]
    Deadline(Duration),
    /// The connection broke.
    #[error("the connection ended in the TLS handshake")]
    Closed(#[source] io::Error),
    /// One side rejected the other.
    #[error("{}", described(.0))]
    Tls(TlsError),
}

/// The fault of flags that would send plain text over the network.
pub(crate) fn plain_text(flag: &str, endpoint: impl Display) -> Fault {
    Fault::new(format!(
        "{flag} {endpoint} is plain text that leaves this machine; use TLS (--tls-cert, --tls-key, --tls-ca), a loopback address or unix:PATH, or accept it with --insecure"
    ))
}

impl HandshakeError {
    /// The label in the metric of failed handshakes.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Deadline(_) => "deadline",
            Self::Closed(_) => "closed",
            Self::Tls(error) => reason(error),
        }
    }
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<TlsError>()) {
            Some(tls) => Self::Tls(tls.clone()),
            None => Self::Closed(error),
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "rustls adds reasons; what is not told apart is one series"
)]
fn reason(error: &TlsError) -> &'static str {
    use CertificateError as Is;
    match error {
        TlsError::NoCertificatesPresented => "no_certificate",
        TlsError::InvalidCertificate(error) => match error {
            Is::Expired | Is::ExpiredContext { .. } => "expired",
            Is::NotValidYet | Is::NotValidYetContext { .. } => "not_yet_valid",
            Is::Revoked => "revoked",
            Is::UnknownIssuer => "unknown_issuer",
            Is::UnknownRevocationStatus
            | Is::ExpiredRevocationList
            | Is::ExpiredRevocationListContext { .. } => "revocation_unknown",
            Is::InvalidPurpose | Is::InvalidPurposeContext { .. } => "wrong_purpose",
            Is::BadSignature
            | Is::UnsupportedSignatureAlgorithmContext { .. }
            | Is::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => "bad_signature",
            Is::NotValidForName | Is::NotValidForNameContext { .. } => "wrong_name",
            _ => "bad_certificate",
        },
        TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => "not_tls",
        TlsError::AlertReceived(_) => "refused_by_peer",
        TlsError::PeerIncompatible(_) | TlsError::NoApplicationProtocol => "incompatible",
        TlsError::PeerMisbehaved(_) | TlsError::DecryptError => "misbehaved",
        _ => "other",
    }
}

/// Describes the error of a handshake in terms of flags and files.
fn described(error: &TlsError) -> String {
    if let TlsError::AlertReceived(alert) = error {
        return refused(*alert);
    }
    let why = match reason(error) {
        "no_certificate" => "the client has no certificate",
        "not_tls" => "the other side does not speak TLS",
        "expired" => match expiry(error) {
            Some(expiry) => {
                return format!("the certificate of the other side expired at {expiry}");
            }
            None => "the certificate of the other side has expired",
        },
        "not_yet_valid" => "the certificate of the other side is not valid yet; compare the clocks",
        "revoked" => "the certificate of the other side was revoked",
        "unknown_issuer" => "no CA of --tls-ca has issued the certificate of the other side",
        "revocation_unknown" => {
            "--tls-crl has no current list of the CA that issued the certificate of the other side"
        }
        "wrong_purpose" => {
            "the certificate of the other side is not for this use (extended key usage)"
        }
        _ => return error.to_string(),
    };
    why.to_owned()
}

fn expiry(error: &TlsError) -> Option<jiff::Timestamp> {
    let TlsError::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) = error
    else {
        return None;
    };
    let seconds = i64::try_from(not_after.as_secs()).ok()?;
    jiff::Timestamp::from_second(seconds).ok()
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most alerts are not about certificates"
)]
fn refused(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::CertificateRequired => {
            return "the other side wants a certificate: give --tls-cert and --tls-key".to_owned();
        }
        AlertDescription::CertificateExpired => "it has expired or is not valid yet",
        AlertDescription::CertificateRevoked => "it was revoked",
        AlertDescription::UnknownCA => "it is of a CA that is not trusted there",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => "it is not fit for this",
        _ => return format!("the other side ended the TLS handshake: {alert:?}"),
    };
    format!("the other side refused the certificate of --tls-cert: {why} ({alert:?})")
}

/// Describes the TLS error inside an error of a stream.
pub(crate) fn explained(error: io::Error) -> io::Error {
    match HandshakeError::from(error) {
        HandshakeError::Closed(error) => error,
        told @ (HandshakeError::Deadline(_) | HandshakeError::Tls(_)) => {
            io::Error::new(io::ErrorKind::InvalidData, told)
        }
    }
}

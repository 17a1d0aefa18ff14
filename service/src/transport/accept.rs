//! From an accepted connection to a peer: the handshake, and the later end of its certificate.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rustls::{CertificateError, Error as TlsError, server::danger::ClientCertVerifier};
use rustls_pki_types::UnixTime;
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsStream};

use crate::Fault;
use crate::transport::{
    args::{ClientAuth, ServerArgs},
    certificate::Certificate,
    credentials::ServerTls,
    endpoint::ListenEndpoint,
    failure::{EXPOSED, HandshakeError, plain_text},
    listen::Socket,
    metrics::Metrics,
    peer::{Credential, Ended, Peer, PeerAddress},
    reload,
    stream::ByteStream,
};

/// The maximum time of a wait for an expiry before the clock is read again, because the clock may be set.
const CLOCK_TRUST: Duration = Duration::from_secs(30);

/// Performs the handshakes of one listener. Clones share the files.
#[derive(Clone, Debug)]
pub struct Acceptor {
    /// `None` for plain text.
    tls: Option<watch::Receiver<Arc<ServerTls>>>,
    handshake_max: Duration,
    metrics: Metrics,
}

impl Acceptor {
    /// Reads the flags and loads the files, which are watched from now on. `handshake_max` is the deadline of a handshake.
    ///
    /// # Errors
    /// If the files are invalid, flags are missing, or plain text would leave this machine without `--insecure`.
    pub fn new(
        endpoint: &ListenEndpoint,
        args: &ServerArgs,
        handshake_max: Duration,
        metrics: Metrics,
    ) -> Result<Self, Fault> {
        let ServerArgs {
            files,
            tls_client_auth,
            insecure,
        } = args;
        if files.tls_ca.is_some() && files.tls_cert.is_none() {
            return Err(Fault::new("--tls-ca needs --tls-cert beside it"));
        }
        let tls = if files.is_given() {
            if endpoint.tcp().is_none() {
                return Err(Fault::new(format!(
                    "{endpoint} does not use TLS; remove --tls-cert, --tls-key, --tls-ca and --tls-crl, or listen on ADDRESS:PORT"
                )));
            }
            let auth: ClientAuth = *tls_client_auth;
            let build = move |parsed: &_| ServerTls::build(parsed, auth);
            Some(reload::load(files, &metrics, build)?)
        } else if endpoint.is_local() {
            None
        } else if *insecure {
            tracing::warn!(%endpoint, "{EXPOSED}");
            None
        } else {
            return Err(plain_text("--listen", endpoint));
        };
        Ok(Self {
            tls,
            handshake_max,
            metrics,
        })
    }

    /// Identifies the peer: for TLS, by a handshake.
    ///
    /// # Errors
    /// If the handshake fails or takes too long. The failure is counted.
    pub async fn accept(&self, socket: Socket) -> Result<(ByteStream, Peer), HandshakeError> {
        let Socket { stream, address } = socket;
        let stream = match (stream, &self.tls) {
            (ByteStream::Tcp(stream), Some(tls)) => {
                return self.secure(stream, address, tls.clone()).await;
            }
            (stream, _) => stream,
        };
        let mut credential = Credential::None;
        if let ByteStream::Unix(stream) = &stream
            && let Ok(found) = stream.peer_cred()
        {
            credential = Credential::UnixPeer { uid: found.uid() };
        }
        Ok((stream, Peer::new(address, credential)))
    }

    async fn secure(
        &self,
        stream: TcpStream,
        at: PeerAddress,
        tls: watch::Receiver<Arc<ServerTls>>,
    ) -> Result<(ByteStream, Peer), HandshakeError> {
        let accepted = timeout(self.handshake_max, handshake(stream, at, tls)).await;
        let accepted = accepted.unwrap_or(Err(HandshakeError::Deadline(self.handshake_max)));
        if let Err(error) = &accepted {
            self.metrics.handshake_failed(error.reason());
            tracing::debug!(peer = %at, %error, "handshake failed");
        }
        accepted
    }
}

async fn handshake(
    stream: TcpStream,
    at: PeerAddress,
    mut tls: watch::Receiver<Arc<ServerTls>>,
) -> Result<(ByteStream, Peer), HandshakeError> {
    let config = Arc::clone(&tls.borrow_and_update().config);
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let peer = match stream.get_ref().1.peer_certificates() {
        None | Some([]) => Peer::new(at, Credential::None),
        Some(chain) => {
            let unreadable = TlsError::InvalidCertificate(CertificateError::BadEncoding);
            let certificate = Certificate::read(chain);
            let certificate = Arc::new(certificate.ok_or(HandshakeError::Tls(unreadable))?);
            let (sender, standing) = watch::channel(None);
            tokio::spawn(supervise(Arc::clone(&certificate), tls, sender));
            Peer {
                standing: Some(standing),
                ..Peer::new(at, Credential::Certificate(certificate))
            }
        }
    };
    let stream = ByteStream::Tls(Box::new(TlsStream::Server(stream)));
    Ok((stream, peer))
}

/// Checks a certificate again when it expires and when the files change, until all receivers are gone.
async fn supervise(
    certificate: Arc<Certificate>,
    mut tls: watch::Receiver<Arc<ServerTls>>,
    standing: watch::Sender<Option<Ended>>,
) {
    let mut reloads = true;
    loop {
        tokio::select! {
            () = standing.closed() => return,
            changed = tls.changed(), if reloads => reloads = changed.is_ok(),
            () = sleep(until(certificate.not_after).min(CLOCK_TRUST)) => {}
        }
        let verifier = tls.borrow_and_update().verifier.clone();
        if let Some(ended) = check(&certificate, verifier.as_deref()) {
            standing.send_replace(Some(ended));
            return;
        }
    }
}

/// The duration until a time, plus a margin, so that the time has passed then.
fn until(time: Timestamp) -> Duration {
    let left = time.duration_since(Timestamp::now());
    let left = Duration::try_from(left).unwrap_or_default();
    left + Duration::from_millis(1)
}

/// The reason why a certificate is not valid any more.
///
/// An outdated revocation list ends no connection. It keeps new peers out, and connected peers have been checked by it before.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other error means that the certificate is not trusted"
)]
fn check(certificate: &Certificate, verifier: Option<&dyn ClientCertVerifier>) -> Option<Ended> {
    use CertificateError as Is;
    if certificate.not_after < Timestamp::now() {
        return Some(Ended::Expired);
    }
    let (own, rest) = certificate.chain.split_first()?;
    let error = verifier?
        .verify_client_cert(own, rest, UnixTime::now())
        .err()?;
    match error {
        TlsError::InvalidCertificate(Is::Expired | Is::ExpiredContext { .. }) => {
            Some(Ended::Expired)
        }
        TlsError::InvalidCertificate(Is::Revoked) => Some(Ended::Revoked),
        TlsError::InvalidCertificate(
            Is::ExpiredRevocationList | Is::ExpiredRevocationListContext { .. },
        ) => None,
        _ => Some(Ended::Untrusted),
    }
}

//! The check that a server that other machines can reach identifies its peers and has a policy.

use std::fmt;

use server_access::{Identity, method::Need};
use thiserror::Error;

use crate::{
    access::{self, AccessError},
    args::Config,
};

/// A server that would let everyone on other machines do everything, or nobody anything.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{listen} lets other machines in, and {fault}; {remedy}, or listen on a loopback address or unix:PATH, or accept it with --insecure"
)]
pub struct Exposed {
    listen: String,
    fault: ExposureFault,
    remedy: Remedy,
}

/// Why a server must not accept connections from other machines.
#[derive(Debug, Error)]
pub enum ExposureError {
    /// The server would let everyone do everything, or nobody anything.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The policy cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// The fault of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExposureFault {
    /// The server asks for no credential.
    NothingIsAsked,
    /// Everyone with such a credential may do everything.
    NoPolicy(ProofKind),
    /// Nobody may do anything, because nobody can prove an identity of the policy.
    NoProof,
}

/// The kind of credential that the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofKind {
    Certificate,
    Token,
    Either,
}

/// The remedy for a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remedy(ExposureFault);

/// Checks that a server that other machines can reach identifies its peers and has a policy. `--insecure` turns the error into a
/// warning.
///
/// # Errors
/// If the server does not, or the policy cannot be read.
pub(crate) fn check(config: &Config) -> Result<(), ExposureError> {
    if config.listen.is_local() {
        return Ok(());
    }
    let Some(fault) = fault(config)? else {
        return Ok(());
    };
    let listen = format!("--listen {}", config.listen);
    if config.tls.insecure {
        tracing::warn!("--insecure: {listen} lets other machines in, and {fault}");
        return Ok(());
    }
    let remedy = Remedy(fault);
    Err(Exposed {
        listen,
        fault,
        remedy,
    }
    .into())
}

fn fault(config: &Config) -> Result<Option<ExposureFault>, ExposureError> {
    let has_ca = config.tls.files.tls_ca.is_some();
    let proof = match (has_ca, config.access.token_keys.is_some()) {
        (true, true) => Some(ProofKind::Either),
        (true, false) => Some(ProofKind::Certificate),
        (false, true) => Some(ProofKind::Token),
        (false, false) => None,
    };
    let policy = config.access.policy.as_deref();
    Ok(match (proof, policy) {
        (Some(_), Some(_)) => None,
        (Some(proof), None) => Some(ExposureFault::NoPolicy(proof)),
        (None, None) => Some(ExposureFault::NothingIsAsked),
        (None, Some(path)) => {
            let policy = access::read_policy(path)?;
            let anyone = policy.permissions(&Identity::Anonymous);
            (!anyone.may_call(Some(Need::AnyRole))).then_some(ExposureFault::NoProof)
        }
    })
}

impl fmt::Display for ExposureFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingIsAsked => formatter.write_str("everyone there may do everything"),
            Self::NoPolicy(proof) => {
                let holders = match proof {
                    ProofKind::Certificate => "a certificate of --tls-ca",
                    ProofKind::Token => "a token of --token-issuer",
                    ProofKind::Either => "a certificate of --tls-ca or a token of --token-issuer",
                };
                write!(
                    formatter,
                    "without --policy everyone with {holders} may do everything"
                )
            }
            Self::NoProof => formatter.write_str(
                "none can prove who they are, while the policy of --policy grants `anonymous` nothing",
            ),
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CERTIFIED: &str = "spiffe://example.org/agent";
        const ACCOUNT: &str = "sub:system:serviceaccount:decree-system:decree-agent";
        let (before, identity) = match self.0 {
            ExposureFault::NothingIsAsked => ("give --tls-ca or --token-keys, and ", CERTIFIED),
            ExposureFault::NoPolicy(ProofKind::Certificate) => ("give ", CERTIFIED),
            ExposureFault::NoPolicy(ProofKind::Token | ProofKind::Either) => ("give ", ACCOUNT),
            ExposureFault::NoProof => {
                return formatter.write_str("give --tls-ca or --token-keys");
            }
        };
        // In single quotes, because a JSON log line would escape double quotes.
        write!(
            formatter,
            "{before}--policy with a file such as: grant = [{{identities = ['{identity}'], role = 'agent', clusters = ['*']}}]"
        )
    }
}

//! The check that a server that other machines can reach identifies its peers and has a policy.

use server_access::{Identity, method::Need};
use service::Fault;

use crate::{access, args::Config};

const CERTIFIED: &str = "spiffe://example.org/agent";
const ACCOUNT: &str = "sub:system:serviceaccount:decree-system:decree-agent";

/// Checks that a server that other machines can reach identifies its peers and has a policy. `--insecure` turns the finding into a
/// warning.
///
/// # Errors
/// If the server would let everyone on other machines do everything, or nobody anything, or the policy cannot be read.
pub(crate) fn check(config: &Config) -> Result<(), Fault> {
    if config.listen.is_local() {
        return Ok(());
    }
    let Some((fault, remedy)) = fault(config)? else {
        return Ok(());
    };
    let exposed = format!(
        "--listen {} lets other machines in, and {fault}",
        config.listen
    );
    if config.tls.insecure {
        tracing::warn!("--insecure: {exposed}");
        return Ok(());
    }
    Err(Fault::new(format!(
        "{exposed}; {remedy}, or listen on a loopback address or unix:PATH, or accept it with --insecure"
    )))
}

/// The fault of a configuration, and its remedy.
fn fault(config: &Config) -> Result<Option<(String, String)>, Fault> {
    let has_ca = config.tls.files.tls_ca.is_some();
    // Who proves an identity, and an example.
    let proof = match (has_ca, config.access.token_keys.is_some()) {
        (true, true) => Some((
            "a certificate of --tls-ca or a token of --token-issuer",
            ACCOUNT,
        )),
        (true, false) => Some(("a certificate of --tls-ca", CERTIFIED)),
        (false, true) => Some(("a token of --token-issuer", ACCOUNT)),
        (false, false) => None,
    };
    Ok(match (proof, config.access.policy.as_deref()) {
        (Some(_), Some(_)) => None,
        (Some((holders, identity)), None) => Some((
            format!("without --policy everyone with {holders} may do everything"),
            format!("give {}", policy(identity)),
        )),
        (None, None) => Some((
            "everyone there may do everything".to_owned(),
            format!("give --tls-ca or --token-keys, and {}", policy(CERTIFIED)),
        )),
        (None, Some(path)) => {
            let policy = access::read_policy(path)?;
            let anyone = policy.permissions(&Identity::Anonymous);
            let fault = "no peer can authenticate, and the policy grants `anonymous` nothing";
            let fault = (fault.to_owned(), "give --tls-ca or --token-keys".to_owned());
            (!anyone.may_call(Some(Need::AnyRole))).then_some(fault)
        }
    })
}

/// An example of a policy, in single quotes, because a JSON log line would escape double quotes.
fn policy(identity: &str) -> String {
    format!(
        "--policy with a file such as: grant = [{{identities = ['{identity}'], role = 'agent', clusters = ['*']}}]"
    )
}

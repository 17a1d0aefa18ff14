//! The flags of all three programs.

use std::{path::PathBuf, time::Duration};

use crate::config;
use clap::{ArgAction, Args, ValueEnum};

/// The files of TLS. You can replace them at any time.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// File with the certificate chain of this process, in PEM; with `--tls-key`
    #[arg(
        long,
        env = "DECREE_TLS_CERT",
        requires = "tls_key",
        value_name = "FILE"
    )]
    pub tls_cert: Option<PathBuf>,

    /// File with the private key of `--tls-cert`, in PEM
    #[arg(
        long,
        env = "DECREE_TLS_KEY",
        requires = "tls_cert",
        value_name = "FILE"
    )]
    pub tls_key: Option<PathBuf>,

    /// File with the CA certificates for checking the other side, in PEM
    #[arg(long, env = "DECREE_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// File with the certificate revocation lists of these CAs, in PEM. Each CA that issues certificates needs a current list
    #[arg(long, env = "DECREE_TLS_CRL", requires = "tls_ca", value_name = "FILE")]
    pub tls_crl: Option<PathBuf>,

    /// The interval for checking the files for changes
    #[arg(long, env = "DECREE_TLS_RELOAD_INTERVAL", default_value = "5s", value_name = "TIME", value_parser = interval)]
    pub tls_reload_interval: Duration,
}

/// TLS of a server.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "TLS")]
pub struct ServerArgs {
    /// The files.
    #[command(flatten)]
    pub files: TlsArgs,

    /// Whether a client needs a certificate, with `--tls-ca`
    #[arg(
        long,
        env = "DECREE_TLS_CLIENT_AUTH",
        requires = "tls_ca",
        value_enum,
        default_value_t,
        value_name = "WHETHER"
    )]
    pub tls_client_auth: ClientAuth,

    /// Serve other machines in plain text, without authentication, or without a policy
    #[arg(long, env = "DECREE_INSECURE", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub insecure: bool,
}

/// TLS of a client.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "TLS")]
pub struct ClientArgs {
    /// The files.
    #[command(flatten)]
    pub files: TlsArgs,

    /// The name in the server's certificate, if it is not the host of the URL
    #[arg(long, env = "DECREE_TLS_SERVER_NAME", value_name = "NAME")]
    pub tls_server_name: Option<String>,

    /// Allow plain text to servers on other machines: anyone on the path can read and change everything
    #[arg(long, env = "DECREE_INSECURE", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub insecure: bool,
}

/// Whether clients need certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ClientAuth {
    /// A client without a certificate is refused in its handshake.
    #[default]
    Require,
    /// A client without a certificate needs another proof of its identity.
    Optional,
}

impl Default for TlsArgs {
    fn default() -> Self {
        config::defaults()
    }
}

impl TlsArgs {
    pub(crate) const fn is_given(&self) -> bool {
        self.tls_cert.is_some()
            || self.tls_key.is_some()
            || self.tls_ca.is_some()
            || self.tls_crl.is_some()
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = config::duration(text)?;
    let fits = Duration::from_millis(100)..=Duration::from_mins(60);
    fits.contains(&interval)
        .then_some(interval)
        .ok_or_else(|| "must be from 100ms to 60m".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Command, error::ErrorKind};

    use super::*;

    #[test]
    fn file_of_tls_needs_the_one_that_it_belongs_to() {
        for flag in ["--tls-cert", "--tls-key", "--tls-crl"] {
            let command = TlsArgs::augment_args(Command::new("program"));
            let refused = command.try_get_matches_from(["program", flag, "file"]);
            let error = refused.expect_err(flag);
            assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
        }
    }
}

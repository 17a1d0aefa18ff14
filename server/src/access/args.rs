//! Flags for access control.

use std::{path::PathBuf, time::Duration};

use clap::Args as Group;
use http::HeaderValue;
use service::config;

use crate::web;

/// Policy and authentication.
#[derive(Clone, Debug, PartialEq, Eq, Group)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// A TOML file with the grants of identities; everything else is denied. The server reads a changed file again
    #[arg(long, env = "DECREE_POLICY", value_name = "FILE")]
    pub policy: Option<PathBuf>,

    /// The interval for checking the files of policy and keys for changes, and open streams for their permission
    #[arg(long, env = "DECREE_ACCESS_INTERVAL", default_value = "2s", value_name = "TIME", value_parser = interval)]
    pub access_interval: Duration,

    /// Accept tokens signed with the keys of this JSON Web Key Set: a file, or a URL that begins with `https://`. The server reads a
    /// changed file again, and a URL every 5 minutes
    #[arg(long, env = "DECREE_TOKEN_KEYS", value_name = "FILE_OR_URL")]
    pub token_keys: Option<String>,

    /// File with the CA certificates for the URL in `--token-keys`, in PEM
    #[arg(long, env = "DECREE_TOKEN_KEYS_CA", value_name = "FILE")]
    pub token_keys_ca: Option<PathBuf>,

    /// The required issuer of tokens: their claim `iss`. Needed with `--token-keys`
    #[arg(long, env = "DECREE_TOKEN_ISSUER", value_name = "ISSUER")]
    pub token_issuer: Option<String>,

    /// The required audience of tokens: one of their claim `aud`
    #[arg(
        long,
        env = "DECREE_TOKEN_AUDIENCE",
        default_value = "decree",
        value_name = "AUDIENCE"
    )]
    pub token_audience: String,

    /// Answer gRPC-web calls of browser pages of these exact origins, such as `https://dashboard.example.org`, also over HTTP/1.1. Without
    /// this flag, the server answers gRPC over HTTP/2 only
    #[arg(long, env = "DECREE_GRPC_WEB_ORIGINS", value_delimiter = ',', value_name = "ORIGIN,…", value_parser = web::origin)]
    pub grpc_web_origins: Vec<HeaderValue>,
}

impl Default for AccessArgs {
    fn default() -> Self {
        config::defaults()
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(10)..=Duration::from_mins(60);
    let interval = Some(config::duration(text)?).filter(|it| range.contains(it));
    interval.ok_or_else(|| "must be from 10ms to 60m".to_owned())
}

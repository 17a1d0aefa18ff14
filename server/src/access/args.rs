//! Flags for access control.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::Args as Group;
use service::config;

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

    /// The services that are open to everyone: `health`, `reflection`, `health,reflection` or `none`
    #[arg(
        long,
        env = "DECREE_PUBLIC_SERVICES",
        default_value = "health",
        value_name = "SERVICES"
    )]
    pub public_services: PublicServices,

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

    /// The maximum difference between the clocks of the issuer and of this machine; at most 5 minutes
    #[arg(long, env = "DECREE_TOKEN_LEEWAY", default_value = "10s", value_name = "TIME", value_parser = leeway)]
    pub token_leeway: Duration,
}

/// The services that need no permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicServices {
    /// `grpc.health.v1.Health`.
    pub health: bool,
    /// `grpc.reflection`, in both versions.
    pub reflection: bool,
}

// === impl AccessArgs ===

impl Default for AccessArgs {
    fn default() -> Self {
        config::defaults()
    }
}

// === impl PublicServices ===

impl FromStr for PublicServices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut services = Self {
            health: false,
            reflection: false,
        };
        for service in text.split(',').map(str::trim) {
            match service {
                "none" if text.trim() == "none" => {}
                "health" => services.health = true,
                "reflection" => services.reflection = true,
                _ => {
                    return Err("must be health, reflection, both with a comma, or none".to_owned());
                }
            }
        }
        Ok(services)
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(10)..=Duration::from_mins(60);
    let interval = Some(config::duration(text)?).filter(|it| range.contains(it));
    interval.ok_or_else(|| "must be from 10ms to 60m".to_owned())
}

fn leeway(text: &str) -> Result<Duration, String> {
    let leeway = Some(config::duration(text)?).filter(|it| *it <= Duration::from_mins(5));
    leeway.ok_or_else(|| "must be at most 5m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_services_are_named() {
        let parse = |text: &str| {
            text.parse::<PublicServices>()
                .map(|it| (it.health, it.reflection))
        };
        assert_eq!(parse("none"), Ok((false, false)));
        assert_eq!(parse("health"), Ok((true, false)));
        assert_eq!(parse("reflection, health"), Ok((true, true)));
        assert!(parse("").is_err() && parse("all").is_err() && parse("none,health").is_err());
    }
}

//! The connection flags.

use std::{path::PathBuf, time::Duration};

use clap::Args as Group;
use transport::{ClientArgs, Endpoint};

#[derive(Debug, Group)]
pub(crate) struct ServerArgs {
    /// The server: https://HOST:PORT, unix:PATH, or http://HOST:PORT for plain text, which beyond this machine needs --insecure
    #[arg(
        long,
        env = "DECREE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:50051"
    )]
    pub(crate) server: Endpoint,
    /// A file with the token that proves to the server who asks
    #[arg(long, env = "DECREE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How long to wait for an answer of the server
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = runtime::config::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) tls: ClientArgs,
}

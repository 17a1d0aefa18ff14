//! The binary `decree-server`.

use std::{env, error::Error, process::ExitCode};

use decree_server::{Args, Server};
use runtime::{config, shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let Args { log, server, .. } =
        config::parse(env::args_os()).unwrap_or_else(|error| error.exit());
    if let Err(error) = log.init() {
        tracing::error!(%error, "no logs");
        return ExitCode::FAILURE;
    }
    match run(server).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            tracing::error!(%error, cause, "the server ended");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: decree_server::Config) -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown::on_signal()?;
    Server::bind(config).await?.serve(shutdown).await?;
    Ok(())
}

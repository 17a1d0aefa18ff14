//! The binary `decree-server`.

use std::{env, error::Error, process::ExitCode};

use decree_server::{Args, Server};
use runtime::{config, failure, shutdown};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let args: Args = config::parse(env::args_os()).unwrap_or_else(|error| error.exit());
    match start(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> Result<(), Box<dyn Error>> {
    args.log.init()?;
    let mut runtime = match args.threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(args.threads).enable_all().build()?;
    runtime.block_on(run(args.server))
}

async fn run(config: decree_server::Config) -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown::on_signal()?;
    Server::bind(config).await?.serve(shutdown).await?;
    Ok(())
}

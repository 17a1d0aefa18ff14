//! The binary `decree-server`.

use std::{env, error::Error, process::ExitCode, time::Duration};

use decree_server::{Args, Server};
use runtime::{config, environment, failure, process, shutdown};
use tokio::runtime::Builder;

/// A session that ends frees millions of texts beside the threads that serve others: that must not hold them up.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many tasks run before the sockets are looked at again. A session that has much to do may be among them.
const EVENT_INTERVAL: u32 = 16;
/// How long the end may take beyond the drain: the last words to all peers, and the last of the recordings.
const STOP_MARGIN: Duration = Duration::from_secs(8);

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
    environment::warn_of_unknown();
    // Before there are other threads, which inherit it.
    process::shorten_time_slice();
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(args.threads()).enable_all();
    let runtime = runtime.event_interval(EVENT_INTERVAL).build()?;
    process::raise_file_limit(args.server.files());
    let ended = runtime.block_on(run(args.server));
    // What is still computed is computed for nobody.
    runtime.shutdown_background();
    ended
}

async fn run(config: decree_server::Config) -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown::on_signal(Some(config.drain_deadline + STOP_MARGIN))?;
    Server::bind(config).await?.serve(shutdown).await?;
    Ok(())
}

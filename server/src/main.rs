//! The binary `decree-server`.

use std::{
    env, num::NonZeroUsize, process::ExitCode, thread::available_parallelism, time::Duration,
};

use decree_server::{Args, ServeError, Server};
use service::{config, failure, process, shutdown};
use tokio::runtime::Builder;

/// A session that ends frees millions of texts beside the threads that serve others. The free must not block those threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// With one thread, a busy session would block all other sessions.
const THREADS_MIN: usize = 2;
/// The number of tasks that run between two polls of the sockets. A busy session may be among the tasks.
const EVENT_INTERVAL: u32 = 16;
/// How long the process may take after the drain: for the final statuses to all peers and the end of the recordings.
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

fn start(args: Args) -> Result<(), ServeError> {
    args.log.init()?;
    let mut runtime = Builder::new_multi_thread();
    let processors = available_parallelism().map_or(THREADS_MIN, NonZeroUsize::get);
    runtime
        .worker_threads(processors.max(THREADS_MIN))
        .enable_all();
    let runtime = runtime.event_interval(EVENT_INTERVAL).build()?;
    process::raise_file_limit(args.server.files());
    let ended = runtime.block_on(run(args.server));
    // Nobody waits for the running computations.
    runtime.shutdown_background();
    ended
}

async fn run(config: decree_server::Config) -> Result<(), ServeError> {
    let shutdown = shutdown::on_signal(Some(config.drain_deadline + STOP_MARGIN))?;
    Server::bind(config).await?.serve(shutdown).await?;
    Ok(())
}

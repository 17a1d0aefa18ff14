//! `decree demo`: the whole in one process. Server and agent speak gRPC over the loopback interface as two processes would;
//! the demonstration itself acts on the embedded cluster as its users and its accidents do, and watches the server as
//! `decree watch` does.
//!
//! ```text
//! story ─ acts ─▶ embedded cluster ◀─▶ agent ◀─ gRPC ─▶ server
//!   ▲                   │ pods                            │ decisions
//!   └──── director ◀────┴──────────── feed ◀──────────────┘
//! ```
//! **Invariant:** a step ends when what it waits for is there, or at its deadline. Only the text rests, and only on a terminal.

use agent_fake::Cluster;
use decree_agent::manifest::{self, Document};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::{
    args::DemoArgs,
    exit::{Exit, Failure},
    input,
    streams::Io,
};

mod beginning;
mod chronicle;
mod director;
mod feed;
mod page;
mod scene;
mod stage;
mod story;

use director::{Director, Pace};
use stage::Stage;

/// How many threads server, agent and cluster share.
const WORKERS: usize = 2;

pub(crate) fn run(args: &DemoArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let objects = input::read(&args.files, io.stdin)?;
    manifest::check_all(&objects).map_err(input::InputError::from)?;
    log(args);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::No, format!("cannot start threads: {error}")))?;
    runtime.block_on(perform(args, objects, io))
}

async fn perform(
    args: &DemoArgs,
    objects: Vec<Document>,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let stop = runtime::shutdown::on_signal(None).map_err(|error| {
        Failure::new(Exit::No, format!("cannot install signal handlers: {error}"))
    })?;
    let prepare = match args.files.is_empty() {
        true => beginning::install,
        false => |_: &mut Cluster| Ok(()),
    };
    let stage = Stage::open(args, objects, prepare).await?;
    let pace = match io.terminal && !args.fast {
        true => Pace::READABLE,
        false => Pace::default(),
    };
    let mut director = Director::new(stage, pace, args.deadline, io);
    let ended = play(args, &mut director, &stop).await;
    let closed = director.close().await;
    ended.and(closed).map(|()| Exit::Done)
}

/// Tells the story, and stays afterwards if asked to.
async fn play(
    args: &DemoArgs,
    director: &mut Director<'_, '_>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let story = async {
        director.introduce()?;
        match args.files.is_empty() {
            true => story::tell(director).await?,
            false => story::bring_to_size(director).await?,
        }
        director.sum_up()
    };
    let Some(ended) = stop.run_until_cancelled(story).await else {
        return Err(Failure::new(Exit::No, "interrupted before the end"));
    };
    ended?;
    if args.stay {
        director.invite()?;
        // The signal is the way to end it.
        return stop
            .run_until_cancelled(director.stay())
            .await
            .unwrap_or(Ok(()));
    }
    Ok(())
}

fn log(args: &DemoArgs) {
    let Some(log_level) = args.log_level.clone() else {
        return;
    };
    let log = runtime::LogArgs {
        log_format: runtime::Format::Auto,
        log_level,
    };
    // Where a process runs several demonstrations, the first has set the logs up.
    let _ = log.init();
}

//! `decree demo`: the whole in one process. Server and agent speak gRPC as two processes would, without a socket between them;
//! the demonstration itself acts on the embedded cluster as its users and its accidents do, and watches the server as
//! `decree watch` does.
//!
//! ```text
//! story ─ acts ─▶ embedded cluster ◀─▶ agent ◀─ gRPC ─▶ server
//!   ▲                   │ pods                            │ decisions
//!   └──── director ◀────┴──────────── feed ◀──────────────┘
//! ```
//! What is told goes out in lines, or, where a person sits at a terminal that can draw, onto a screen that keys steer.
//!
//! **Invariant:** a step ends when what it waits for is there, or at its deadline. Only the text rests, and only on a terminal.

use agent_fake::Cluster;
use decree_agent::{Mode, manifest::Document};
use otlp::OtlpArgs;
use runtime::ListenAddr;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::{
    args::DemoArgs,
    exit::{Exit, Failure},
    input,
    streams::Io,
    terminal,
};

pub(crate) mod act;
mod beginning;
mod chronicle;
mod control;
mod director;
mod feed;
mod picture;
mod playback;
mod remote;
mod scene;
mod screen;
mod stage;
mod story;
mod summary;

pub(crate) use chronicle::Chronicle;
pub(crate) use director::{Director, Pace};
pub(crate) use stage::{Prepare, Running, Site, Stage};

/// How many threads server, agent and cluster share.
const WORKERS: usize = 2;

pub(crate) fn run(args: &DemoArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if let Some(command) = &args.command {
        return remote::run(command, io);
    }
    let objects = input::read_for_cluster(&args.files, io.stdin)?;
    log(args.log_level.as_ref());
    on_threads(perform(args, objects, io))
}

/// Runs server, agent and cluster.
pub(crate) fn on_threads<T>(
    everything: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::No, format!("cannot start threads: {error}")))?;
    runtime.block_on(everything)
}

/// Returns what a signal to end cancels.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    runtime::shutdown::on_signal(None)
        .map_err(|error| Failure::new(Exit::No, format!("cannot install signal handlers: {error}")))
}

/// Returns what an embedded cluster begins with: the story's pods, unless files say otherwise.
pub(crate) fn prepare(is_story: bool) -> Prepare {
    match is_story {
        true => beginning::install,
        false => |_: &mut Cluster| Ok(()),
    }
}

async fn perform(
    args: &DemoArgs,
    objects: Vec<Document>,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let stop = on_signal()?;
    let site = Site {
        listen: args.listen,
        admin: args.admin,
        agent_admin: ListenAddr::Off,
        seed: args.seed,
        otlp: OtlpArgs::default(),
    };
    let prepare = prepare(args.files.is_empty());
    let stage = Stage::open(site, Mode::Enforce, objects, prepare).await?;
    // Logs would be written across the screen.
    let draws = io.terminal && !args.fast && !args.plain && args.log_level.is_none();
    let draws = draws && terminal::is_possible();
    let pace = match io.terminal && !args.fast {
        true if draws => Pace::ON_SCREEN,
        true => Pace::READABLE,
        false => Pace::default(),
    };
    let mut director = Director::new(stage, pace, args.deadline, io);
    let opened = match draws {
        true => director.open_screen(),
        false => Ok(()),
    };
    let ended = match opened {
        Ok(()) => play(args, &mut director, &stop).await,
        Err(failure) => Err(failure),
    };
    // Before anything is waited for or said.
    director.close_screen();
    let closed = director.close().await;
    // Where a part has failed, its end says why.
    closed.and(ended).map(|()| Exit::Done)
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
        director.applaud().await?;
        director.sum_up()
    };
    let Some(ended) = stop.run_until_cancelled(story).await else {
        return Err(Failure::new(Exit::No, director::INTERRUPTED));
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

/// Sets up the logs of server and agent, if they are wanted.
pub(crate) fn log(log_level: Option<&runtime::Filter>) {
    let Some(log_level) = log_level.cloned() else {
        return;
    };
    let log = runtime::LogArgs {
        log_format: runtime::Format::Auto,
        log_level,
    };
    // Where a process runs several demonstrations, the first has set the logs up.
    let _ = log.init();
}

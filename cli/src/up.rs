//! `decree up`: a server and an agent in this process, with an embedded cluster that can be acted upon, or with a real one.

use std::time::Duration;

use decree_agent::Mode;

use crate::{
    args::UpArgs,
    demo::{self, Director, Pace, Site, Stage},
    exit::{Exit, Failure},
    input,
    streams::Io,
};

mod real;

pub(crate) fn run(args: &UpArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let site = Site {
        listen: args.listen,
        admin: args.admin,
        agent_admin: args.agent_admin,
        seed: args.seed,
        otlp: args.otlp.clone(),
    };
    let run = async {
        match args.is_real()? {
            true => real::run(args, site, io).await,
            false => embedded(args, site, io).await,
        }
    };
    demo::on_threads(run).map(|()| Exit::Done)
}

/// Runs with an embedded cluster. The signal is the way to end it.
async fn embedded(args: &UpArgs, site: Site, io: &mut Io<'_>) -> Result<(), Failure> {
    let objects = input::read_for_cluster(&args.files, io.stdin)?;
    demo::log(args.log_level.as_ref());
    let stop = demo::on_signal()?;
    let mode = args.mode.unwrap_or(Mode::Enforce);
    let prepare = demo::prepare(args.files.is_empty());
    let stage = Stage::open(site, mode, objects, prepare).await?;
    let mut director = Director::new(stage, Pace::default(), Duration::ZERO, io);
    let staying = async {
        director.introduce()?;
        director.invite()?;
        director.stay().await
    };
    let ended = stop.run_until_cancelled(staying).await.unwrap_or(Ok(()));
    let closed = director.close().await;
    // Where a part has failed, its end says why.
    closed.and(ended)
}

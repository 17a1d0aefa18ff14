//! `decree up`: a server and an agent in this process, with an embedded cluster that can be acted upon.

use std::time::Duration;

use decree_agent::Mode;

use crate::{
    args::UpArgs,
    demo::{self, Director, Pace, Site, Stage},
    exit::{Exit, Failure},
    input,
    streams::Io,
};

pub(crate) fn run(args: &UpArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let objects = input::read_for_cluster(&args.files, io.stdin)?;
    demo::log(args.log_level.as_ref());
    let site = Site {
        listen: args.listen,
        admin: args.admin,
        seed: args.seed,
    };
    demo::on_threads(async {
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
        // The signal is the way to end it.
        let ended = stop.run_until_cancelled(staying).await.unwrap_or(Ok(()));
        let closed = director.close().await;
        ended.and(closed).map(|()| Exit::Done)
    })
}

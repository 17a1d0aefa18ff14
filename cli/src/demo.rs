//! `decree demo`: a script that shows Decree at work on its own sandbox, and the commands that act on a running sandbox.
//!
//! The script does what the commands do that it prints, waits for their effects, and ends at once if an effect does not occur.
//!
//! **Invariant:** a wait ends with its event or at the deadline. Only the text pauses, and only on a terminal.

use std::net::{Ipv4Addr, SocketAddr};

use decree_agent::Mode;
use manifest::Document;
use otlp::OtlpArgs;
use runtime::ListenAddr;

use crate::{
    args::DemoArgs,
    exit::{Exit, Failure},
    input,
    sandbox::{self, Prepare, Sandbox, Settings, beginning},
    streams::Io,
    up,
};

mod acts;
mod keys;
pub(crate) mod remote;
mod rogue;
mod script;
mod shadowed;
mod standing;

use keys::Keys;
use script::Script;

pub(crate) fn run(args: &DemoArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if let Some(command) = &args.command {
        return remote::run(command, io);
    }
    let objects = input::read_for_cluster(&args.input, io)?;
    let _log = sandbox::log(args.log_level.as_ref());
    sandbox::on_threads(perform(args, objects, io))
}

async fn perform(
    args: &DemoArgs,
    objects: Vec<Document>,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let stop = sandbox::on_signal()?;
    let terminal = io.keys.take().filter(|_| (io.columns)().is_some());
    let keys = match terminal {
        Some(terminal) => Keys::listen(terminal, &stop)
            .map_err(|error| Failure::new(Exit::No, format!("cannot read keys: {error}")))?,
        None => None,
    };
    let has_files = !args.input.files.is_empty();
    let settings = Settings {
        listen: args.listen,
        admin: args.admin,
        agent_admin: ListenAddr::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        seed: args.seed,
        otlp: OtlpArgs::default(),
        budget: acts::budget(),
        is_killable: true,
    };
    let prepare: Option<Prepare> = (!has_files).then_some(|it| beginning::install(it, false));
    let sandbox = Sandbox::open(settings, Mode::Enforce, objects, prepare).await?;
    let is_read = (io.columns)().is_some() && !args.fast;
    let mut script = Script::new(sandbox, is_read, args.deadline, io);
    let telling = async {
        if has_files {
            acts::bring_to_size(&mut script).await?;
        } else {
            acts::play(&mut script, args.seed, keys.is_some()).await?;
        }
        script.sum_up()
    };
    let told = stop.run_until_cancelled(Box::pin(telling)).await;
    let interrupted = || Err(Failure::new(Exit::No, "interrupted before the end"));
    let mut ended = told.unwrap_or_else(interrupted);
    if ended.is_ok() && args.stay {
        // Only a signal ends this.
        let staying = up::stay(&mut script.sandbox, script.io);
        ended = stop.run_until_cancelled(staying).await.unwrap_or(Ok(()));
    }
    script.sandbox.running.close(ended).await?;
    Ok(Exit::Done)
}

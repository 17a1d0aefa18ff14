//! The command line of Decree: decisions from files and clusters, inspection of a running server, and a demonstration.
//!
//! # Theory of operation
//!
//! [`run`] is the only entry point: it takes arguments and three streams, and returns an [`Exit`]. A command writes text to
//! standard output, or returns a failure. Only this module turns failures into two lines on standard error, cause and remedy.
//!
//! ```text
//! decide      files or cluster ─▶ snapshot ─▶ answers: decree_core ─▶ decision ─▶ table or JSON
//! simulate, get, explain   source: server or snapshot ─▶ table, text or canonical proto3 JSON
//! watch, diff   server ─▶ table, text or canonical proto3 JSON
//! console     cluster ─▶ a pod with a server ─▶ kubectl port-forward ─▶ the browser
//! check       server, agent and cluster ─▶ a line for each thing that must be so
//! resume      cluster ◀─ an annotation of a ReplicaSet
//! take-over, hand-back   cluster ◀─ a record in the probe of the agents
//! replay      files ─▶ server_session::recording::Replay ─▶ text, or a page in the browser
//! up          server and agent in this process, with an embedded cluster or a real one
//! demo        commands of this list on such parts, and what must come of them
//! demo scale  ─▶ the admin port of such a process ─▶ its embedded cluster
//! ```
//!
//! **Invariant:** nothing is decided here: a snapshot runs the server's own core on the server's own conversions.
//! **Invariant:** no input makes a command panic, and a reader that closes standard output ends a command quietly.
//!
//! Out of scope: changes of a real cluster, except the annotations of `resume`, `take-over` and `hand-back`, and the writes of the agent
//! of `up` in enforce mode. `check`, `console` and the commands on a snapshot of a cluster use credentials too, but only read.

use std::{ffi::OsString, io};

use clap::error::ErrorKind;
use service::build_info::{COMMIT, VERSION};

mod age;
mod args;
mod cause;
mod check;
mod cluster;
mod complete;
mod console;
mod decide;
mod decision;
mod demo;
mod deployment;
mod diff;
mod exit;
mod explain;
mod format;
mod get;
mod http;
mod input;
mod near;
mod not_found;
mod page;
mod pages;
mod paging;
mod replay;
mod resume;
mod sandbox;
mod server;
mod simulate;
mod snapshot;
mod source;
mod stale;
mod table;
mod take_over;
mod unread;
mod up;
mod watch;

pub use args::command;
pub use exit::Exit;
pub use page::{Colors, Io};

use args::Command;
use exit::Failure;
use page::Paint;

#[cfg(test)]
mod tests;

/// Runs one command. The first of `arguments` is the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, mut io: Io<'_>) -> Exit {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let args = match args::parse(&arguments) {
        Ok(args) => args,
        Err(error) => return usage(&error, &arguments, &mut io),
    };
    let ended = dispatch(args.command, &mut io);
    let flushed = io.stdout.flush().map_err(Failure::from);
    match ended.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => tell(&failure, &mut io),
    }
}

/// Answers a shell that asks for completions, which it does by the variable `COMPLETE`, and ends the process; otherwise does nothing.
///
/// To be called before anything is written to standard output.
pub fn answer_completion() {
    let words: Vec<_> = std::env::args_os().collect();
    clap_complete::CompleteEnv::with_factory(|| complete::command(&words)).complete();
}

fn dispatch(command: Command, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match command {
        Command::Up(args) => up::run(&args, io),
        Command::Demo(args) => demo::run(&args, run, io),
        Command::Decide(args) => decide::run(&args, io),
        Command::Simulate(args) => simulate::run(&args, io),
        Command::Console(args) => console::run(&args, io),
        Command::Get(args) => get::run(&args, io),
        Command::Explain(args) => explain::run(&args, io),
        Command::Watch(args) => watch::run(&args, io),
        Command::Diff(args) => diff::run(&args, io),
        Command::Replay(args) => replay::run(&args, io),
        Command::Check(args) => check::run(&args, io),
        Command::Resume(args) => resume::run(&args, io),
        Command::TakeOver(args) => take_over::run(&args, true, io),
        Command::HandBack(args) => take_over::run(&args, false, io),
        Command::Completion { shell } => {
            args::completion(shell, io.stdout)?;
            Ok(Exit::Done)
        }
        Command::Man { folder } => {
            args::man(&folder)?;
            Ok(Exit::Done)
        }
        Command::Version => {
            let version = format!("decree {VERSION} (commit {COMMIT}, contract decree.v1)");
            writeln!(io.stdout, "{version}")?;
            Ok(Exit::Done)
        }
    }
}

/// Prints the help of clap. Its errors become failures, as all others.
fn usage(error: &clap::Error, arguments: &[OsString], io: &mut Io<'_>) -> Exit {
    let text = error.render();
    let text = |is_colored: bool| {
        if is_colored {
            text.ansi().to_string()
        } else {
            text.to_string()
        }
    };
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // There is no better place to report that standard error is closed.
        let _ = write!(io.stderr, "{}", text(io.colors.stderr));
        return Exit::Usage;
    }
    if error.use_stderr() {
        return tell(&args::failure(error, arguments), io);
    }
    match write!(io.stdout, "{}", text(io.colors.stdout)).and_then(|()| io.stdout.flush()) {
        Ok(()) => Exit::Done,
        Err(error) => tell(&error.into(), io),
    }
}

fn tell(failure: &Failure, io: &mut Io<'_>) -> Exit {
    let Failure { exit, cause, hint } = failure;
    if *exit != Exit::Done {
        let paint = Paint::new(io.colors.stderr);
        let (error, remedy) = (paint.error("error:"), paint.hint("hint:"));
        let told = writeln!(io.stderr, "{error} {}", page::one_line(cause));
        let hinted = hint
            .iter()
            .try_for_each(|hint| writeln!(io.stderr, "{remedy} {}", page::one_line(hint)));
        // There is no better place to report that standard error is closed.
        let _: io::Result<()> = told.and(hinted);
    }
    *exit
}

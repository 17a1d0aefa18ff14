//! `decree demo`: acts that show Decree at work, and the commands that act on a running `decree up`.
//!
//! An act is a list of commands of this program with the words that their output must have. The demo runs each command until its output
//! has these words, and ends with a failure at the deadline.

use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

use http::StatusCode;
use serde_json::Value;

use crate::{
    args::{AdminArgs, DemoArgs, DemoCommand, NamespaceArgs, PlaceArgs},
    exit::{Exit, Failure},
    http::exchange,
    page::{self, Colors, Io, one_line},
    sandbox::{
        self,
        act::{self, Act},
    },
    server,
};

mod acts;
mod stage;

use acts::Step;
use stage::Stage;

/// The timeout of an act in another process.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a person on a terminal reads a step, and the beginning of a part.
const READING: Duration = Duration::from_millis(1_500);

type RunCommand = fn(Vec<OsString>, Io<'_>) -> Exit;

pub(crate) fn run(
    args: &DemoArgs,
    run_command: RunCommand,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    if let Some(command) = &args.command {
        return act_remotely(command, io);
    }
    sandbox::log(args.log_level.as_ref());
    let mut stage = Stage::open(args.deadline)?;
    let ended = play(&mut stage, run_command, args.fast, io);
    stage.close(ended)?;
    Ok(Exit::Done)
}

fn play(
    stage: &mut Stage,
    run_command: RunCommand,
    is_fast: bool,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let pause = (io.columns)().filter(|_| !is_fast).map(|_| READING);
    page::say(&stage.introduction(), io)?;
    for (number, (title, steps)) in (1..).zip(acts::ACTS) {
        page::say(&format!("\n{number}. {title}"), io)?;
        for step in steps {
            let done = stage.wait(pause.unwrap_or_default());
            done.and_then(|()| perform(step, stage, run_command, io))
                .map_err(|failure| Failure {
                    cause: format!("part \"{title}\": {}", failure.cause),
                    ..failure
                })?;
        }
    }
    let (parts, took) = (acts::ACTS.len(), begun.elapsed().as_secs_f64());
    let text = format!(
        "\nAll {parts} parts went as expected, in {took:.1} s.\n\nCompare with the controller of your own cluster; this only reads:\n  \
         decree up --cluster kubernetes"
    );
    Ok(page::say(&text, io)?)
}

fn perform(
    step: &Step,
    stage: &mut Stage,
    run_command: RunCommand,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    match step {
        Step::Say(text) => Ok(page::say(text, io)?),
        Step::Do(act) => Ok(page::say(&act(stage)?, io)?),
        Step::Run(line, expected) => {
            let (shown, words) = stage.words(line);
            page::say(&format!("$ decree {shown}"), io)?;
            let output = |columns, colors| output(run_command, &words, columns, colors);
            let said = stage.until(|| {
                let said = output(|| None, Colors::default());
                match missing(&said, expected) {
                    None => Ok(said),
                    Some(part) => Err(format!(
                        "`decree {shown}` does not say {part:?}, but:\n{said}"
                    )),
                }
            })?;
            let is_plain = (io.columns)().is_none() && io.colors == Colors::default();
            let said = if is_plain {
                said
            } else {
                output(io.columns, io.colors)
            };
            io.stdout.write_all(said.as_bytes())?;
            Ok(io.stdout.flush()?)
        }
    }
}

/// The first of these words that a text does not have. The number of spaces between words does not count.
fn missing(said: &str, expected: &'static [&'static str]) -> Option<&'static str> {
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    expected.iter().copied().find(|part| !words.contains(part))
}

/// The output of a command, with its errors.
fn output(
    run_command: RunCommand,
    words: &[String],
    columns: fn() -> Option<usize>,
    colors: Colors,
) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let io = Io {
        stdin: &mut std::io::empty(),
        stdout: &mut out,
        stderr: &mut err,
        columns,
        colors,
    };
    run_command(words.iter().map(Into::into).collect(), io);
    err.append(&mut out);
    String::from_utf8_lossy(&err).into_owned()
}

/// Acts on the embedded cluster of another process.
fn act_remotely(command: &DemoCommand, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let namespace = |place: &PlaceArgs| NamespaceArgs::of(place.namespace.clone());
    let (at, act) = match command.clone() {
        DemoCommand::Scale {
            replica_set,
            replicas,
            place,
        } => {
            let set = namespace(&place).replica_set(&replica_set)?;
            (place.server, Act::Scale(set, replicas))
        }
        DemoCommand::Resume { replica_set, place } => {
            let set = namespace(&place).replica_set(&replica_set)?;
            (place.server, Act::Resume(set))
        }
        DemoCommand::Fail { node, server } => (server, Act::Fail(node)),
        DemoCommand::Restore { node, server } => (server, Act::Restore(node)),
        DemoCommand::Drain { node, server } => (server, Act::Drain(node)),
        DemoCommand::Quota { pods, place } => {
            let namespace = namespace(&place).or_default();
            (place.server, Act::Quota(namespace, pods))
        }
    };
    let done = server::block_on(post(&at, &act))?;
    writeln!(io.stdout, "{}", one_line(&done))?;
    Ok(Exit::Done)
}

async fn post(at: &AdminArgs, act: &Act) -> Result<String, Failure> {
    let url = format!("http://{}", at.admin);
    let failure = |exit, cause: &str| {
        let hint = "start an embedded cluster with decree up, or name its admin port with --admin";
        Failure::new(exit, format!("{url}{cause}")).hint(hint)
    };
    let body = serde_json::to_vec(act).expect("an act is JSON");
    let answer = exchange(&format!("{url}{}", act::PATH), Some(body), PATIENCE).await;
    let (status, body) =
        answer.map_err(|cause| failure(Exit::Unreachable, &format!(": {cause}")))?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    match (status, text("done"), text("error")) {
        (StatusCode::OK, Some(done), _) => Ok(done),
        (_, _, Some(error)) => Err(Failure {
            hint: text("hint"),
            ..Failure::new(Exit::No, error)
        }),
        (status, ..) => {
            let cause = format!(" has no embedded cluster ({status})");
            Err(failure(Exit::Refused, &cause))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_the_columns() {
        assert_eq!(missing("a   b\n  c d", &["a b c", "d"]), None);
        assert_eq!(missing("a b", &["a", "b c"]), Some("b c"));
    }
}

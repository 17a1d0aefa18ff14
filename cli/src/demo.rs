//! `decree demo`: acts that show Decree at work, and the commands that act on a running `decree up`.
//!
//! An act is a list of commands of this program with the words that their output must have. The demo runs each command until its output
//! has these words, and ends with a failure at the deadline.

use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

use crate::{
    args::DemoArgs,
    exit::{Exit, Failure},
    page, sandbox,
    streams::{Colors, Io},
};

mod acts;
pub(crate) mod remote;
mod rogue;
mod stage;

use acts::Step;
use stage::Stage;

/// How long a person on a terminal reads a step, and the beginning of a part.
const READING: Duration = Duration::from_millis(1_500);

/// Runs the words of a command.
type RunCommand = fn(Vec<OsString>, Io<'_>) -> Exit;

pub(crate) fn run(
    args: &DemoArgs,
    run_command: RunCommand,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    if let Some(command) = &args.command {
        return remote::run(command, io);
    }
    let _log = sandbox::log(args.log_level.as_ref());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_the_columns() {
        assert_eq!(missing("a   b\n  c d", &["a b c", "d"]), None);
        assert_eq!(missing("a b", &["a", "b c"]), Some("b c"));
    }
}

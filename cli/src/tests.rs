//! The commands through [`run`](crate::run), as a shell would start them.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{Colors, Exit, Io, run};

mod decide;
mod decide_files;
mod demo;
mod documents;
mod explain;
mod golden;
mod inspection;
mod kubectl;
mod replay;
mod stale;
mod streams;
mod system;
mod up;
mod what_if;

/// The exit code and output of a command.
#[derive(Debug)]
struct Ended {
    exit: Exit,
    out: String,
    err: String,
}

/// Runs a command without standard input.
fn decree(arguments: &[&str]) -> Ended {
    decree_reading("", arguments)
}

fn decree_reading(input: &str, arguments: &[&str]) -> Ended {
    let mut out = Vec::new();
    let (exit, err) = decree_into(input, &mut out, NO_TERMINAL, arguments);
    Ended {
        exit,
        out: text(out),
        err,
    }
}

/// Runs a command as if its standard output were a terminal with these columns.
fn decree_on_terminal(columns: fn() -> Option<usize>, arguments: &[&str]) -> Ended {
    let mut out = Vec::new();
    let (exit, err) = decree_into("", &mut out, columns, arguments);
    Ended {
        exit,
        out: text(out),
        err,
    }
}

/// Runs a command that writes its output to `out`; returns its standard error.
fn decree_into(
    input: &str,
    out: &mut dyn Write,
    columns: fn() -> Option<usize>,
    arguments: &[&str],
) -> (Exit, String) {
    let mut err = Vec::new();
    let io = Io {
        stdin: &mut input.as_bytes(),
        stdout: out,
        stderr: &mut err,
        columns,
        keys: None,
        utf8: true,
        colors: Colors::default(),
    };
    (run(words("decree", arguments), io), text(err))
}

/// Runs the program under another name. It must succeed; returns its output.
fn printed_as(program: &str, arguments: &[&str]) -> String {
    let mut out = Vec::new();
    let io = Io {
        stdin: &mut io::empty(),
        stdout: &mut out,
        stderr: &mut io::sink(),
        columns: NO_TERMINAL,
        keys: None,
        utf8: true,
        colors: Colors::default(),
    };
    assert_eq!(run(words(program, arguments), io), Exit::Done);
    text(out)
}

/// No terminal.
const NO_TERMINAL: fn() -> Option<usize> = || None;

fn words(program: &str, arguments: &[&str]) -> Vec<OsString> {
    let words = [program].into_iter().chain(arguments.iter().copied());
    words.map(OsString::from).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("commands write text")
}

/// The names of the victims in the JSON of decisions, one line each.
fn victims(json: &str) -> String {
    let decisions = json.lines().map(|line| {
        let decision: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let victims = decision["deletes"].as_array().expect("a list");
        let names = victims.iter().filter_map(|it| it["name"].as_str());
        names.collect::<Vec<_>>().join(" ") + "\n"
    });
    decisions.collect()
}

/// The text that something writes.
pub(crate) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes all");
    text(out)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("cli/ is in the root")
        .to_owned()
}

/// The absolute path of a file of the checkout.
fn path(relative: &str) -> String {
    root().join(relative).display().to_string()
}

//! The commands through [`run`](crate::run), as a shell would start them.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{Colors, Exit, Io, run};

mod checks;
mod cluster;
mod decide;
mod decide_files;
mod demo;
mod documents;
mod explain;
mod inspection;
mod replay;
mod stale;
mod streams;
mod system;
mod tables;
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
    let (exit, err) = decree_into(input, &mut out, "decree", arguments);
    Ended {
        exit,
        out: text(out),
        err,
    }
}

/// Runs the program under a name, with its output to `out`; returns its standard error.
fn decree_into(
    input: &str,
    out: &mut dyn Write,
    program: &str,
    arguments: &[&str],
) -> (Exit, String) {
    decree_on(|| None, input, out, program, arguments)
}

/// Runs the same on a terminal of this width.
fn decree_on(
    columns: fn() -> Option<usize>,
    input: &str,
    out: &mut dyn Write,
    program: &str,
    arguments: &[&str],
) -> (Exit, String) {
    let mut err = Vec::new();
    let io = Io {
        stdin: &mut input.as_bytes(),
        stdout: out,
        stderr: &mut err,
        columns,
        colors: Colors::default(),
    };
    let words = [program].into_iter().chain(arguments.iter().copied());
    (run(words.map(OsString::from), io), text(err))
}

/// Runs the program under another name. It must succeed; returns its output.
fn printed_as(program: &str, arguments: &[&str]) -> String {
    let mut out = Vec::new();
    let ended = decree_into("", &mut out, program, arguments);
    assert_eq!(ended, (Exit::Done, String::new()));
    text(out)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("commands write text")
}

/// Checks a transcript of commands without a server: the exit code in brackets and the command line, and below it the output and the
/// errors, in which `…` stands for anything. Below a command that fails, nothing stands for anything.
fn check(transcript: &str) {
    check_with("", &[], transcript);
}

/// Checks a transcript of commands with this input and these further words.
fn check_with(input: &str, more: &[&str], transcript: &str) {
    let transcript = format!("\n{transcript}");
    let cases: Vec<_> = transcript.split("\n[").skip(1).collect();
    assert!(!cases.is_empty(), "no command is in {transcript}");
    for case in cases {
        let (code, rest) = case.split_once("] ").expect("an exit code");
        let (line, pattern) = rest.split_once('\n').unwrap_or((rest, ""));
        let words = split(line);
        let words = words.iter().map(String::as_str);
        let ended = decree_reading(
            input,
            &words.chain(more.iter().copied()).collect::<Vec<_>>(),
        );
        let said = ended.out + &ended.err;
        assert_eq!(
            (ended.exit as u8).to_string(),
            code,
            "decree {line}: {said}"
        );
        let pattern = match pattern.trim_end() {
            "" if ended.exit != Exit::Done => "…".to_owned(),
            pattern if pattern.is_empty() || pattern.ends_with('…') => pattern.to_owned(),
            pattern => format!("{pattern}\n"),
        };
        let is_as_expected = system::says(&pattern, &said);
        assert!(
            is_as_expected,
            "decree {line}\nexpected:\n{pattern}\nsaid:\n{said}"
        );
    }
}

/// Splits a command line into words as a shell does; text in single quotes is one word.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
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

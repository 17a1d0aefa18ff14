//! What a shell sees whatever the command: help, usage, and streams that close early.

use std::io::{self, Write};

use super::{decree, decree_into, path};
use crate::Exit;

/// A stream that takes some bytes and then fails.
struct Closing {
    left: usize,
    kind: io::ErrorKind,
}

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        if taken == 0 {
            Err(self.kind.into())
        } else {
            Ok(taken)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn decide_into(left: usize, kind: io::ErrorKind) -> (Exit, String) {
    let state = path("docs/examples/state.yaml");
    decree_into(
        "",
        &mut Closing { left, kind },
        false,
        &["decide", "-f", &state],
    )
}

#[test]
fn reader_that_goes_ends_a_command_quietly() {
    for left in 0..200 {
        assert_eq!(
            decide_into(left, io::ErrorKind::BrokenPipe),
            (Exit::Done, String::new())
        );
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let (exit, err) = decide_into(10, io::ErrorKind::StorageFull);
    assert_eq!(exit, Exit::No);
    assert!(
        err.starts_with("error: output cannot be written: "),
        "{err}"
    );
}

#[test]
fn help_tells_every_exit_code() {
    let help = decree(&["--help"]);
    assert_eq!(help.exit, Exit::Done);
    for exit in [
        Exit::Done,
        Exit::No,
        Exit::Usage,
        Exit::Unreachable,
        Exit::Refused,
    ] {
        assert!(
            help.out.contains(&format!("\n  {}  ", exit.code())),
            "{exit:?}: {}",
            help.out
        );
    }
}

#[test]
fn unknown_flags_are_usage_errors_on_standard_error() {
    let ended = decree(&["decide", "--fil", "x"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    assert!(ended.err.contains("--filename"), "{}", ended.err);
    assert_eq!(decree(&[]).exit, Exit::Usage);
}

#[test]
fn version_names_the_contract() {
    let version = decree(&["version"]);
    assert_eq!(version.exit, Exit::Done);
    assert!(version.out.contains("decree.v1"), "{}", version.out);
}

#[test]
fn every_shell_gets_a_completion_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = decree(&["completion", shell]);
        assert_eq!(script.exit, Exit::Done);
        for command in ["demo", "decide", "simulate", "get", "explain", "watch"] {
            assert!(
                script.out.contains(command),
                "{shell} does not know {command}"
            );
        }
    }
    assert_eq!(decree(&["completion", "tcl"]).exit, Exit::Usage);
}

//! The behavior of all commands in a shell: help, usage, and streams that close early.

use std::io::{self, Write};

use super::{NO_TERMINAL, decree, decree_into, path, printed_as};
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
        NO_TERMINAL,
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
            help.out.contains(&format!("\n  {}  ", exit as u8)),
            "{exit:?}: {}",
            help.out
        );
    }
}

#[test]
fn unknown_flags_are_usage_errors_on_standard_error() {
    let ended = decree(&["decide", "--fil", "x"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    let said =
        "error: unexpected argument '--fil' found\nhint: a similar argument exists: '--filename'\n";
    assert_eq!(ended.err, said);
    let ended = decree(&["demo", "scale", "web"]);
    let said = "error: the following required arguments were not provided: <NUMBER>\nhint: list its arguments with: decree demo scale --help\n";
    assert_eq!(ended.err, said);
    assert_eq!(decree(&[]).exit, Exit::Usage);
}

#[test]
fn version_names_the_commit_and_the_contract() {
    let version = decree(&["version"]);
    assert_eq!(version.exit, Exit::Done);
    let expected = format!(
        "decree {} (commit {}, contract decree.v1)\n",
        build_info::VERSION,
        build_info::COMMIT
    );
    assert_eq!(version.out, expected);
    let flag = decree(&["--version"]);
    assert_eq!(flag.out, format!("decree {}\n", build_info::text()));
}

#[test]
fn plugin_of_kubectl_speaks_of_itself_as_such() {
    let help = printed_as("/usr/local/bin/kubectl-decree", &["get", "--help"]);
    assert!(help.contains("Usage: kubectl decree get "), "{help}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("it is text");
    let written = decree(&["man", path]);
    assert_eq!((written.exit, written.err.as_str()), (Exit::Done, ""));
    for page in [
        "decree.1",
        "decree-get.1",
        "decree-decide.1",
        "decree-demo-scale.1",
    ] {
        let text = std::fs::read_to_string(folder.path().join(page));
        assert!(text.is_ok_and(|text| text.contains(".TH ")), "{page}");
    }
    let new = folder.path().join("a/b");
    let made = decree(&["man", new.to_str().expect("it is text")]);
    assert_eq!(made.exit, Exit::Done);
    let page = std::fs::read_to_string(new.join("decree-get.1")).expect("it is there");
    assert!(page.contains("Examples:") && page.contains("tls"), "{page}");
    let taken = folder.path().join("decree.1");
    let refused = decree(&["man", taken.to_str().expect("it is text")]);
    assert_eq!(refused.exit, Exit::No);
}

#[test]
fn every_shell_gets_a_completion_that_asks_the_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = decree(&["completion", shell]);
        assert_eq!(script.exit, Exit::Done);
        assert!(
            script.out.contains("COMPLETE") && script.out.contains("decree"),
            "{shell}: {}",
            script.out
        );
    }
    assert_eq!(decree(&["completion", "tcl"]).exit, Exit::Usage);
}

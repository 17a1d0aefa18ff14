//! `decree demo` as a process: a signal ends it at any time, and with `--stay` it serves until a signal.

use std::{
    io::{BufRead, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

const DECREE: &str = env!("CARGO_BIN_EXE_decree");

/// A running demo, killed if a test fails before its end.
struct Demo {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Demo {
    /// Starts a demo on free ports.
    fn start(flags: &[&str]) -> Self {
        let free = "127.0.0.1:0";
        let mut child = Command::new(DECREE)
            .args(["demo", "--listen", free, "--admin", free])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let stdout = child.stdout.take().expect("it is piped");
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// The rest of the first line that begins with `text`.
    fn behind(&mut self, text: &str) -> String {
        let mut said = self.lines.by_ref().map(|line| line.expect("text"));
        let line = said.find_map(|line| line.strip_prefix(text).map(str::to_owned));
        line.expect("it says so")
    }

    /// Ends the demo with a signal; returns its exit code and its standard error.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .expect("kill is there");
        assert!(sent.success());
        // Reads the remaining output, so that the demo can write it.
        self.lines.by_ref().for_each(drop);
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut said).expect("it is text");
        (self.child.wait().expect("it ends").code(), said)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // The demo has ended, unless the test has failed.
        let _ = self.child.kill();
    }
}

fn ask(url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(DECREE);
    command
        .args(arguments)
        .env("DECREE_SERVER", url)
        .output()
        .expect("the binary is built")
}

#[test]
fn demonstration_that_stays_answers_until_it_is_told_to_end() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/web.yaml");
    for signal in ["TERM", "INT"] {
        let mut demo = Demo::start(&["--stay", "-f", manifest]);
        let url = demo.behind("  export DECREE_SERVER=");
        let sets = ask(&url, &["get", "replicasets"]);
        assert!(
            sets.status.success(),
            "{}",
            String::from_utf8_lossy(&sets.stderr)
        );
        let text = String::from_utf8_lossy(&sets.stdout).into_owned();
        assert!(text.contains("web-7d4b9c   20"), "{text}");
        let ended = demo.end(signal);
        assert_eq!(ended, (Some(0), String::new()), "after SIG{signal}");
        assert_eq!(ask(&url, &["get", "replicasets"]).status.code(), Some(3));
    }
}

#[test]
fn signal_ends_the_demonstration_wherever_it_is() {
    for place in [
        "1. Ask which pods would go",
        "  The server is killed",
        "4. Explain",
    ] {
        let mut demo = Demo::start(&[]);
        demo.behind(place);
        let (code, said) = demo.end("INT");
        assert_eq!(code, Some(1), "{place}: {said}");
        assert_eq!(said, "error: interrupted before the end\n", "{place}");
    }
}

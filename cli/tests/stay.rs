//! `decree demo --stay` as a process: it serves until a signal comes, and then ends well.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

const DECREE: &str = env!("CARGO_BIN_EXE_decree");

/// A demonstration that stays. It is killed if a test fails before it has ended.
struct Demo {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Demo {
    /// Starts one on free ports; returns once it says where its server is.
    fn start() -> (Self, String) {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/web.yaml");
        let free = "127.0.0.1:0";
        let mut child = Command::new(DECREE)
            .args([
                "demo", "--stay", "--listen", free, "--admin", free, "-f", manifest,
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let stdout = child.stdout.take().expect("it is piped");
        let mut demo = Self {
            child,
            lines: BufReader::new(stdout).lines(),
        };
        let url = demo.url();
        (demo, url)
    }

    fn url(&mut self) -> String {
        let export = "  export DECREE_SERVER=";
        let said = self.lines.by_ref().map(|line| line.expect("text"));
        let url = said
            .filter_map(|line| line.strip_prefix(export).map(str::to_owned))
            .next();
        url.expect("it says where its server is")
    }

    fn end(mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .expect("kill is there");
        assert!(sent.success());
        // What it still says must have room.
        self.lines.by_ref().for_each(drop);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
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
    for signal in ["TERM", "INT"] {
        let (demo, url) = Demo::start();
        let sets = ask(&url, &["get", "replicasets"]);
        assert!(
            sets.status.success(),
            "{}",
            String::from_utf8_lossy(&sets.stderr)
        );
        let text = String::from_utf8_lossy(&sets.stdout).into_owned();
        assert!(text.contains("web-7d4b9c   20"), "{text}");
        assert_eq!(demo.end(signal), Some(0), "after SIG{signal}");
        assert_eq!(ask(&url, &["get", "replicasets"]).status.code(), Some(3));
    }
}

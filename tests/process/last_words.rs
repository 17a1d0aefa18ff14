//! No process ends silently: each failure names its cause and its remedy on standard error, and has an exit code.

use std::{
    fs,
    io::Read as _,
    net::TcpListener,
    process::{Command, Stdio},
};

use tempfile::{NamedTempFile, TempDir};
use tests::{
    binaries,
    running::{Running, Voice},
};

/// A program without the settings of this machine: no home, and only the given variables.
fn program(name: &str) -> Command {
    let mut command = Command::new(binaries::folder().join(name));
    command
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// Checks the exit code of a program, and the words in its errors, which it returns.
pub(crate) fn assert_ends(command: &mut Command, code: i32, words: &[&str]) -> String {
    let output = command.output().expect("it was built");
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    for word in words {
        assert!(
            said.contains(word),
            "{command:?} does not say {word:?}:\n{said}"
        );
    }
    said
}

fn kubeconfig(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("there is room");
    fs::write(&file, text).expect("it can be written");
    file
}

/// Command lines that are refused with an exit code, and below each the words of its error.
const REFUSED: &str = "
[1] decree-server --admin off --listen 127.0.0.1:0 --policy Cargo.toml
--policy Cargo.toml, line 1
[1] decree-server --admin off --listen 127.0.0.1:0 --record Cargo.toml
recordings cannot be kept here
[2] decree-agent --admin off
--cluster fake, --kubeconfig, --context, KUBECONFIG, ~/.kube/config
[2] decree-agent --admin off --manifest web.yaml
--cluster fake
[2] decree-server --listen everywhere
--listen, everywhere
[2] decree-server --admin 8080
--admin, an address and a port
[2] decree-server --sessions-max 0
--sessions-max, 1..=
[2] decree-agent --server unix:
--server, a path after unix:
[2] decree-agent --cluster kind
--cluster, fake
[2] decree-agent --mode act
--mode, dry-run
[1] decree-agent --cluster fake --log-level off --admin off --manifest /nowhere/web.yaml
/nowhere/web.yaml
[2] decree get everything
everything, replicasets
[2] decree demo --log-level loud
--log-level, TARGET=LEVEL
[2] decree-server --log-level foo=bar=baz
--log-level, TARGET=LEVEL
[2] decree-agent --log-level info,decree_agent
--log-level, TARGET=LEVEL";

#[test]
fn command_lines_that_cannot_be_followed_say_what_would_be_right() {
    let lines: Vec<_> = REFUSED.trim_start().lines().collect();
    for row in lines.chunks(2) {
        let (code, line) = row[0][1..].split_once("] ").expect("an exit code");
        let (name, arguments) = line.split_once(' ').expect("it has arguments");
        let code = code.parse().expect("a number");
        let words: Vec<_> = row[1].split(", ").collect();
        assert_ends(program(name).args(arguments.split(' ')), code, &words);
    }
}

#[test]
fn taken_port_is_named_with_its_flag_however_quiet_the_logs_are() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has room");
    let address = taken.local_addr().expect("it is bound").to_string();
    for level in ["info", "off", "decree_server=info", "decree_agent=info"] {
        let words = [address.as_str(), "Address already in use"];
        let mut server = program("decree-server");
        server.args(["--log-level", level, "--listen", &address]);
        server.args(["--admin", "off"]);
        assert_ends(&mut server, 1, &[words[0], words[1], "--listen"]);
        let mut agent = program("decree-agent");
        agent.args(["--cluster", "fake", "--log-level", level]);
        agent.args(["--admin", &address]);
        assert_ends(&mut agent, 1, &[words[0], words[1], "--admin"]);
    }
    let flags = ["up", "--listen", &address, "--admin", "127.0.0.1:0"];
    assert_ends(program("decree").args(flags), 1, &[&address, "--listen"]);
    let free = "--listen 127.0.0.1:0 --admin 127.0.0.1:0 --agent-admin";
    let mut up = program("decree");
    up.current_dir(binaries::checkout());
    up.args(["up", "-f", "docs/examples/web.yaml"]);
    up.args(free.split(' ')).arg(&address);
    let cause = format!("agent-admin cannot listen on {address}");
    let hint = "hint: use a free port: --agent-admin 127.0.0.1:0";
    assert_ends(&mut up, 1, &[&cause, hint]);
}

#[test]
fn kubeconfig_that_cannot_be_used_says_what_is_wrong_with_it() {
    let folder = TempDir::new().expect("there is room");
    let absent = folder.path().join("absent");
    let cases = [
        ("{", "YAML"),
        (
            "{apiVersion: v1, kind: Config, current-context: kind}",
            "kind",
        ),
        (
            "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], \
             clusters: [{name: b, cluster: {server: 'https://localhost:1', certificate-authority-data: '!'}}], users: [{name: c, user: {}}]}",
            "certificate-authority-data",
        ),
    ];
    for (text, word) in cases {
        let file = kubeconfig(text);
        let mut command = program("decree-agent");
        command
            .args(["--log-level", "off", "--kubeconfig"])
            .arg(file.path());
        assert_ends(&mut command, 1, &["kubeconfig", word]);
    }
    let mut command = program("decree-agent");
    command.env("KUBECONFIG", &absent);
    let absent = absent.display().to_string();
    assert_ends(&mut command, 1, &["kubeconfig", &absent]);
    // kube panics at such a token, which ends no process.
    let file = kubeconfig(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], \
         clusters: [{name: b, cluster: {server: 'https://localhost:1', insecure-skip-tls-verify: true}}], users: [{name: c, user: {token: \"a\\nb\"}}]}",
    );
    let mut command = program("decree-agent");
    command.arg("--kubeconfig").arg(file.path());
    assert_ends(&mut command, 1, &["the token has characters"]);
    let mut command = program("decree");
    command.args(["get", "rs", "--kubeconfig"]).arg(file.path());
    assert_ends(&mut command, 2, &["the token has characters"]);
}

#[test]
fn log_that_nobody_reads_ends_no_process() {
    let mut command = program("decree-server");
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(["--log-level", "debug"]);
    command.stderr(Stdio::piped());
    let mut server = command.spawn().expect("it was built");
    let mut log = server.stderr.take().expect("it is piped");
    let mut first = [0];
    log.read_exact(&mut first).expect("it logs");
    drop(log);
    tests::running::signal("TERM", server.id());
    let status = server.wait().expect("it is ours");
    assert_eq!(status.code(), Some(0), "its last lines had no reader");
}

#[test]
fn second_signal_ends_a_process_with_a_word() {
    let mut command = super::world::for_grpc_alone(program("decree-server"));
    command.args(["--drain-deadline", "10m", "--log-level", "info"]);
    let server = Running::start(command, Voice::Stderr);
    let address = server.address("grpc");
    let agent = super::world::agent(&address);
    agent.wait_for_message("session opened", 1);
    tests::running::signal("STOP", agent.id());
    server.terminate();
    server.wait_for_message("shutting down", 1);
    server.terminate();
    server.wait_for("why it ends", |lines| {
        let last = lines.iter().any(|line| line.contains("without draining"));
        last.then_some(())
    });
    assert_eq!(server.wait().code(), Some(130));
    tests::running::signal("CONT", agent.id());
}

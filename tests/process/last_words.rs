//! No process ends silently: each failure names its cause and its remedy on standard error, and has an exit code.

use std::{
    fs,
    io::Read as _,
    net::TcpListener,
    process::{Command, Output, Stdio},
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

fn output(command: &mut Command) -> Output {
    command.output().expect("it was built")
}

/// Checks the exit code of a program, and the words in its output.
fn assert_ends(command: &mut Command, code: i32, words: &[&str]) {
    let output = output(command);
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    for word in words {
        assert!(
            said.contains(word),
            "{command:?} does not say {word:?}:\n{said}"
        );
    }
}

fn kubeconfig(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("there is room");
    fs::write(&file, text).expect("it can be written");
    file
}

#[test]
fn log_filter_that_is_none_is_refused_by_whoever_set_it() {
    let right = "TARGET=LEVEL";
    for name in ["decree-server", "decree-agent"] {
        for filter in ["foo=bar=baz", "loud", "info,decree_server", ""] {
            let flag = ["--log-level", filter];
            assert_ends(program(name).args(flag), 2, &["--log-level", right]);
            let command = &mut program(name);
            command.env("DECREE_LOG_LEVEL", filter);
            assert_ends(command, 2, &["DECREE_LOG_LEVEL in the environment", right]);
        }
    }
    let flags = ["demo", "--log-level", "loud"];
    assert_ends(program("decree").args(flags), 2, &["--log-level", right]);
}

#[test]
fn flag_is_named_where_a_variable_is_wrong_too() {
    let mut command = program("decree-server");
    command.env("DECREE_LOG_LEVEL", "quiet");
    command.args(["--log-level", "loud"]);
    assert_ends(&mut command, 2, &["loud", "'--log-level <FILTER>'"]);
}

#[test]
fn bad_values_are_refused_with_what_would_be_right() {
    for (name, flag, value, right) in [
        ("decree-server", "--listen", "everywhere", "everywhere"),
        ("decree-server", "--admin", "8080", "an address and a port"),
        ("decree-server", "--sessions-max", "0", "from 1 to"),
        ("decree-agent", "--server", "unix:", "a path after unix:"),
        (
            "decree-agent",
            "--server",
            "decree:50051",
            "http://127.0.0.1:50051",
        ),
        ("decree-agent", "--server", "http://a/b", "without path"),
        ("decree-agent", "--cluster", "kind", "fake"),
        ("decree-agent", "--mode", "act", "dry-run"),
    ] {
        assert_ends(program(name).args([flag, value]), 2, &[flag, right]);
    }
    let get = ["get", "everything"];
    assert_ends(
        program("decree").args(get),
        2,
        &["everything", "replicasets"],
    );
}

#[test]
fn variable_that_is_no_text_is_named() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    for name in ["decree-server", "decree-agent"] {
        let mut command = program(name);
        command.env("DECREE_ADMIN", OsStr::from_bytes(b"\xff"));
        assert_ends(&mut command, 2, &["DECREE_ADMIN", "UTF-8"]);
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
}

#[test]
fn manifest_that_cannot_be_used_is_named() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("web.yaml");
    fs::write(&file, "kind: [").expect("it can be written");
    for file in [file, folder.path().join("absent.yaml")] {
        let mut command = program("decree-agent");
        command.args(["--cluster", "fake", "--log-level", "off"]);
        command.args(["--admin", "off", "--manifest"]).arg(&file);
        assert_ends(&mut command, 1, &[&file.display().to_string()]);
    }
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
}

#[test]
fn server_that_is_not_there_is_named_by_the_command_line() {
    let nowhere = "http://127.0.0.1:1";
    let flags = ["get", "sessions", "--server", nowhere];
    assert_ends(program("decree").args(flags), 3, &[nowhere, "--server"]);
    let flags = ["decide", "-f", "/nowhere/at/all.yaml"];
    assert_ends(program("decree").args(flags), 2, &["/nowhere/at/all.yaml"]);
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

//! The programs over TLS and Unix sockets, with certificates for a trial.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tests::{
    pki,
    running::{Running, Voice, until_found},
    tools,
};

use crate::{console, last_words::assert_ends, world::program};

/// The address in the documented commands.
const DOCUMENTED: &str = "localhost:50051";

/// Makes certificates for a trial in a folder. Returns the documented commands that use them.
pub(crate) fn set(folder: &Path, days: u32) -> Vec<String> {
    pki::trial(folder, days);
    let set = folder.join(pki::TRIAL).display().to_string();
    let steps = console::steps("certificates_for_a_trial_connect_all_programs");
    let commands = steps[0].commands.replace(pki::TRIAL, &set);
    commands.lines().map(str::to_owned).collect()
}

/// One of these commands, with the additional flags of a test.
pub(crate) fn printed(lines: &[String], first: &str, address: &str) -> Command {
    let line = lines
        .iter()
        .find(|line| line.split(' ').next() == Some(first));
    let line = line.unwrap_or_else(|| panic!("no command begins with {first}: {lines:?}"));
    let line = line.replace(DOCUMENTED, address);
    let mut words = line.split(' ');
    let mut command = match words.next() {
        Some("grpcurl") => {
            Command::new(tools::grpcurl().expect("it was looked for").join("grpcurl"))
        }
        _ => program(first),
    };
    command.args(words).env("DECREE_ADMIN", "127.0.0.1:0");
    command
}

/// Starts the server of a set, and returns its address by the name in its certificate.
pub(crate) fn serving(lines: &[String]) -> (Running, String) {
    let mut server = printed(lines, "decree-server", "");
    server.env("DECREE_LISTEN", "127.0.0.1:0");
    let server = Running::start(server, Voice::Stderr);
    let address = server.address("grpc").replace("127.0.0.1", "localhost");
    (server, address)
}

fn wait_for_success(mut command: impl FnMut() -> Command, word: &str) -> Output {
    until_found(word, || {
        let output = command().output().expect("it can be started");
        let is_it =
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains(word);
        if is_it { Ok(output) } else { Err(output) }
    })
}

#[test]
fn certificates_for_a_trial_connect_all_programs() {
    tests::or_skip!(tools::openssl());
    let folder = tempfile::tempdir().expect("a folder");
    let lines = set(folder.path(), 365);
    let (_server, address) = serving(&lines);
    let mut agent = printed(&lines, "decree-agent", &address);
    agent.args(["--manifest", "docs/examples/web.yaml"]);
    let _agent = Running::start(agent, Voice::Stderr);
    wait_for_success(|| printed(&lines, "decree", &address), "web-7d4b9c");
    if tools::grpcurl().is_some() {
        wait_for_success(
            || printed(&lines, "grpcurl", &address),
            "decree.v1.InspectionService",
        );
    }
    // A client without the set is told what is missing.
    let url = format!("https://{address}");
    let ca = folder.path().join("decree-pki/ca.crt");
    for (flags, exit, word) in [
        (vec![], 2, "--tls-ca"),
        (vec!["--tls-ca".as_ref(), ca.as_os_str()], 3, "--tls-cert"),
    ] {
        let mut command = program("decree");
        command.args(["get", "sessions", "--server", &url]);
        assert_ends(command.args(flags), exit, &[word]);
    }
}

#[test]
fn programs_meet_at_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.sock");
    let url = format!("unix:{}", path.display());
    let with = |name: &str, variable: &str| {
        let mut command = program(name);
        command
            .env(variable, &url)
            .env("DECREE_ADMIN", "127.0.0.1:0");
        command
    };
    let server = Running::start(with("decree-server", "DECREE_LISTEN"), Voice::Stderr);
    assert_eq!(server.address("grpc"), url);
    let mut agent = with("decree-agent", "DECREE_SERVER");
    agent.args(["--cluster", "fake", "--manifest", "docs/examples/web.yaml"]);
    let _agent = Running::start(agent, Voice::Stderr);
    let get = || {
        let mut command = with("decree", "DECREE_SERVER");
        command.args(["get", "replicasets"]);
        command
    };
    wait_for_success(get, "web-7d4b9c");
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "it drained");
    assert!(!path.exists(), "the socket is gone");
}

#[test]
fn agent_speaks_plain_text_beyond_this_machine_only_where_that_is_wanted() {
    let agent = |flags: &[&str]| {
        let mut command = program("decree-agent");
        command
            .args(["--cluster", "fake", "--admin", "off"])
            .args(["--server", "http://decree.invalid:1"])
            .args(flags);
        command
    };
    assert_ends(&mut agent(&[]), 1, &["--insecure"]);
    let running = Running::start(agent(&["--insecure"]), Voice::Stderr);
    let warning =
        "--insecure: plain text leaves this machine, anyone on the path can read and change it";
    running.wait_for_message(warning, 1);
}

#[test]
fn token_is_not_sent_in_plain_text_beyond_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl").expect("there is room");
    // No host has this name: a program that tried to connect would fail with another error.
    let server = ["--server", "http://decree.invalid:1", "--token-file"];
    let mut agent = program("decree-agent");
    agent.args(["--cluster", "fake", "--admin", "off"]);
    let mut decree = program("decree");
    decree.args(["get", "sessions"]);
    for (mut command, exit) in [(agent, 1), (decree, 2)] {
        let remedies = ["plain text", "--tls-ca", "unix:PATH", "--insecure"];
        let told = assert_ends(command.args(server).arg(&token), exit, &remedies);
        assert!(!told.contains("eyJ"), "{told}");
    }
}

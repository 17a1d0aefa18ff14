//! The example in Python keeps processes of this machine alive through the stream.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use tests::{
    binaries,
    issuer::{ISSUER, Issuer},
    running::{self, Running, Voice},
    tools,
};

use crate::world;

/// Who may keep processes: one by a certificate of `decree pki dev`, one by a token.
const POLICY: &str = r#"
[[grant]]
identities = ["spiffe://decree.local/agent", "sub:keeper"]
role = "agent"
clusters = ["*"]
"#;

#[test]
fn a_python_client_keeps_processes_alive() {
    let Some(python) = tools::python() else {
        return;
    };
    let stubs = TempDir::new().expect("a folder");
    generate(python, stubs.path());
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let mut keeper = keep(python, stubs.path(), &address);

    let started = keeper.wait_for("that three have started", |lines| {
        exactly(3, said(lines, "started"))
    });
    running::signal("KILL", process(&started[0]));
    let lost = keeper.wait_for("that one is lost", |lines| exactly(1, said(lines, "lost")));
    assert_eq!(name(&lost[0]), name(&started[0]));
    let started = keeper.wait_for("that another has started", |lines| {
        exactly(4, said(lines, "started"))
    });
    assert_ne!(process(&started[3]), process(&started[0]));

    keeper.tell("1");
    let ended = keeper.wait_for("that two have ended", |lines| {
        exactly(2, said(lines, "ended"))
    });
    let alive: Vec<_> = started[1..].iter().map(|line| name(line)).collect();
    assert!(
        ended.iter().all(|line| alive.contains(&name(line))),
        "{ended:?} of {alive:?}"
    );
    keeper.close();
    keeper.wait_for("that the last has ended", |lines| {
        exactly(3, said(lines, "ended"))
    });
    assert_eq!(keeper.wait().code(), Some(0));
}

#[test]
fn a_python_client_proves_who_it_is_by_a_certificate_or_a_token() {
    let Some(python) = tools::python() else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    generate(python, folder.path());
    let pki = folder.path().join("pki");
    let mut command = world::program("decree");
    let made = command.args(["pki", "dev", "--out"]).arg(&pki).output();
    assert!(made.expect("it was built").status.success());
    let issuer = Issuer::new(folder.path());
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    };
    let policy = file("policy.toml", POLICY);
    let keeper = file("keeper", &issuer.token("keeper"));
    let stranger = file("stranger", &issuer.token("stranger"));
    let mut command = world::for_grpc_alone(world::program("decree-server"));
    command.args(["--tls-client-auth", "optional", "--token-issuer", ISSUER]);
    for (flag, path) in [
        ("--tls-cert", pki.join("server.crt")),
        ("--tls-key", pki.join("server.key")),
        ("--tls-ca", pki.join("ca.crt")),
        ("--token-keys", issuer.file().to_owned()),
        ("--policy", policy),
    ] {
        command.arg(flag).arg(path);
    }
    let server = Running::start(command, Voice::Stderr);
    let address = server.address("grpc").replace("127.0.0.1", "localhost");
    let flag = |flag: &str, path: PathBuf| format!("{flag}={}", path.display());
    let ca = flag("--tls-ca", pki.join("ca.crt"));
    let certified = [
        ca.clone(),
        flag("--tls-cert", pki.join("agent.crt")),
        flag("--tls-key", pki.join("agent.key")),
    ];
    let bearing = |token| [ca.clone(), flag("--token-file", token)];
    for flags in [&certified[..], &bearing(keeper)] {
        let mut keeper = keep_with(python, folder.path(), &address, flags);
        keeper.wait_for("that three have started", |lines| {
            exactly(3, said(lines, "started"))
        });
        keeper.close();
        assert_eq!(keeper.wait().code(), Some(0));
    }
    for (flags, code) in [
        (&bearing(stranger)[..], "away PERMISSION_DENIED"),
        (std::slice::from_ref(&ca), "away UNAUTHENTICATED"),
    ] {
        let keeper = keep_with(python, folder.path(), &address, flags);
        keeper.wait_for(code, |lines| {
            lines.iter().any(|line| line == code).then_some(())
        });
    }
}

/// Makes the modules of the contract, as the README of the example says.
fn generate(python: &Path, stubs: &Path) {
    let protos = [
        "object",
        "event",
        "report",
        "batch",
        "session",
        "decision_service",
    ];
    let output = Command::new(python)
        .current_dir(binaries::checkout())
        .args(["-m", "grpc_tools.protoc", "-I", "proto"])
        .arg(format!("--python_out={}", stubs.display()))
        .arg(format!("--grpc_python_out={}", stubs.display()))
        .args(protos.map(|proto| format!("proto/decree/v1/{proto}.proto")))
        .output()
        .expect("there is a Python");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

fn keep(python: &Path, stubs: &Path, server: &str) -> Running {
    keep_with(python, stubs, server, &[])
}

fn keep_with(python: &Path, stubs: &Path, server: &str, flags: &[String]) -> Running {
    let mut command = Command::new(python);
    command
        .arg(binaries::checkout().join("examples/python/keeper.py"))
        .args(flags)
        .args(["--server", server, "--replicas", "3", "--", "sleep", "1000"])
        .env("PYTHONPATH", stubs);
    Running::start(command, Voice::Stdout)
}

/// Returns the lines that begin with a word.
fn said(lines: &[String], word: &str) -> Vec<String> {
    let begins = |line: &&String| line.split(' ').next() == Some(word);
    lines.iter().filter(begins).cloned().collect()
}

fn exactly(count: usize, lines: Vec<String>) -> Option<Vec<String>> {
    assert!(lines.len() <= count, "more than {count}: {lines:?}");
    (lines.len() == count).then_some(lines)
}

fn name(line: &str) -> &str {
    line.split(' ').nth(1).expect("it names a process")
}

fn process(line: &str) -> u32 {
    let id = line.split(' ').nth(2).expect("it has an id");
    id.parse().expect("an id is a number")
}

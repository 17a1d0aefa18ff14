//! The example in Python keeps processes of this machine alive through the stream.

use std::{path::Path, process::Command};

use tempfile::TempDir;

use tests::{
    binaries,
    running::{self, Running, Voice},
    tools,
};

use crate::world;

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
    let mut command = Command::new(python);
    command
        .arg(binaries::checkout().join("examples/python/keeper.py"))
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

//! A server and an agent as two processes, started as the documents say, and their state as seen from outside.

use std::{fs, path::Path, process::Command, sync::OnceLock};

use serde_json::Value;
use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice, until_found},
};

use crate::{
    console::{self, Step},
    release::PROGRAMS,
};

/// The test that the documents' block of two processes names.
const TWO_PROCESSES: &str = "two_processes_converge_and_drain";

pub(crate) fn server(listen: &str) -> Running {
    let mut command = documented("decree-server");
    command
        .env("DECREE_LISTEN", listen)
        .env("DECREE_ADMIN", "127.0.0.1:0");
    Running::start(command, Voice::Stderr)
}

/// Starts `decree up` with these flags on an embedded cluster of this manifest, on free ports.
pub(crate) fn up(manifest: &str, flags: &[&str]) -> Running {
    let mut up = program("decree");
    up.args(["up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--filename", manifest, "--log-level", "info"])
        .args(flags);
    Running::start(up, Voice::Stderr)
}

/// Starts a server whose files may not exceed 4 KiB, as on a full disk, until the limit is [lifted](lift_limit).
pub(crate) fn limited_recording_server(folder: &Path) -> Running {
    let mut command = Command::new("sh");
    let limit = "trap '' XFSZ; ulimit -S -f 8; exec \"$@\"";
    command.args(["-c", limit, "sh"]);
    command.arg(binaries::folder().join("decree-server"));
    let mut command = for_grpc_alone(command);
    command.arg("--record").arg(folder);
    Running::start(command, Voice::Stderr)
}

/// Removes the limit on the files of a process.
pub(crate) fn lift_limit(process: u32) {
    let process = process.to_string();
    let lifted = Command::new("prlimit")
        .args(["--fsize=unlimited:unlimited", "--pid", &process])
        .status();
    assert!(lifted.expect("util-linux has it").success());
}

/// Makes a server listen only on a free port for gRPC.
pub(crate) fn for_grpc_alone(mut command: Command) -> Command {
    command.args(["--listen", "127.0.0.1:0", "--admin", "off"]);
    command
}

/// Starts an agent on the embedded cluster of the documents.
pub(crate) fn agent(server: &str) -> Running {
    start_agent(documented("decree-agent"), server)
}

/// Starts an agent on an embedded cluster of this manifest.
pub(crate) fn agent_with(server: &str, manifest: &Path) -> Running {
    agent_set_up_with(server, manifest, &[], &[])
}

/// Starts an agent on an embedded cluster of this manifest, with further flags and variables.
pub(crate) fn agent_set_up_with(
    server: &str,
    manifest: &Path,
    flags: &[&str],
    variables: &[(&str, &str)],
) -> Running {
    let mut command = program("decree-agent");
    command
        .args(["--cluster", "fake", "--manifest"])
        .arg(manifest)
        .args(flags)
        .envs(variables.iter().copied());
    start_agent(command, server)
}

fn start_agent(mut command: Command, server: &str) -> Running {
    command
        .env("DECREE_SERVER", format!("http://{server}"))
        .env("DECREE_ADMIN", "127.0.0.1:0")
        .env("DECREE_LOG_LEVEL", "info,decree_agent=debug");
    Running::start(command, Voice::Stderr)
}

/// The documents' command for a program, with the built program in its place.
fn documented(name: &str) -> Command {
    let steps = console::steps(TWO_PROCESSES);
    let lines = steps.iter().flat_map(|step: &Step| step.commands.lines());
    let mut lines = lines.map(str::split_whitespace);
    let words = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    let mut command = program(name);
    command.args(words.unwrap_or_else(|| panic!("no document starts {name}")));
    command
}

pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(binaries::folder().join(name));
    command.current_dir(binaries::checkout());
    command
}

/// The folder of the programs without symbols, which are packed in a fraction of the time.
pub(crate) fn stripped() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = TempDir::with_prefix("decree-stripped-").expect("there is room");
        for name in PROGRAMS {
            let (from, to) = (binaries::folder().join(name), folder.path().join(name));
            let strip = Command::new("strip").arg("-o").arg(&to).arg(&from).status();
            if !strip.is_ok_and(|status| status.success()) {
                fs::copy(from, to).expect("there is room");
            }
        }
        folder
    });
    folder.path()
}

/// The ReplicaSets as `decree get` shows them, or `None` while the server does not answer.
pub(crate) fn replica_sets(server: &str) -> Option<Vec<Value>> {
    listed(server, "replicaSets")
}

fn listed(server: &str, what: &str) -> Option<Vec<Value>> {
    let url = if server.starts_with("unix:") {
        server.to_owned()
    } else {
        format!("http://{server}")
    };
    let output = program("decree")
        .args([
            "get",
            &what.to_lowercase(),
            "--output",
            "json",
            "--server",
            &url,
        ])
        .output()
        .expect("it was built");
    let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    answer[what].as_array().cloned()
}

/// Waits until the sessions that `decree get` shows are as many as this, and returns them.
pub(crate) fn wait_for_sessions(server: &str, count: usize) -> Vec<Value> {
    until_found("the sessions", || {
        let sessions = listed(server, "sessions").unwrap_or_default();
        if sessions.len() == count {
            Ok(sessions)
        } else {
            Err(sessions)
        }
    })
}

/// Waits until there are `count` ReplicaSets with exactly their desired ready pods.
pub(crate) fn wait_until_converged(server: &str, count: usize) {
    until_found("what is wanted", || {
        let sets = replica_sets(server).unwrap_or_default();
        let is_rest = sets.len() == count && sets.iter().all(has_converged);
        is_rest.then_some(()).ok_or(sets)
    });
}

fn has_converged(set: &Value) -> bool {
    let wanted = &set["replicas"];
    let there = [&set["active"], &set["ready"], &set["available"]];
    set["state"] == "REPLICA_SET_STATE_IN_SYNC" && there.iter().all(|count| *count == wanted)
}

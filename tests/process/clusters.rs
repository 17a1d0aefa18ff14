//! The cluster of an agent: chosen as kubectl's users expect, and named in the first line of the log.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice},
};

use crate::world;

/// An agent without the settings of this machine, for a server that does not exist.
fn agent(home: &Path) -> Command {
    let mut command = Command::new(binaries::folder().join("decree-agent"));
    command
        .env_clear()
        .env("HOME", home)
        .args(["--server", "http://127.0.0.1:1", "--admin", "127.0.0.1:0"])
        .args(["--leader-elect=false"]);
    command
}

fn first_line(command: Command) -> Value {
    let agent = Running::start(command, Voice::Stderr);
    agent.wait_for("anything", |lines| {
        let line = lines.first()?;
        Some(serde_json::from_str(line).expect("it is JSON"))
    })
}

/// Writes a kubeconfig with two contexts for a cluster that does not exist.
fn kubeconfig(file: PathBuf) -> PathBuf {
    let text = "{apiVersion: v1, kind: Config, current-context: laptop, users: [{name: me, user: {token: t}}], contexts: [\
                {name: laptop, context: {cluster: near, user: me}}, {name: prod, context: {cluster: far, user: me}}], clusters: [\
                {name: near, cluster: {server: 'https://127.0.0.1:1'}}, {name: far, cluster: {server: 'https://127.0.0.1:2'}}]}";
    let folder = file.parent().expect("it is in a folder");
    fs::create_dir_all(folder).expect("there is room");
    fs::write(&file, text).expect("there is room");
    file
}

fn told(line: &Value) -> [&str; 4] {
    ["kind", "api_server", "context", "namespaces"]
        .map(|field| line[field].as_str().unwrap_or_default())
}

#[test]
fn kubeconfig_of_the_environment_the_home_or_a_flag_is_honoured_and_told() {
    let home = TempDir::new().expect("there is room");
    let near = ["kubernetes", "https://127.0.0.1:1/", "laptop", "all"];
    let elsewhere = kubeconfig(home.path().join("elsewhere"));
    let mut command = agent(home.path());
    command.env("KUBECONFIG", &elsewhere);
    assert_eq!(told(&first_line(command)), near);
    let mut command = agent(home.path());
    command.arg("--kubeconfig").arg(&elsewhere);
    command.args(["--context", "prod", "--namespace", "a", "--namespace", "b"]);
    let far = ["kubernetes", "https://127.0.0.1:2/", "prod", "a,b"];
    assert_eq!(told(&first_line(command)), far);
    let own = kubeconfig(home.path().join(".kube/config"));
    let line = first_line(agent(home.path()));
    assert_eq!(told(&line), near);
    assert_eq!(line["credentials"].as_str(), own.to_str());
}

#[test]
fn embedded_cluster_is_asked_for_by_name_and_told() {
    let home = TempDir::new().expect("there is room");
    kubeconfig(home.path().join(".kube/config"));
    let mut command = agent(home.path());
    command.args(["--cluster", "fake"]);
    let line = first_line(command);
    assert_eq!(told(&line), ["fake", "", "", "all"]);
    assert_eq!(line["server"], "http://127.0.0.1:1");
}

#[test]
fn embedded_clusters_share_a_server_and_the_same_one_twice_is_named_as_such() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let start = |flags: &[&str]| {
        let mut command = world::program("decree-agent");
        command.args(["--cluster", "fake", "--admin", "127.0.0.1:0", "--server"]);
        command.arg(format!("http://{address}")).args(flags);
        Running::start(command, Voice::Stderr)
    };
    let others = [start(&[]), start(&[])];
    let first = start(&["--fake-seed", "1"]);
    for agent in others.iter().chain([&first]) {
        agent.wait_for_message("session opened", 1);
    }
    let second = start(&["--fake-seed", "1"]);
    second.wait_for_message("session opened", 1);
    let warning = first.line("who took over", |line| {
        let message = line["message"].as_str();
        message.is_some_and(|it| it.starts_with("superseded by another agent"))
    });
    let names = |id: &Value| {
        let (status, id) = (warning["status"].as_str(), id.as_str());
        status
            .zip(id)
            .is_some_and(|(status, id)| status.contains(id))
    };
    assert_eq!(warning["level"], "WARN");
    second.line("its session", |line| {
        line["message"] == "session opened" && names(&line["span"]["session"])
    });
    let sessions = world::wait_for_sessions(&address, 3);
    let is_seen = |seen: &Value| names(&seen["sessionId"]) && names(&seen["agentInstance"]);
    assert!(sessions.iter().any(is_seen), "{sessions:#?}");
    for agent in others {
        assert_eq!(agent.messages("session opened"), 1, "nobody took over");
    }
}

//! The console of a cluster, opened as the documents say, in a real browser.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tests::{
    admin, binaries,
    running::{Running, Voice, output_of},
    tools,
};

use super::{cluster::Cluster, documents, installation::Installation};

/// Servers in pods without an agent. The documents name the first.
const SERVERS: [&str; 2] = ["decree-server-0", "decree-server-1"];
/// The beginning of the names of the workload's ReplicaSets.
const SHOWN: &str = "web-";

/// Opens the console with kubectl alone, and with `decree console`.
pub(crate) fn opens(cluster: &Cluster, installation: Installation) {
    let commands = documents::shown(installation.forwards());
    // From a free port, as others may have the usual one.
    let commands = commands
        .replace(" 8080:", " :")
        .replace(" 8080\n", " :8080\n");
    let has_servers = commands.contains(SERVERS[0]);
    let servers = SERVERS.iter().take(if has_servers { 2 } else { 1 });
    let forwards = servers.map(|server| {
        let script = commands.replace(SERVERS[0], server);
        Running::start(cluster.limited(&script), Voice::Stdout)
    });
    let forwards: Vec<_> = forwards.collect();
    let addresses: Vec<_> = forwards.iter().map(forwarded).collect();
    let has_token = installation == Installation::StaticPods;
    let token = has_token.then(|| cluster.shell(&documents::shown("asks-for-a-token")));
    let by_kubectl = pages(&addresses, token, SHOWN);

    let namespace = installation.namespace();
    let command = format!("exec decree console --no-browser -n {namespace}");
    let opened = Running::start(cluster.command(&command), Voice::Stdout);
    let address = opened.wait_for("an address", |lines| {
        let (_, url) = lines.first()?.split_once("Console: http://")?;
        Some(url.split_once("/console/")?.0.to_owned())
    });
    let token = has_token.then(|| {
        opened.wait_for("a token", |lines| {
            lines.get(1)?.strip_prefix("Token: ").map(str::to_owned)
        })
    });
    // Of several servers with sessions, it opens one.
    let wanted = if installation.has_one_leader() {
        SHOWN
    } else {
        ""
    };
    show(&[by_kubectl, pages(&[address], token, wanted)]);

    for forward in forwards {
        forward.terminate();
        let _ = forward.wait();
    }
    let started = children(opened.id());
    opened.terminate();
    assert_eq!(opened.wait().code(), Some(0));
    let is_left = started.iter().any(|it| it.exists());
    assert!(!started.is_empty() && !is_left, "{started:?}");
}

/// The address from which kubectl forwards.
fn forwarded(kubectl: &Running) -> String {
    let address = |line: &String| {
        let address = line.strip_prefix("Forwarding from ")?.split(' ').next()?;
        address
            .starts_with("127.0.0.1:")
            .then(|| address.to_owned())
    };
    kubectl.wait_for("an address", |lines| lines.iter().find_map(address))
}

/// The pages at addresses of servers, of which one must show a text.
fn pages(addresses: &[String], token: Option<String>, wanted: &str) -> Value {
    let urls = addresses.iter().map(|address| {
        let page = admin::get(address, "/console/").expect("it is served");
        assert!(page.contains("<title>Decree</title>"), "{page}");
        format!("http://{address}/console/")
    });
    let token = token.as_deref().map(str::trim);
    json!({"urls": urls.collect::<Vec<_>>(), "token": token, "wanted": wanted})
}

/// Opens groups of pages, if this machine has a browser.
fn show(groups: &[Value]) {
    let (Some(chromium), Some(modules)) = (tools::chromium(), tools::browser_packages()) else {
        return;
    };
    let given = json!({"groups": groups, "chromium": chromium, "modules": modules});
    let script = binaries::checkout().join("tests/journey/board.mjs");
    output_of(Command::new("node").arg(script).arg(given.to_string()));
}

/// The processes that a process has started, as folders of `/proc`.
fn children(parent: u32) -> Vec<PathBuf> {
    let line = format!("\nPPid:\t{parent}\n");
    let processes = fs::read_dir("/proc").expect("it is Linux").flatten();
    let processes = processes.map(|it| it.path());
    let status = |process: &PathBuf| fs::read_to_string(process.join("status"));
    processes
        .filter(|it| status(it).is_ok_and(|text| text.contains(&line)))
        .collect()
}

//! Server and agent of different versions: the programs of the last release with those of this commit, in either order of
//! upgrade.
//!
//! If the history of this commit has no release, a notice says so. In any case, `tests/golden/skew.rs` checks both sides against
//! recorded frames of each release.

use std::{path::Path, process::Command};

use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice},
    tools::{self, Released},
};

use crate::world;

const MANIFEST: &str = "docs/examples/web.yaml";

fn program(folder: &Path, name: &str) -> Command {
    let mut command = Command::new(folder.join(name));
    command.current_dir(binaries::checkout());
    command
}

fn start_server(folder: &Path, listen: &str) -> Running {
    let mut server = program(folder, "decree-server");
    server.args(["--listen", listen, "--admin", "off"]);
    Running::start(server, Voice::Stderr)
}

fn start_agent(folder: &Path, server: &str) -> Running {
    let mut agent = program(folder, "decree-agent");
    agent
        .args(["--cluster", "fake", "--manifest", MANIFEST])
        .args(["--server", server, "--admin", "off"]);
    Running::start(agent, Voice::Stderr)
}

/// Lets an agent converge its cluster with the `first` server, drains that server, and lets the agent continue with the `second`
/// one at the same address.
fn upgrade(first: &Path, second: &Path, agent: &Path) {
    let folder = TempDir::new().expect("there is room");
    let address = format!("unix:{}", folder.path().join("server").display());
    let server = start_server(first, &address);
    let agent = start_agent(agent, &address);
    world::wait_until_converged(&address, 2);
    server.terminate();
    assert!(server.wait().success(), "the server drains");
    let server = start_server(second, &address);
    world::wait_until_converged(&address, 2);
    agent.terminate();
    assert!(agent.wait().success(), "the agent leaves");
    server.terminate();
    assert!(server.wait().success(), "the server ends");
}

#[test]
fn server_is_upgraded_before_its_agents() {
    if let Some(Released { folder, .. }) = tools::released() {
        upgrade(folder, binaries::folder(), folder);
    }
}

#[test]
fn agents_are_upgraded_before_their_server() {
    if let Some(Released { folder, .. }) = tools::released() {
        upgrade(folder, binaries::folder(), binaries::folder());
    }
}

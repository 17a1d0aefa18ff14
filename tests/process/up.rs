//! `decree up`: its agent has the metrics and probes of a separate agent.

use std::collections::BTreeSet;

use tests::admin;

use crate::{monitoring::eventually, world};

const MANIFEST: &str = "docs/examples/web.yaml";
/// An address without a server.
const NOWHERE: &str = "127.0.0.1:9";

/// The names of the metrics of an agent, as on the page.
fn served(admin: &str) -> BTreeSet<String> {
    let page = admin::get(admin, "/metrics").expect("it serves its metrics");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

#[test]
fn agent_of_up_serves_what_an_agent_of_its_own_serves() {
    let alone = world::agent(NOWHERE);
    // An agent without a session has no session metrics but one, so every agent serves all its other metrics.
    let mut alone = served(&alone.address("admin"));
    alone.remove("decree_agent_disconnects");
    assert!(alone.len() > 10, "{alone:?}");
    let up = world::up(MANIFEST, &["--agent-admin", "127.0.0.1:0"]);
    let agent = up.address("agent-admin");
    world::wait_until_converged(&up.address("grpc"), 2);
    let within = served(&agent);
    let missing: Vec<_> = alone.difference(&within).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {within:?}");
    let of_server = served(&up.address("admin"));
    assert!(of_server.contains("decree_server_build"));
    assert!(!of_server.contains("decree_agent_build"));

    assert!(admin::get(&agent, "/livez").is_ok());
    eventually("ready agent", || admin::get(&agent, "/readyz").ok());
    up.terminate();
    assert!(up.wait().success());
}

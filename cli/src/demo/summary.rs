//! What is said after the story: what each step took, how everything stands, and what can be tried.

use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

use decree_server::Addresses;

use super::scene::{Creates, Standing};
use crate::table::Table;

/// One step as the summary has it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) title: String,
    pub(super) took: Duration,
    pub(super) creates: Creates,
    pub(super) deletes: i32,
}

/// Returns what can be tried while everything keeps running, with this ReplicaSet for an example. `agent` is the admin address of the
/// agent, if it has one.
pub(super) fn invitation(addresses: &Addresses, agent: Option<SocketAddr>, set: &str) -> String {
    let Addresses { grpc, admin, .. } = addresses;
    let mut lines = Vec::new();
    if let Some(admin) = admin {
        lines.push(format!("\nConsole: http://{admin}/console/"));
    }
    lines.extend(agent.map(|agent| format!("Agent:   http://{agent}/metrics")));
    lines.push(
        "\nEverything keeps running until Ctrl-C or SIGTERM. In another terminal, try:".to_owned(),
    );
    lines.extend([
        format!("  export DECREE_SERVER=http://{grpc}"),
        "  decree get replicasets -w".to_owned(),
        format!("  decree explain {set}"),
        format!("  decree simulate {set} --replicas 1"),
        "  decree watch".to_owned(),
        format!("  grpcurl -plaintext {grpc} list"),
    ]);
    lines.extend(admin.map(|admin| format!("  curl http://{admin}/metrics")));
    if let Some(admin) = admin.filter(|admin| admin.ip().is_loopback()) {
        lines.extend([
            "\nTake part:".to_owned(),
            format!("  export DECREE_ADMIN={admin}"),
            format!("  decree demo scale {set} 5"),
            "  decree demo fail node-b".to_owned(),
            "  decree demo restore node-b".to_owned(),
            "  decree demo quota 6".to_owned(),
        ]);
    }
    lines.join("\n")
}

/// Writes what each step took.
pub(super) fn write_steps(done: &[Done], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["STEP", "TOOK", "CREATED", "REFUSED", "DELETED"]);
    for Done {
        title,
        took,
        creates,
        deletes,
    } in done
    {
        let took = format!("{:.1}s", took.as_secs_f64());
        let Creates { done, refused } = creates;
        let numbers = [done.to_string(), refused.to_string(), deletes.to_string()];
        let [done, refused, deletes] = numbers;
        table.row([title.clone(), took, done, refused, deletes]);
    }
    table.write(out, "")
}

/// Writes how everything stands.
pub(super) fn write_standings(standings: &[Standing], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["REPLICASET", "DESIRED", "CURRENT", "READY"]);
    for Standing {
        path,
        wanted,
        there,
        ready,
        ..
    } in standings
    {
        let numbers = [wanted, there, ready].map(ToString::to_string);
        let [wanted, there, ready] = numbers;
        table.row([path.clone(), wanted, there, ready]);
    }
    table.write(out, "")
}

//! The decision server: whether it responds, and whether it has this version.

use decree::v1;

use super::{finding::Finding, section::Section};
use crate::{args::CheckArgs, server::Server};

/// Returns the sessions that the server lists as well, for the checks of the agent.
pub(super) async fn check(args: &CheckArgs) -> (Vec<Finding>, Option<Vec<v1::SessionSummary>>) {
    let is_asked_for = args.asks_for(Section::Server);
    if !is_asked_for && !args.asks_for(Section::Agent) {
        return (Vec::new(), None);
    }
    let sessions = async { Server::connect(&args.server).await?.sessions("").await };
    match sessions.await {
        answer if !is_asked_for => (Vec::new(), answer.ok().map(|answer| answer.sessions)),
        Ok(answer) => {
            let reached = Finding::ok("server", format!("{} answers", args.server.endpoint()));
            let version = version(&answer.server_version);
            (vec![reached, version], Some(answer.sessions))
        }
        Err(failure) => {
            let hint = failure.hint.unwrap_or_default();
            let finding = Finding::fail("server", failure.cause, hint);
            (vec![finding], None)
        }
    }
}

fn version(server: &str) -> Finding {
    const CHECK: &str = "versions";
    // All binaries of a release have one version and one commit.
    let own = service::build_info::text();
    if server == own {
        return Finding::ok(CHECK, format!("server and command are {own}"));
    }
    let server = if server.is_empty() { "older" } else { server };
    let detail = format!("the server is {server}, this command {own}");
    Finding::warn(
        CHECK,
        detail,
        "use the command from the release of the server",
    )
}

//! `decree demo scale` and the like: acts on the embedded cluster of another process.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::{
    args::{AdminArgs, DemoCommand, Named, NamespaceArgs, PlaceArgs},
    exit::{Exit, Failure},
    http::exchange,
    sandbox::act::{self, Act},
    server,
    streams::Io,
    table::one_line,
};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(command: &DemoCommand, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let namespace = |place: &PlaceArgs| NamespaceArgs::of(place.namespace.clone());
    let (at, act) = match command.clone() {
        DemoCommand::Scale {
            replica_set,
            replicas,
            place,
        } => {
            let Named { namespace, name } = namespace(&place).replica_set(&replica_set)?;
            let act = Act::Scale {
                namespace,
                name,
                replicas,
            };
            (place.server, act)
        }
        DemoCommand::Delete { pod, place } => {
            let Named { namespace, name } = namespace(&place).resolve_one(&pod)?;
            (place.server, Act::Delete { namespace, name })
        }
        DemoCommand::Fail { node, server } => (server, Act::Fail { node }),
        DemoCommand::Restore { node, server } => (server, Act::Restore { node }),
        DemoCommand::Quota { pods, place } => {
            let namespace = namespace(&place).or_default();
            (place.server, Act::Quota { namespace, pods })
        }
    };
    let done = server::block_on(post(&at, &act))?;
    writeln!(io.stdout, "{}", one_line(&done))?;
    Ok(Exit::Done)
}

async fn post(at: &AdminArgs, act: &Act) -> Result<String, Failure> {
    let url = format!("http://{}", at.admin);
    let failure = |exit, cause: &str| {
        let hint = "start an embedded cluster with decree up, or name its admin port with --admin";
        Failure::new(exit, format!("{url}{cause}")).hint(hint)
    };
    let body = serde_json::to_vec(act).expect("an act is JSON");
    let answer = exchange(&format!("{url}{}", act::PATH), Some(body), PATIENCE).await;
    let (status, body) =
        answer.map_err(|cause| failure(Exit::Unreachable, &format!(": {cause}")))?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    match (status, text("done"), text("error")) {
        (StatusCode::OK, Some(done), _) => Ok(done),
        (_, _, Some(error)) => Err(Failure {
            hint: text("hint"),
            ..Failure::new(Exit::No, error)
        }),
        (status, ..) => {
            let cause = format!(" has no embedded cluster ({status})");
            Err(failure(Exit::Refused, &cause))
        }
    }
}

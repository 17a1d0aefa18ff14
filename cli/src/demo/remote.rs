//! `decree demo scale` and the like: acts on the embedded cluster of another process.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::{
    args::{DEFAULT_NAMESPACE, DemoCommand, Named, NamespaceArgs, RunningArgs},
    exit::{Exit, Failure},
    http::exchange,
    sandbox::act::{self, Act},
    server,
    streams::Io,
    table::one_line,
};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(command: &DemoCommand, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let namespace = |running: &RunningArgs| NamespaceArgs::of(running.namespace.clone());
    let (running, act) = match command.clone() {
        DemoCommand::Scale {
            replica_set,
            replicas,
            running,
        } => {
            let Named { namespace, name } = namespace(&running).replica_set(&replica_set)?;
            let act = Act::Scale {
                namespace,
                name,
                replicas,
            };
            (running, act)
        }
        DemoCommand::Delete { pod, running } => {
            let Named { namespace, name } = namespace(&running).resolve_one(&pod)?;
            (running, Act::Delete { namespace, name })
        }
        DemoCommand::Fail { node, running } => (running, Act::Fail { node }),
        DemoCommand::Restore { node, running } => (running, Act::Restore { node }),
        DemoCommand::Quota { pods, running } => {
            let namespace = running.namespace.as_deref();
            let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned();
            (running, Act::Quota { namespace, pods })
        }
    };
    let done = server::block_on(post(&running, &act))?;
    writeln!(io.stdout, "{}", one_line(&done))?;
    Ok(Exit::Done)
}

async fn post(running: &RunningArgs, act: &Act) -> Result<String, Failure> {
    let url = format!("http://{}", running.admin.admin);
    let failure = |exit, cause: &str| {
        let hint = "start an embedded cluster with decree up, or name its address with --admin";
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

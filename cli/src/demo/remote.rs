//! `decree demo scale` and the like: acts on the embedded cluster of another process.

use std::time::Duration;

use agent_fake::Kind;
use http::StatusCode;
use manifest::Document;
use serde_json::Value;

use crate::{
    args::{DEFAULT_NAMESPACE, DemoCommand, NameArg, Named, NamespaceArgs, RunningArgs},
    exit::{Exit, Failure},
    http::exchange,
    input,
    sandbox::{act::Act, control},
    server,
    streams::Io,
    table::one_line,
};

/// The timeout of the first answer.
const PATIENCE_TO_BEGIN: Duration = Duration::from_secs(5);
/// The timeout of an act: the objects of a large cluster take seconds.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(command: &DemoCommand, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (DemoCommand::Scale { running, .. }
    | DemoCommand::Delete { running, .. }
    | DemoCommand::Fail { running, .. }
    | DemoCommand::Restore { running, .. }
    | DemoCommand::Quota { running, .. }
    | DemoCommand::Cost { running, .. }
    | DemoCommand::Apply { running, .. }) = command;
    let act = act(command, running.namespace.as_deref(), io)?;
    let done = server::block_on(post(running, &act))?;
    done.lines()
        .try_for_each(|line| writeln!(io.stdout, "{}", one_line(line)))?;
    Ok(Exit::Done)
}

fn act(command: &DemoCommand, namespace: Option<&str>, io: &mut Io<'_>) -> Result<Act, Failure> {
    let named =
        |written: &NameArg| NamespaceArgs::of(namespace.map(str::to_owned)).resolve_one(written);
    Ok(match command {
        DemoCommand::Scale {
            replica_set,
            replicas,
            ..
        } => {
            let Named { namespace, name } = named(replica_set)?;
            Act::Scale {
                namespace,
                name,
                replicas: *replicas,
            }
        }
        DemoCommand::Delete { pod, .. } => {
            let Named { namespace, name } = named(pod)?;
            Act::Delete { namespace, name }
        }
        DemoCommand::Fail { node, .. } => Act::Fail { node: node.clone() },
        DemoCommand::Restore { node, .. } => Act::Restore { node: node.clone() },
        DemoCommand::Quota { pods, .. } => Act::Quota {
            namespace: namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            pods: *pods,
        },
        DemoCommand::Cost { pod, cost, .. } => {
            let Named { namespace, name } = named(pod)?;
            Act::Cost {
                namespace,
                name,
                cost: *cost,
            }
        }
        DemoCommand::Apply { input, .. } => {
            let mut objects = Vec::new();
            input::read(input, io, &mut |mut object| {
                if let Some(namespace) = namespace {
                    put_into(namespace, &mut object)?;
                }
                objects.push(object);
                Ok(())
            })?;
            Act::Apply { objects }
        }
    })
}

/// Puts an object without a namespace into this one.
fn put_into(namespace: &str, Document { place, object }: &mut Document) -> Result<(), Failure> {
    let kind = object["kind"].as_str().and_then(Kind::parse);
    if !kind.is_some_and(Kind::is_namespaced) {
        return Ok(());
    }
    let of = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if of.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    } else if of != namespace {
        let cause = format!("{place}: the object is in namespace {of}, not {namespace}");
        return Err(Failure::new(Exit::Usage, cause).hint("leave out -n"));
    }
    Ok(())
}

async fn post(running: &RunningArgs, act: &Act) -> Result<String, Failure> {
    let url = format!("http://{}", running.admin);
    let hint = |failure: Failure, start: &str| {
        failure.hint(format!(
            "start {start} with decree up, or name its address with --admin"
        ))
    };
    let body = serde_json::to_vec(act).expect("an act is JSON");
    let is_there = exchange(&format!("{url}/livez"), None, PATIENCE_TO_BEGIN).await;
    let unreachable = |cause| {
        let failure = Failure::new(Exit::Unreachable, format!("{url}: {cause}"));
        hint(failure, "an embedded cluster")
    };
    is_there.map_err(unreachable)?;
    let answer = exchange(&format!("{url}{}", control::PATH), Some(body), PATIENCE).await;
    let (status, body) = answer.map_err(unreachable)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    match (status, text("done"), text("error")) {
        (StatusCode::OK, Some(done), _) => Ok(done),
        (_, _, Some(error)) => Err(Failure {
            hint: text("hint"),
            ..Failure::new(Exit::No, error)
        }),
        (status, ..) => {
            let cause = format!("{url} has no embedded cluster ({status})");
            Err(hint(Failure::new(Exit::Refused, cause), "one"))
        }
    }
}

//! `decree demo scale` and the like: acts on the embedded cluster of another process.

use std::{net::SocketAddr, time::Duration};

use http_body_util::Full;
use serde_json::Value;

use crate::{
    args::{DemoCommand, NameArg, NamespaceArgs, RunningArgs},
    exit::{Exit, Failure},
    http::exchange,
    input,
    sandbox::{act::Act, control, missing::Names},
    server,
    streams::Io,
    table::one_line,
};

/// The timeout of an act: the objects of a large cluster take seconds.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(command: &DemoCommand, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (act, running) = act(command, io)?;
    let done = server::block_on(post(running, &act))?;
    done.lines()
        .try_for_each(|line| writeln!(io.stdout, "{}", one_line(line)))?;
    Ok(Exit::Done)
}

fn act<'a>(command: &'a DemoCommand, io: &mut Io<'_>) -> Result<(Act, &'a RunningArgs), Failure> {
    Ok(match command {
        DemoCommand::Scale {
            replica_set,
            replicas,
            running,
        } => {
            let (namespace, name) = named(replica_set, running)?;
            let replicas = *replicas;
            (
                Act::Scale {
                    namespace,
                    name,
                    replicas,
                },
                running,
            )
        }
        DemoCommand::Delete { pod, running } => {
            let (namespace, name) = named(pod, running)?;
            (Act::Delete { namespace, name }, running)
        }
        DemoCommand::Fail { node, running } => (Act::Fail { node: node.clone() }, running),
        DemoCommand::Restore { node, running } => (Act::Restore { node: node.clone() }, running),
        DemoCommand::Quota { pods, running } => {
            let (namespace, pods) = (running.namespace.clone(), *pods);
            (Act::Quota { namespace, pods }, running)
        }
        DemoCommand::Cost { pod, cost, running } => {
            let (namespace, name) = named(pod, running)?;
            let cost = *cost;
            (
                Act::Cost {
                    namespace,
                    name,
                    cost,
                },
                running,
            )
        }
        DemoCommand::Apply { files, running } => {
            let objects = input::read(files, io.stdin)?;
            (Act::Apply { objects }, running)
        }
    })
}

fn named(written: &NameArg, running: &RunningArgs) -> Result<(String, String), Failure> {
    let namespaces = NamespaceArgs {
        namespace: (running.namespace != "default").then(|| running.namespace.clone()),
        all_namespaces: false,
    };
    let named = namespaces.resolve_one(written)?;
    Ok((named.namespace, named.name))
}

async fn post(running: &RunningArgs, act: &Act) -> Result<String, Failure> {
    let address = running.admin;
    let body = serde_json::to_vec(act).expect("an act is JSON");
    let request = http::Request::post(format!("http://{address}{}", control::PATH))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(bytes::Bytes::from(body)))
        .expect("an address is part of a URL");
    let answer = exchange(request, PATIENCE).await;
    let (status, body) = answer.map_err(|cause| unreachable(running, &cause))?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    match (status, text("done"), text("error")) {
        (http::StatusCode::OK, Some(done), _) => Ok(done),
        (_, _, Some(error)) => Err(Failure {
            hint: text("hint"),
            ..Failure::new(Exit::No, error)
        }),
        (status, ..) => Err(Failure::new(
            Exit::Refused,
            format!("http://{address} has no embedded cluster ({status})"),
        )
        .hint("start one with decree up, or name its address with --admin")),
    }
}

/// The names in the embedded cluster of another process that begin with `prefix`.
pub(crate) async fn names(
    address: SocketAddr,
    prefix: &str,
    patience: Duration,
) -> Result<Names, String> {
    let path = control::NAMES_PATH;
    let request = http::Request::get(format!("http://{address}{path}?prefix={prefix}"))
        .body(Full::default())
        .expect("an address is part of a URL");
    let (_, body) = exchange(request, patience).await?;
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

fn unreachable(running: &RunningArgs, cause: &str) -> Failure {
    let cause = format!("http://{}: {cause}", running.admin);
    Failure::new(Exit::Unreachable, cause)
        .hint("start an embedded cluster with decree up, or name its address with --admin")
}

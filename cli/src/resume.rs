//! `decree resume`: resumes creates or deletes that the budget of an agent, or lost pods, hold back.
//!
//! An annotation of a ReplicaSet says what to resume. On a real cluster, the API server checks who may set the annotation. An
//! embedded cluster has no API, so its agent sets the annotation.

use std::time::Duration;

use agent_core::{api::ApiError, budget::resume::RESUME_ANNOTATION};
use agent_kube::{KubeCluster, KubeClusterConfig};
use decree_agent::{
    HOLDS_PATH, HoldsPage,
    resume::{RESUME_PATH, ResumeRequest},
};
use http::StatusCode;
use jiff::Timestamp;
use service::failure::chain;

use crate::{
    args::{NamespaceArgs, ResumeArgs},
    exit::{Exit, Failure},
    http::ask_agent,
    page::Io,
    server::block_on,
};

/// How long an API server may take for its first answer.
pub(crate) const SILENCE: Duration = Duration::from_millis(4_500);

pub(crate) fn run(args: &ResumeArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let asked = asked(args)?;
    let annotated = block_on(async {
        match &args.agent {
            Some(url) => {
                let (_, held) = ask_agent(url, HOLDS_PATH, None, args.timeout).await?;
                let annotated = of_agent(url, &asked, args.timeout).await?;
                if serde_json::from_slice::<HoldsPage>(&held).is_ok_and(|it| it.count == 0) {
                    io.notice(&format!("the agent at {url} holds nothing"))?;
                }
                Ok(annotated)
            }
            None => of_cluster(args, &asked).await,
        }
    })?;
    writeln!(io.stdout, "annotated {annotated} with {RESUME_ANNOTATION}")?;
    Ok(Exit::Done)
}

/// Asks the agent of an embedded cluster. Returns the ReplicaSet that the agent annotated.
pub(crate) async fn of_agent(
    url: &str,
    asked: &ResumeRequest,
    timeout: Duration,
) -> Result<String, Failure> {
    let body = serde_json::to_vec(asked);
    let body = body.map_err(|error| Failure::new(Exit::No, error.to_string()))?;
    let (status, answer) = ask_agent(url, RESUME_PATH, Some(body), timeout).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match status {
        StatusCode::OK => Ok(answer),
        StatusCode::NOT_FOUND if !answer.is_empty() => Err(no_such(asked, &answer)),
        StatusCode::NOT_FOUND => {
            let cause = format!("the agent at {url} has no embedded cluster");
            Err(Failure::new(Exit::Refused, cause).hint("leave out --agent, and use a kubeconfig"))
        }
        status => Err(Failure::new(Exit::Refused, format!("{status}: {answer}"))),
    }
}

async fn of_cluster(args: &ResumeArgs, asked: &ResumeRequest) -> Result<String, Failure> {
    let mut config = args.kube.config();
    config.namespace.clone_from(&asked.namespace);
    config.resource = args.resource.clone();
    let cluster = connect(&config, args.timeout).await?;
    let annotated = tokio::time::timeout(args.timeout, annotate(asked, &cluster)).await;
    annotated.unwrap_or_else(|_| {
        let cause = "no answer of the cluster in time";
        Err(Failure::new(Exit::Unreachable, cause))
    })
}

/// Reads the credentials of a cluster. Fails if its API server is silent.
pub(crate) async fn connect(
    config: &KubeClusterConfig,
    patience: Duration,
) -> Result<KubeCluster, Failure> {
    let cluster = KubeCluster::connect(config).await.map_err(|error| {
        let failure = Failure::new(Exit::Usage, chain(&error));
        failure.hint("set credentials with --kubeconfig, --context or KUBECONFIG")
    })?;
    // A refusal is an answer, too.
    let answer = tokio::time::timeout(patience.min(SILENCE), cluster.version()).await;
    if answer.is_err() {
        let api_server = cluster.target().api_server.trim_end_matches('/');
        let cause = format!("{api_server}: the API server does not answer");
        let hint = "check the server of the kubeconfig, or select another with --context";
        return Err(Failure::new(Exit::Unreachable, cause).hint(hint));
    }
    Ok(cluster)
}

async fn annotate(asked: &ResumeRequest, cluster: &KubeCluster) -> Result<String, Failure> {
    let found = match (&asked.namespace, &asked.name) {
        (Some(namespace), Some(name)) => Some((namespace.clone(), name.clone())),
        _ => cluster.some_replica_set().await.map_err(denied)?,
    };
    let Some((namespace, name)) = found else {
        let cause = "there is no ReplicaSet, and so nothing that could be held";
        return Err(Failure::new(Exit::No, cause));
    };
    let value = asked.extent().to_annotation(&Timestamp::now().to_string());
    let annotated = cluster.resume(&namespace, &name, &value).await;
    annotated.map_err(|error| match error.code {
        Some(404) => no_such(asked, ""),
        _ => denied(error),
    })?;
    Ok(format!("{namespace}/{name}"))
}

/// The failure for a missing object; `said` is the answer of the agent.
fn no_such(asked: &ResumeRequest, said: &str) -> Failure {
    let (Some(namespace), Some(name)) = (&asked.namespace, &asked.name) else {
        return Failure::new(Exit::No, said);
    };
    let failure = Failure::new(Exit::No, format!("ReplicaSet {namespace}/{name} not found"));
    match said.split_once(": ") {
        Some((_, elsewhere)) => failure.hint(elsewhere),
        None => failure.hint(format!(
            "find it with: kubectl get rs -A --field-selector metadata.name={name}"
        )),
    }
}

fn denied(error: ApiError) -> Failure {
    let permissions = "this takes the permissions to list and patch replicasets.apps";
    refused(error, permissions)
}

/// The failure for an error of the API server, with the hint for missing permissions.
pub(crate) fn refused(error: ApiError, permissions: &str) -> Failure {
    let exit = match error.code {
        None => Exit::Unreachable,
        Some(404) => Exit::No,
        Some(_) => Exit::Refused,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.code {
        Some(403) => failure.hint(permissions),
        _ => failure,
    }
}

fn asked(args: &ResumeArgs) -> Result<ResumeRequest, Failure> {
    let namespaces = NamespaceArgs::of(args.extent.namespace.clone());
    let name = args.extent.replica_set.as_ref();
    let named = name.map(|name| namespaces.replica_set(name)).transpose()?;
    let (namespace, name) = named.map(|it| (it.namespace, it.name)).unzip();
    Ok(ResumeRequest { namespace, name })
}

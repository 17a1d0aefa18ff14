//! `decree resume`: resumes creates or deletes that the budget of an agent, or lost pods, hold back.
//!
//! An annotation of a ReplicaSet says what to resume. The API server checks who may set the annotation.

use std::time::Duration;

use agent_core::{
    api::ApiError,
    budget::resume::{Extent, RESUME_ANNOTATION},
};
use agent_kube::{KubeCluster, KubeClusterConfig};
use jiff::Timestamp;
use service::failure::chain;

use crate::{
    args::{Named, NamespaceArgs, ResumeArgs},
    exit::{Exit, Failure},
    page::{Io, one_line},
    server::block_on,
};

/// How long an API server may take for its first answer.
pub(crate) const SILENCE: Duration = Duration::from_millis(4_500);

pub(crate) fn run(args: &ResumeArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let annotated = block_on(async {
        let mut config = args.kube.config();
        config.namespace.clone_from(&args.namespace);
        config.resource = args.resource.clone();
        let cluster = connect(&config, args.timeout).await?;
        let mut namespaces = NamespaceArgs::of(args.namespace.clone());
        namespaces.of_context = Some(cluster.target().namespace.clone());
        let name = args.replica_set.as_ref();
        let asked = name.map(|name| namespaces.replica_set(name)).transpose()?;
        let annotated = tokio::time::timeout(args.timeout, annotate(asked, &cluster)).await;
        annotated.unwrap_or_else(|_| {
            let cause = "no answer of the cluster in time";
            Err(Failure::new(Exit::Unreachable, cause))
        })
    })?;
    let annotated = format!("annotated {annotated} with {RESUME_ANNOTATION}");
    writeln!(io.stdout, "{}", one_line(&annotated))?;
    Ok(Exit::Done)
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

/// Annotates a ReplicaSet, or any one to resume all. Returns its namespace and name.
async fn annotate(asked: Option<Named>, cluster: &KubeCluster) -> Result<String, Failure> {
    let (extent, set) = match asked {
        Some(set) => (Extent::ReplicaSet, set),
        None => {
            let found = cluster.some_replica_set().await.map_err(denied)?;
            let (namespace, name) = found.ok_or_else(|| {
                let cause = "there is no ReplicaSet, and so nothing that could be held";
                Failure::new(Exit::No, cause)
            })?;
            (Extent::All, Named { namespace, name })
        }
    };
    let value = extent.to_annotation(&Timestamp::now().to_string());
    let annotated = cluster.resume(&set.namespace, &set.name, &value).await;
    annotated.map_err(|error| match error.code {
        Some(404) => {
            Failure::new(Exit::No, format!("ReplicaSet {} not found", set.path())).hint(format!(
                "find it with: kubectl get rs -A --field-selector metadata.name={}",
                set.name
            ))
        }
        _ => denied(error),
    })?;
    Ok(set.path())
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

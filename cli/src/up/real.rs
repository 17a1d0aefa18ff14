//! A real cluster: the agent writes nothing to it unless told to, and in shadow mode the command ends with a report.

use agent_kube::KubeCluster;
use clap::Parser as _;
use decree::v1;
use decree_agent::{AgentArgs, Cluster as _, Mode};
use runtime::{config, failure::chain};
use server_core::wording::count;
use tokio::time::{Duration, timeout};

use crate::{
    args::{self, UpArgs},
    diff,
    exit::{Exit, Failure},
    page::{self, say},
    sandbox::{self, DecisionLog, Running, Settings},
    streams::Io,
};

/// The timeout of the request for the uid of the cluster.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until a signal.
pub(super) async fn run(args: &UpArgs, settings: Settings, io: &mut Io<'_>) -> Result<(), Failure> {
    // Shows at once what the agent cannot read, and what another controller does differently.
    let log_level = args.log_level.clone().or_else(|| "warn".parse().ok());
    let _log = sandbox::log(log_level.as_ref());
    let stop = sandbox::on_signal()?;
    let agent = agent(args)?;
    let cluster = connect(&agent).await?;
    let mut running = Running::of_real_cluster(&settings, cluster.clone(), agent.clone()).await?;
    let following = follow(&mut running, agent.mode, &cluster, io);
    let ended = stop.run_until_cancelled(following).await.unwrap_or(Ok(()));
    let reported = match (ended, agent.mode) {
        (Ok(()), Mode::Shadow) => report(&running, io).await,
        (ended, Mode::Enforce | Mode::DryRun | Mode::Shadow) => ended,
    };
    running.close(reported).await
}

/// The flags of the agent: its environment, and its defaults.
pub(super) fn settings_of_the_agent() -> Result<AgentArgs, Failure> {
    let flags = AgentArgs::try_parse_from(["decree-agent", "--cluster", "kubernetes"]);
    flags.map_err(|error| args::failure(&config::without_passwords(error), &[]))
}

/// The flags of the agent: the flags of this command, the environment of the agent, and its defaults.
fn agent(args: &UpArgs) -> Result<AgentArgs, Failure> {
    let mut agent = settings_of_the_agent()?;
    agent.mode = args.mode.unwrap_or(Mode::Shadow);
    agent.kube.kubeconfig.clone_from(&args.kubeconfig);
    agent.kube.context.clone_from(&args.context);
    agent.namespaces.clone_from(&args.namespaces);
    // The Lease is a write, so only agents in enforce mode use it.
    agent.kube.leader_elect = agent.mode == Mode::Enforce;
    Ok(agent)
}

async fn connect(agent: &AgentArgs) -> Result<KubeCluster, Failure> {
    let connected = KubeCluster::connect(&agent.kube_config()).await;
    let cluster = connected.map_err(|error| {
        Failure::new(Exit::Usage, chain(&error))
            .hint("set credentials with --kubeconfig, --context or KUBECONFIG")
    })?;
    let server = &cluster.target().api_server;
    let (exit, cause) = match timeout(PATIENCE, cluster.uid()).await {
        Ok(Ok(_)) => return Ok(cluster),
        Ok(Err(error)) if error.code.is_some() => (Exit::Refused, error.to_string()),
        Ok(Err(error)) => (Exit::Unreachable, error.to_string()),
        Err(_) => (Exit::Unreachable, "no answer in time".to_owned()),
    };
    let failure = Failure::new(exit, format!("{server}: {cause}"));
    Err(failure.hint("see what is missing with: decree check --mode shadow"))
}

/// Prints decisions, forever.
async fn follow(
    running: &mut Running,
    mode: Mode,
    cluster: &KubeCluster,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    introduce(running, mode, cluster, io)?;
    let mut log = DecisionLog::default();
    let mut is_synced = false;
    loop {
        let decided = running.next().await?;
        decided.iter().for_each(|it| log.note_with_refusal(it));
        if !is_synced && let Some(session) = running.synced().await? {
            is_synced = true;
            let sets = count(session.replica_sets, "ReplicaSet");
            let pods = count(session.pods, "pod");
            say(&format!("Attending {sets} and {pods}.\n"), io)?;
        }
        log.take().iter().try_for_each(|line| say(line, io))?;
    }
}

fn introduce(
    running: &Running,
    mode: Mode,
    cluster: &KubeCluster,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let grpc = &running.server.addresses.grpc;
    let target = cluster.target();
    let context = target.context.as_ref();
    let context = context.map_or_else(String::new, |name| format!(", context {name}"));
    let effect = match mode {
        Mode::Enforce => {
            "Mode enforce: decisions are executed. No other controller of ReplicaSets may run: the agent stands by until `decree take-over`, \
             unless DECREE_BUILT_IN_CONTROLLER=off."
        }
        Mode::Shadow => {
            "Mode shadow: nothing is written; decisions are compared with what the controller of the cluster does."
        }
        Mode::DryRun => "Mode dry-run: nothing is written; decisions are only shown.",
    };
    let (end, diff) = match mode {
        Mode::Shadow => (", which end it with a report", "  decree diff\n"),
        Mode::Enforce | Mode::DryRun => ("", ""),
    };
    let server = &target.api_server;
    let introduction = running.introduction(end);
    let text = format!(
        "decree-server at http://{grpc}, decree-agent of {server}{context}\n{effect}\n{introduction}{diff}  \
         decree get replicasets -w\n  decree explain NAMESPACE/NAME\n"
    );
    Ok(say(&text, io)?)
}

/// Prints the comparison and its differences.
async fn report(running: &Running, io: &mut Io<'_>) -> Result<(), Failure> {
    let request = v1::ListDifferencesRequest::default();
    let client = &running.server.client;
    let answer = client.answer(client.inspection().list_differences(request).await)?;
    writeln!(io.stdout)?;
    Ok(diff::report(&answer, page::columns(io), io.stdout)?)
}

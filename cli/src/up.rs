//! `decree up`: a server and an agent in this process, with an embedded cluster or a real one.
//!
//! On a real cluster, the agent writes nothing unless told to, and in shadow and advise mode the command ends with a report.

use agent_fake::Kind;
use agent_kube::KubeClusterConfig;
use clap::Parser as _;
use decree_agent::{AgentArgs, Cluster as _, FakeCluster, Mode};
use decree_api::v1;
use decree_core::wording::count;
use service::config;
use tokio::{
    select,
    time::{Duration, sleep, timeout},
};

use crate::{
    args::{self, Named, Scope, UpArgs},
    diff,
    exit::{Exit, Failure},
    format::Format,
    input,
    near::is_plain,
    page::{Io, Page, say},
    pages, resume,
    sandbox::{
        self, AGAIN, CLUSTER, Cluster, RunningAgent, RunningServer, ServerSettings, beginning,
    },
    server::Server,
    stale, take_over, watch,
};

/// The number of threads that server, agent and cluster share.
const THREADS: usize = 2;
/// The seed of the UIDs, nodes and delays of the embedded cluster.
const SEED: u64 = 0;
/// The timeout of the first request to the cluster.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &UpArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let up = async {
        if args.is_real()? {
            real(args, io).await
        } else {
            embedded(args, io).await
        }
    };
    sandbox::threads(THREADS)?.block_on(up)?;
    Ok(Exit::Done)
}

async fn embedded(args: &UpArgs, io: &mut Io<'_>) -> Result<(), Failure> {
    let objects = input::read_for_cluster(&args.input, io)?;
    sandbox::log(args.log_level.as_ref());
    let cluster = FakeCluster::start(sandbox::cluster_config(SEED), objects)?;
    if args.input.files.is_empty() {
        cluster.with(|it| beginning::install(it, true))?;
    }
    let server = RunningServer::start(&settings(args, Some(SEED)), Some(&cluster)).await?;
    let mode = args.mode.unwrap_or(Mode::Enforce);
    let budget = settings_of_the_agent()?.budget.config();
    let config = sandbox::agent_config(mode, budget);
    let (connector, embedded) = (server.connector.clone(), Cluster::Embedded(cluster.clone()));
    let agent = RunningAgent::start(connector, args.agent_admin, config, embedded).await?;
    let target = format!("embedded cluster \"{CLUSTER}\"");
    let set = cluster.with(|cluster| {
        cluster
            .objects(Kind::ReplicaSet)
            .next()
            .map(|it| Named::of(it))
    });
    let (set, namespace) = set.map_or_else(
        || ("NAMESPACE/NAME".to_owned(), "NAMESPACE".to_owned()),
        |set| (set.path(), set.namespace),
    );
    let admin = server.addresses.admin;
    let acts = admin.filter(|admin| admin.ip().is_loopback()).map(|admin| {
        format!(
            "\n\nChange the cluster:\n  export DECREE_ADMIN={admin}\n  decree demo scale {set} 5\n  \
             decree demo fail node-b\n  decree demo restore node-b\n  decree demo quota 6 -n {namespace}"
        )
    });
    let more = format!(
        "  decree explain {set}\n  decree simulate {set} --replicas 1{}",
        acts.unwrap_or_default()
    );
    keep(server, agent, mode, (&target, &more), io).await
}

async fn real(args: &UpArgs, io: &mut Io<'_>) -> Result<(), Failure> {
    // Shows at once what the agent cannot read, and what another controller does differently.
    let log_level = args.log_level.clone().or_else(|| "warn".parse().ok());
    sandbox::log(log_level.as_ref());
    let mut flags = settings_of_the_agent()?;
    let mode = args.mode.unwrap_or(Mode::Shadow);
    flags.mode = mode;
    flags.namespaces.clone_from(&args.namespaces);
    flags.nodes.nodes |= args.nodes;
    // The Lease is a write, so only agents in enforce mode use it.
    flags.kube.leader_elect = mode == Mode::Enforce;
    let config = KubeClusterConfig {
        source: args.kube.config().source,
        ..flags.kube_config()
    };
    let cluster = resume::connect(&config, PATIENCE).await?;
    let hint = "see what is missing with: decree check --mode shadow";
    let uid = timeout(PATIENCE, cluster.uid()).await;
    let uid = uid.map_err(|_| Failure::new(Exit::Unreachable, "no answer in time").hint(hint))?;
    uid.map_err(|error| resume::refused(error, "").hint(hint))?;
    if mode == Mode::Enforce {
        let (given, resource) = (flags.kube.lease_namespace.take(), &flags.kube.resource);
        let found = take_over::lease_namespace(given.as_deref(), &cluster, resource).await;
        flags.kube.lease_namespace = Some(found);
    }
    let api = cluster.target();
    let context = api.context.as_ref().map(|name| format!(", context {name}"));
    let effect = match mode {
        Mode::Enforce => {
            "Enforce mode: the agent executes decisions. No other controller of ReplicaSets may run: the agent stands by until `decree take-over`, \
             unless DECREE_BUILT_IN_CONTROLLER=off."
        }
        Mode::Shadow => {
            "Shadow mode: the agent writes nothing; the server compares its decisions with the controller of the cluster."
        }
        Mode::DryRun => "Dry-run mode: the agent writes nothing; the server only shows decisions.",
        Mode::Advise => {
            "Advise mode: the agent writes deletion costs, so that the controller of the cluster deletes pods in the preferred order."
        }
        Mode::Withdraw => "Withdraw mode: the agent takes all advice away.",
    };
    let context = context.unwrap_or_default();
    let target = format!("{}{context}\n{effect}", api.api_server);
    let server = RunningServer::start(&settings(args, None), None).await?;
    let connector = server.connector.clone();
    if flags.cluster_name.is_empty() {
        let context = cluster.target().context.as_deref();
        flags.cluster_name = context.map(cluster_name).unwrap_or_default();
    }
    let (instance, seed) = decree_agent::identity();
    let config = flags.agent_config(instance, seed);
    let real = Cluster::Real(Box::new(cluster), Box::new(flags));
    let agent = RunningAgent::start(connector, args.agent_admin, config, real);
    let more = "  decree explain NAMESPACE/NAME";
    keep(server, agent.await?, mode, (&target, more), io).await
}

const fn settings(args: &UpArgs, seed: Option<u64>) -> ServerSettings {
    ServerSettings {
        listen: args.listen,
        admin: args.admin,
        seed,
    }
}

/// The flags of the agent: its environment, and its defaults.
fn settings_of_the_agent() -> Result<AgentArgs, Failure> {
    let flags = AgentArgs::try_parse_from(["decree-agent", "--cluster", "kubernetes"]);
    flags.map_err(|error| args::failure(&config::without_passwords(error), &[]))
}

/// The name of the cluster of a context. A kubeconfig may use characters that the name of a cluster must not have.
fn cluster_name(context: &str) -> String {
    let plain = context.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(128).collect();
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    plain.trim_matches(is_end).to_owned()
}

/// Prints what runs and decisions until a signal, and ends it. `target` is the cluster, and `more` are further commands to try.
async fn keep(
    server: RunningServer,
    agent: RunningAgent,
    mode: Mode,
    (target, more): (&str, &str),
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let stop = sandbox::on_signal()?;
    let url = server.url();
    let compares = matches!(mode, Mode::Shadow | Mode::Advise);
    let end = if compares {
        ", which end it with a report"
    } else {
        ""
    };
    let admin = server.addresses.admin;
    let console = admin.map(|admin| format!("\nConsole: http://{admin}/console/\n"));
    let agent_url = agent
        .admin
        .map(|agent| format!("Agent:   http://{agent}/metrics\n"));
    let text = format!(
        "decree-server at {url}, decree-agent of {target}\n{}{}\n\
         Everything keeps running until Ctrl-C or SIGTERM{end}. In another terminal, try:\n  \
         export DECREE_SERVER={url}\n{}  decree get rs -w\n{more}\n",
        console.unwrap_or_default(),
        agent_url.unwrap_or_default(),
        if compares { "  decree diff\n" } else { "" },
    );
    let following = async {
        say(&text, io)?;
        let client = server.client().await?;
        select! {
            failure = sandbox::failed(&server, &agent) => Err(failure),
            followed = follow(&client, io) => followed,
        }
    };
    let mut ended = stop.run_until_cancelled(following).await.unwrap_or(Ok(()));
    if ended.is_ok() && compares {
        ended = report(&server, io).await;
    }
    sandbox::close(server, agent, ended).await
}

/// Prints decisions as `decree watch` does, without status writes: they are many and say little.
async fn follow(client: &Server, io: &mut Io<'_>) -> Result<(), Failure> {
    loop {
        let sessions = client.sessions("").await?.sessions;
        if let Some(session) = sessions.into_iter().find(|it| it.synced) {
            let sets = count(session.replica_sets, "ReplicaSet");
            let pods = count(session.pods, "pod");
            say(&format!("Connected: {sets}, {pods}.\n"), io)?;
            break;
        }
        sleep(AGAIN).await;
    }
    let all = Scope::of(Vec::new(), String::new());
    watch::follow(client, "", &all, (Format::default(), false), None, io).await
}

async fn report(server: &RunningServer, io: &mut Io<'_>) -> Result<(), Failure> {
    let all = v1::ListDifferencesRequest::default();
    let answer = pages::differences(&server.client().await?, all).await?;
    stale::notice(&answer.stale_views, io)?;
    writeln!(io.stdout)?;
    Ok(diff::report(&answer, Page::new(io), io.stdout)?)
}

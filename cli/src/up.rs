//! `decree up`: a server and an agent in this process, with an embedded cluster that takes acts, or with a real cluster.

use agent_fake::Kind;
use decree_agent::Mode;

use crate::{
    args::{DEFAULT_NAMESPACE, UpArgs},
    exit::{Exit, Failure},
    input,
    page::say,
    sandbox::{
        self, CLUSTER, DecisionLog, Prepare, Running, Sandbox, Settings, beginning, missing,
    },
    streams::Io,
};

mod real;

pub(crate) fn run(args: &UpArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let settings = Settings {
        listen: args.listen,
        admin: args.admin,
        agent_admin: args.agent_admin,
        seed: args.seed,
        otlp: args.otlp.clone(),
        budget: real::settings_of_the_agent()?.budget.config(),
        is_killable: false,
    };
    let run = async {
        if args.is_real()? {
            real::run(args, settings, io).await
        } else {
            embedded(args, settings, io).await
        }
    };
    sandbox::on_threads(run).map(|()| Exit::Done)
}

/// Runs with an embedded cluster until a signal.
async fn embedded(args: &UpArgs, settings: Settings, io: &mut Io<'_>) -> Result<(), Failure> {
    let objects = input::read_for_cluster(&args.input, io)?;
    let _log = sandbox::log(args.log_level.as_ref());
    let stop = sandbox::on_signal()?;
    let mode = args.mode.unwrap_or(Mode::Enforce);
    let is_empty = args.input.files.is_empty();
    let prepare: Option<Prepare> = is_empty.then_some(|it| beginning::install(it, true));
    let mut sandbox = Sandbox::open(settings, mode, objects, prepare).await?;
    let staying = async {
        let server = &sandbox.running.server.addresses.grpc;
        let parts = format!(
            "decree-server at http://{server}, decree-agent, embedded cluster \"{CLUSTER}\""
        );
        say(&parts, io)?;
        stay(&mut sandbox, io).await
    };
    let ended = stop.run_until_cancelled(staying).await.unwrap_or(Ok(()));
    sandbox.running.close(ended).await
}

/// Prints the possible acts on a sandbox, and then decisions, forever.
pub(crate) async fn stay(sandbox: &mut Sandbox, io: &mut Io<'_>) -> Result<(), Failure> {
    let set = sandbox.cluster.with(|cluster| {
        let set = cluster.objects(Kind::ReplicaSet).next();
        set.map(|set| missing::named(set).path())
    });
    let set = set.unwrap_or_else(|| "NAMESPACE/NAME".to_owned());
    say(&invitation(&sandbox.running, &set), io)?;
    let mut log = DecisionLog::default();
    loop {
        let decided = sandbox.running.next().await?;
        decided.iter().for_each(|it| log.note_with_refusal(it));
        log.take().iter().try_for_each(|line| say(line, io))?;
    }
}

/// The commands to try while everything runs, with this ReplicaSet as an example.
fn invitation(running: &Running, set: &str) -> String {
    let decree_server::Addresses { grpc, admin, .. } = &running.server.addresses;
    let (namespace, _) = set.split_once('/').unwrap_or((DEFAULT_NAMESPACE, ""));
    let mut text = running.introduction("");
    text += &format!(
        "  decree get replicasets -w\n  decree explain {set}\n  decree simulate {set} --replicas 1\n  \
         decree watch\n  grpcurl -plaintext {grpc} list"
    );
    if let Some(admin) = admin {
        text += &format!("\n  curl http://{admin}/metrics");
    }
    if let Some(admin) = admin.filter(|admin| admin.ip().is_loopback()) {
        text += &format!(
            "\n\nTake part:\n  export DECREE_ADMIN={admin}\n  decree demo scale {set} 5\n  \
             decree demo fail node-b\n  decree demo restore node-b\n  decree demo quota 6 -n {namespace}"
        );
    }
    text
}

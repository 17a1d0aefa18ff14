//! The only task of the agent: it passes input to the machine, and does what the machine commands.

use std::{error::Error, path::PathBuf, time::Duration};

use agent_core::{
    agent::{Agent, AgentCommand, AgentConfig},
    api::{ApiError, Call, CallId, Kind, Reply},
    asking::{Asks, CostCall, NO_ANSWER},
    cluster::Cluster,
    link::LinkCommand,
    pace::since,
    report::Report,
    watch::WatchEvent,
};
use jiff::Timestamp;
use service::transport::Connector;
use service::{Fault, Readiness, excerpt};
use tokio::{
    select,
    task::{JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error_span};

use crate::{
    log,
    metrics::Metrics,
    ranker,
    recorder::Recorder,
    sources::{self, Sources},
    uplink::{self, Uplink},
};
use agent_kube::Clock;

/// The interval of requests for the cluster's identity while the cluster does not answer.
const IDENTITY_EVERY: Duration = Duration::from_secs(1);

/// How long a call may take, including the wait for its turn. After that its effect is unknown, and the agent finds it out by name. Without
/// a limit, one lost answer would keep the agent from ever opening a new session.
const CALL_MAX: Duration = Duration::from_secs(60);

/// The costs that a call for them has brought, by its number.
type Asked = (u64, Vec<Result<i32, String>>);
type Answered = (CallId, Result<Reply, ApiError>);

/// How long a kind may be unwatched before the agent is not ready: an older view is unfit for decisions.
const READY_FOR: Duration = Duration::from_mins(1);

/// The settings of a running agent.
#[derive(Clone, Debug)]
pub struct ShellConfig {
    /// The connector to the server.
    pub server: Connector,
    /// The file with the token that proves the agent's identity to the server, if the agent uses one.
    pub token: Option<PathBuf>,
    /// The connector to the service that ranks pods, if there is one.
    pub ranker: Option<Connector>,
    /// The settings of the agent. An empty `cluster_uid` is replaced with the cluster's own.
    pub agent: AgentConfig,
    /// The metrics that the agent updates.
    pub metrics: Metrics,
    /// Set by the agent: whether a session is open, and the cluster can be read.
    pub readiness: Readiness,
}

/// Why an agent ended other than on request.
pub type AgentError = Box<dyn Error + Send + Sync>;

/// The effect of a call that panicked is unknown, and only a restart is sure to find it out.
fn panicked(error: JoinError) -> Fault {
    Fault::because("a call to the cluster panicked", error)
}

#[derive(Debug)]
struct Shell<C> {
    agent: Agent,
    clock: Clock,
    uplink: Uplink,
    cluster: C,
    /// The calls in flight. The agent limits their number.
    calls: JoinSet<Answered>,
    /// The pods that are asked for their costs. The agent limits their number.
    asked: JoinSet<Asked>,
    sources: Sources<C>,
    recorder: Recorder,
    config: ShellConfig,
    /// The fields of log lines that the server can cause at will: those of the open session, if any, and the peer.
    session: tracing::Span,
    /// Since when each kind, and last the nodes, have no watch, after a failed list or watch.
    unwatched: [Option<Timestamp>; 3],
}

/// The index, the resource and the verb of a list or watch.
type Read = (usize, &'static str, &'static str);

/// The index of the nodes, after those of the kinds.
const NODES: usize = 2;

const fn read_of(kind: Kind, verb: &'static str) -> Read {
    (kind as usize, kind.plural(), verb)
}

/// Checks that all kinds are watched, or were watched a minute ago.
///
/// # Errors
/// The reason for `/readyz`.
fn check_watched(unwatched: &[Option<Timestamp>], now: Timestamp) -> Result<(), &'static str> {
    let is_lasting = |begun: &Timestamp| since(now, *begun) >= READY_FOR;
    if unwatched.iter().flatten().any(is_lasting) {
        return Err("lists or watches have failed for a minute; look at the log");
    }
    Ok(())
}

impl ShellConfig {
    /// Creates a configuration with defaults for everything but the server.
    pub fn new(server: Connector) -> Self {
        Self {
            server,
            token: None,
            ranker: None,
            agent: AgentConfig::default(),
            metrics: Metrics::default(),
            readiness: Readiness::not_ready("no session"),
        }
    }
}

/// Runs an agent until `shutdown`. Then the agent takes no more work, lets calls in flight end, reports their outcomes, and closes the
/// session.
///
/// # Errors
/// If a call panicked. The agent waits for a server or cluster that is down.
pub async fn run<C: Cluster>(
    mut config: ShellConfig,
    cluster: C,
    shutdown: CancellationToken,
) -> Result<(), AgentError> {
    let agent = &mut config.agent;
    if agent.cluster_uid.is_empty() {
        let Some(uid) = shutdown.run_until_cancelled(identify(&cluster)).await else {
            return Ok(());
        };
        agent.cluster_uid = uid;
    }
    let (span, session) = (span(agent, None, None), by_server(agent, None));
    let recorder = agent_core::recorder::Recorder::new(&agent.instance, &agent.api_version);
    let shell = Shell {
        agent: Agent::new(agent.clone()),
        clock: Clock::starting_at(Timestamp::now()),
        uplink: Uplink::new(config.server.clone(), config.token.clone()),
        calls: JoinSet::new(),
        asked: JoinSet::new(),
        recorder: Recorder::start(recorder, cluster.clone(), config.metrics.clone()),
        sources: Sources::new(cluster.clone()),
        cluster,
        config,
        session,
        unwatched: [None; 3],
    };
    shell.run(shutdown).instrument(span).await
}

/// The fields of lines that the server can cause at will.
fn by_server(agent: &AgentConfig, session: Option<&str>) -> tracing::Span {
    span(agent, session, Some(log::SERVER))
}

/// The fields of every line about this agent, the same as in the server's lines about its session. The level is the level of the least
/// verbose logs. JSON lines have only the fields of the innermost span, so each span has all of them.
fn span(agent: &AgentConfig, session: Option<&str>, peer: Option<&str>) -> tracing::Span {
    let cluster = match agent.cluster_name.as_str() {
        "" => &agent.cluster_uid,
        name => name,
    };
    error_span!(
        "session",
        peer,
        session = session.map(excerpt),
        cluster,
        shard = agent.shard,
        epoch = agent.epoch,
    )
}

/// Makes a call. It may have its effect before the answer is awaited.
fn answered<C: Cluster>(cluster: &C, call: Call) -> impl Future<Output = Answered> + Send + use<C> {
    let Call { id, request } = call;
    let answer = cluster.call(request);
    async move {
        let reply = timeout(CALL_MAX, answer).await;
        let reply = reply.unwrap_or_else(|_| Err(ApiError::no_answer("the call took too long")));
        // Others than the cluster may have written parts of the text, which becomes part of a status, an event and a terminal.
        let reply = reply.map_err(|error| ApiError {
            message: excerpt(&error.message),
            ..error
        });
        (id, reply)
    }
}

async fn identify<C: Cluster>(cluster: &C) -> String {
    loop {
        match cluster.uid().await {
            Ok(uid) => return uid,
            Err(error) => log::cluster_away(&error),
        }
        tokio::time::sleep(IDENTITY_EVERY).await;
    }
}

impl<C: Cluster> Shell<C> {
    async fn run(mut self, shutdown: CancellationToken) -> Result<(), AgentError> {
        let mut stopping = false;
        loop {
            self.perform();
            if self.agent.is_stopped(self.clock.now()) {
                return Ok(());
            }
            if !stopping && self.agent.has_withdrawn() {
                stopping = true;
                self.agent.handle_shutdown();
                continue;
            }
            let blocked = self.uplink.frames().filter(|_| self.agent.has_frames());
            select! {
                biased;
                () = shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    self.config.readiness.set(Err("stopping"));
                    self.agent.handle_shutdown();
                }
                news = self.uplink.next() => self.handle_uplink(news),
                Some(answered) = self.calls.join_next() => self.handle_answers(answered)?,
                Some(asked) = self.asked.join_next() => {
                    let (id, costs) = asked.map_err(panicked)?;
                    self.agent.handle_costs(id, costs);
                }
                Some(news) = self.sources.news.recv() => self.handle_sources(news),
                () = Uplink::writable(blocked) => {}
                () = self.clock.sleep_until(self.agent.poll_timeout()) => {
                    self.agent.handle_timeout(self.clock.now());
                }
            }
        }
    }

    /// Does all that the machine commands. A sent frame may be what a next step waited for, so both continue to the end.
    fn perform(&mut self) {
        let now = self.clock.now();
        self.perform_effects(now);
        while self.send_frames(now) {
            self.perform_effects(now);
        }
        self.tell(now);
    }

    fn perform_effects(&mut self, now: Timestamp) {
        self.agent.limit_calls(self.cluster.calls_max());
        while let Some(command) = self.agent.poll_command(now) {
            match command {
                AgentCommand::Link(command) => self.uplink.command(command),
                AgentCommand::Watch(kind, command) => self.sources.command(kind, command),
                AgentCommand::AskVersion(kind) => self.sources.ask_version(kind),
                AgentCommand::WatchNodes => {
                    let fields = self.config.agent.nodes.clone().unwrap_or_default();
                    self.sources.watch_nodes(fields);
                }
                AgentCommand::AskCosts(call) => self.ask_costs(call),
                AgentCommand::Call(call) => {
                    let calls = &self.config.metrics.calls;
                    calls.get_or_create(&[("verb", call.request.verb())]).inc();
                    self.calls.spawn(answered(&self.cluster, call));
                }
            }
        }
    }

    /// Asks for costs. Others than the cluster may have written parts of an error.
    fn ask_costs(&mut self, CostCall { id, asks, timeout }: CostCall) {
        match asks {
            Asks::Pod(pod, source) => {
                let answer = tokio::time::timeout(timeout, self.cluster.cost(pod, source));
                self.asked.spawn(async move {
                    let cost = answer.await.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()));
                    (id, vec![cost.map_err(|why| excerpt(&why))])
                });
            }
            Asks::Service(request) => {
                let ranker = self.config.ranker.clone();
                self.asked
                    .spawn(async move { (id, ranker::rank(ranker, request, timeout).await) });
            }
        }
    }

    /// Sends as many frames as the uplink takes. True if any was sent.
    fn send_frames(&mut self, now: Timestamp) -> bool {
        let mut sent = false;
        while let Some(permit) = self.uplink.try_reserve() {
            let Some(frame) = self.agent.poll_frame(now) else {
                break;
            };
            permit.send(frame);
            sent = true;
        }
        sent
    }

    fn tell(&mut self, now: Timestamp) {
        let mut has_news_of_holds = false;
        while let Some(report) = self.agent.poll_report() {
            self.config.metrics.count_report(&report);
            if let Report::SessionOpened { id } = &report {
                self.session = by_server(&self.config.agent, Some(id));
            }
            if let Report::Shown(_) = report {
                // The output of dry-run mode is complete: its lines have no peer.
                let session = self.agent.session_id();
                span(&self.config.agent, session, None).in_scope(|| log::write(&report));
            } else {
                self.session.in_scope(|| log::write(&report));
            }
            if let Report::Disconnected(_) = report {
                self.session = by_server(&self.config.agent, None);
            } else if let Report::Budget(_) = report {
                has_news_of_holds = true;
            } else if let Report::Noted(note) = report {
                self.recorder.record(now, note);
            }
        }
        if has_news_of_holds {
            self.config.metrics.set_holds(self.agent.holds());
        }
        let (operations, calls) = self.agent.in_flight();
        self.config.metrics.set_in_flight(operations, calls);
        let session = self.agent.session_id();
        self.config.readiness.set(match session {
            Some(_) => check_watched(&self.unwatched, now),
            None => Err("no session"),
        });
    }

    /// Takes all frames that have come, so that their commands run together.
    fn handle_uplink(&mut self, first: uplink::News) {
        let mut next = Some(first);
        while let Some(news) = next {
            match news {
                uplink::News::Connected => self.agent.handle_connected(self.clock.now()),
                uplink::News::Frame(frame) => {
                    self.agent.handle_frame(self.clock.now(), frame);
                }
                uplink::News::Disconnected(cause) => {
                    self.uplink.command(LinkCommand::Abort);
                    self.agent.handle_disconnected(self.clock.now(), cause);
                }
            }
            next = self.uplink.try_next();
        }
    }

    /// Takes all answers that have come, so that their outcomes share a frame.
    fn handle_answers(&mut self, first: Result<Answered, JoinError>) -> Result<(), AgentError> {
        let now = self.clock.now();
        let mut next = Some(first);
        while let Some(answered) = next {
            let (id, reply) = answered.map_err(panicked)?;
            self.agent.handle_reply(now, id, reply);
            next = self.calls.try_join_next();
        }
        Ok(())
    }

    /// Takes all input that has come, so that changes share a frame.
    fn handle_sources(&mut self, first: sources::News) {
        let now = self.clock.now();
        let mut next = Some(first);
        while let Some(news) = next {
            match news {
                sources::News::Listed(kind, id, list) => {
                    if let Err(error) = &list {
                        self.handle_read_failed(now, read_of(kind, "list"), error);
                    }
                    self.agent.handle_listed(now, kind, id, list);
                }
                sources::News::Events(kind, id, events) => {
                    for event in events {
                        if let WatchEvent::Error(error) = &event {
                            self.handle_read_failed(now, read_of(kind, "watch"), error);
                        }
                        self.agent.handle_watch_event(now, kind, id, event);
                    }
                }
                sources::News::Version(kind, version) => {
                    if let Err(error) = &version {
                        self.session.in_scope(|| log::version_not_read(kind, error));
                    }
                    self.agent.handle_version(now, kind, &version);
                }
                sources::News::Watched(kind) => self.unwatched[kind as usize] = None,
                sources::News::Nodes(Ok(events)) => {
                    if events.is_empty() {
                        self.unwatched[NODES] = None;
                    }
                    self.agent.handle_nodes(events);
                }
                sources::News::Nodes(Err((verb, error))) => {
                    self.handle_read_failed(now, (NODES, "nodes", verb), &error);
                }
                sources::News::Closed(kind, id, error) => {
                    match &error {
                        Some(error) => {
                            self.handle_read_failed(now, read_of(kind, "watch"), error);
                        }
                        None => self.session.in_scope(|| log::watch_ended(kind)),
                    }
                    self.agent
                        .handle_watch_closed(now, kind, id, error.as_ref());
                }
            }
            next = self.sources.news.try_recv().ok();
        }
    }

    /// Takes a failed list or watch. A version that is gone is expected: the kind is listed again.
    fn handle_read_failed(&mut self, now: Timestamp, read: Read, error: &ApiError) {
        let (index, kind, verb) = read;
        self.config
            .metrics
            .count_read_failure(kind, verb, error.code);
        if !error.is_everyday() {
            self.unwatched[index].get_or_insert(now);
        }
        self.session
            .in_scope(|| log::read_failed(kind, verb, error));
    }
}

#[cfg(test)]
mod tests;

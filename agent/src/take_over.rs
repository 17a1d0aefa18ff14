//! The state of the probe, for an agent that needs a declaration: a task follows the probe, and tells what the agent may do.

use std::{convert::Infallible, time::Duration};

use agent_core::{
    api::ApiError,
    pace::{TokenBucket, since},
    take_over::{BuiltIn, ProbeState, Stage, TakeOver as Machine, Verdict, Why},
};
use agent_kube::{Clock, Probe};
use jiff::Timestamp;
use tokio::{
    select,
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::{log::CLUSTER, metrics::Metrics};

/// The interval of log lines of an agent that stands by.
const SAY_AGAIN: Duration = Duration::from_mins(1);
const REMEDY: &str = "turn it off on each control-plane node (--controllers=*,-replicaset-controller), then run: decree take-over";

/// What an agent may do, as of now.
#[derive(Debug)]
pub(crate) struct TakeOver {
    verdict: watch::Receiver<Verdict>,
    leads: watch::Sender<bool>,
    _task: Option<AbortOnDropHandle<Infallible>>,
}

/// The shell of the machine.
struct Follower {
    probe: Probe,
    machine: Machine,
    clock: Clock,
    metrics: Metrics,
    /// The last line of the log: the kind of its verdict, and when it was written.
    said: Option<((Stage, Option<&'static str>), Timestamp)>,
    /// Limits the log lines about failed reads.
    unread: TokenBucket,
}

impl TakeOver {
    pub(crate) fn start(probe: Probe, machine: Machine, metrics: Metrics) -> Self {
        let (sender, verdict) = watch::channel(Verdict {
            stage: Stage::StandBy,
            why: Some(Why::Starting),
        });
        let (leads, lead) = watch::channel(false);
        let follower = Follower {
            probe,
            machine,
            clock: Clock::starting_at(Timestamp::now()),
            metrics,
            said: None,
            unread: TokenBucket::new(SAY_AGAIN, 1),
        };
        let task = tokio::spawn(follower.run(sender, lead));
        Self {
            verdict,
            leads,
            _task: Some(AbortOnDropHandle::new(task)),
        }
    }

    /// Returns the state of an agent that needs no declaration.
    pub(crate) fn not_needed() -> Self {
        let (stage, why) = (Stage::Act, None);
        Self {
            verdict: watch::channel(Verdict { stage, why }).1,
            leads: watch::channel(false).0,
            _task: None,
        }
    }

    /// Waits until the agent may take the Lease.
    pub(crate) async fn may_lead(&self) {
        self.wait_for(|stage| stage != Stage::StandBy).await;
    }

    /// Waits until the agent, which leads from now on, may act.
    pub(crate) async fn may_act(&self) {
        self.leads.send_replace(true);
        self.wait_for(|stage| stage == Stage::Act).await;
    }

    /// Waits until the agent must stand by; forever if it needs no declaration.
    pub(crate) async fn must_stand_by(&self) {
        self.wait_for(|stage| stage == Stage::StandBy).await;
    }

    pub(crate) fn stop_leading(&self) {
        self.leads.send_replace(false);
    }

    pub(crate) fn verdict(&self) -> watch::Receiver<Verdict> {
        self.verdict.clone()
    }

    async fn wait_for(&self, is_so: impl Fn(Stage) -> bool) {
        let mut verdict = self.verdict.clone();
        if verdict.wait_for(|it| is_so(it.stage)).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Follower {
    async fn run(
        mut self,
        verdicts: watch::Sender<Verdict>,
        mut leads: watch::Receiver<bool>,
    ) -> Infallible {
        let (sender, mut states) = mpsc::channel(1);
        let _reader = AbortOnDropHandle::new(tokio::spawn(self.probe.clone().follow(sender)));
        let mut requests = JoinSet::new();
        loop {
            let now = self.clock.now();
            if let Some(command) = self.machine.poll_command(now) {
                let probe = self.probe.clone();
                requests.spawn(async move { probe.request(command).await });
            }
            let verdict = self.machine.poll_verdict(now);
            self.tell(now, &verdict);
            verdicts.send_if_modified(|known| {
                let is_news = *known != verdict;
                *known = verdict;
                is_news
            });
            select! {
                Some(read) = states.recv() => self.handle_read(read),
                Some(answer) = requests.join_next() => {
                    let broken = |_| Err(ApiError::no_answer("the request panicked"));
                    self.machine.handle_answer(self.clock.now(), answer.unwrap_or_else(broken));
                }
                Ok(()) = leads.changed() => self.machine.handle_lead(*leads.borrow_and_update()),
                () = self.clock.sleep_until(self.machine.poll_timeout()) => {}
            }
        }
    }

    fn handle_read(&mut self, read: Result<Option<ProbeState>, ApiError>) {
        let now = self.clock.now();
        match read {
            Ok(probe) => self.machine.handle_read(now, probe),
            Err(error) if self.unread.try_take(now) => {
                let because = Why::Failed(error);
                let remedy = remedy(&because);
                warn!(peer = CLUSTER, %because, remedy, "another ReplicaSet controller would not be noticed");
            }
            Err(_) => {}
        }
    }

    /// Logs a verdict when it changes, and once a minute what keeps the agent from acting. A cluster can change the verdict at will.
    fn tell(&mut self, now: Timestamp, verdict: &Verdict) {
        let Verdict { stage, why } = verdict;
        let kind = (*stage, why.as_ref().map(Why::as_str));
        let said = self.said.filter(|(said, _)| *said == kind);
        if said.is_some_and(|(_, at)| since(now, at) < SAY_AGAIN) {
            return;
        }
        self.metrics.set_standing_by(kind.1);
        let (reason, answered_by) = (kind.1, self.machine.answered_by());
        match why {
            Some(Why::Starting) => return,
            Some(why @ Why::On(record)) if record.built_in == BuiltIn::FoundOn => {
                error!(peer = CLUSTER, reason, because = %why, answered_by, remedy = REMEDY, "standing by");
            }
            Some(why) => {
                warn!(peer = CLUSTER, reason, because = %why, answered_by, remedy = remedy(why), "standing by");
            }
            None if said.is_some() => {}
            None if *stage == Stage::Act => {
                info!(peer = CLUSTER, "no other ReplicaSet controller answers");
            }
            None => {
                info!(
                    peer = CLUSTER,
                    "the built-in ReplicaSet controller is declared off"
                );
            }
        }
        self.said = Some((kind, now));
    }
}

fn remedy(why: &Why) -> &'static str {
    let Why::Failed(error) = why else {
        return REMEDY;
    };
    match error.code {
        None => "check the address of the API server, and the network",
        Some(401) => "check the credentials of the agent",
        Some(404) => "check the namespace of the Lease",
        Some(400..=499) => {
            "grant create, get, watch and patch of decree-probe, and exempt it from admission policies"
        }
        Some(_) => "check the API server",
    }
}

//! What all calls of one server share.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use admission::{FairQueue, PlaceRank};
use otlp::Tracer;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access,
    args::Config,
    capacity::{Memory, Places, Shares},
    error::{Limit, Refusal},
    metrics::Metrics,
    recorder::Recorder,
    registry::LiveSessions,
    watchers::Watchers,
};

/// One server, as its calls see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) access: Arc<Access>,
    pub(crate) registry: Arc<LiveSessions>,
    pub(crate) watchers: Arc<Watchers>,
    /// Cancelled when the server begins to drain.
    pub(crate) draining: CancellationToken,
    /// The sessions, so that a drain can wait for them.
    pub(crate) tasks: TaskTracker,
    pub(crate) sessions: Arc<Shares>,
    /// Streams that have not sent their Hello.
    pub(crate) pending_sessions: Arc<Places>,
    pub(crate) connections: Arc<Places>,
    /// Calls other than sessions.
    pub(crate) calls: Arc<Places>,
    /// Bytes of messages that have not arrived completely, and of unary calls that are not answered.
    pub(crate) received: Arc<Places>,
    /// Where unary decisions wait to be computed, by owner.
    pub(crate) decides: FairQueue,
    /// What the sessions hold.
    pub(crate) memory: Arc<Memory>,
    /// Where busy sessions and connections wait, by identity at an address.
    pub(crate) busy: FairQueue,
    /// Where calls wait to begin, one after the other.
    pub(crate) beginning: FairQueue,
    /// Where sessions are recorded, if they are.
    pub(crate) recorder: Option<Recorder>,
    /// How many ids of sessions were drawn.
    pub(crate) ids_drawn: AtomicU64,
    /// What makes spans, if anything does.
    pub(crate) tracer: Tracer,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(config: Config, metrics: Metrics, access: Access) -> Self {
        let limits = &config.limits;
        let places = |max: usize| {
            let share = max * usize::from(limits.peer_share) / 100;
            Places::new(max, share.max(1))
        };
        Self {
            access: Arc::new(access),
            registry: Arc::default(),
            watchers: Arc::new(Watchers::new(limits.watchers_max, limits.watch_buffer)),
            draining: CancellationToken::new(),
            tasks: TaskTracker::new(),
            sessions: Shares::new(
                limits.sessions_max,
                Limit::Sessions.refusal(limits.sessions_max),
            ),
            pending_sessions: places(limits.pending_sessions_max),
            connections: places(limits.connections_max),
            calls: places(limits.calls_max),
            received: places(limits.received_bytes_max),
            decides: FairQueue::of(limits.decides_max),
            memory: Arc::new(Memory::new(
                limits.memory_max,
                Limit::Memory.refusal(limits.memory_max),
            )),
            busy: FairQueue::one_for_each_peer(),
            beginning: FairQueue::of(1),
            recorder: None,
            ids_drawn: AtomicU64::default(),
            tracer: Tracer::default(),
            metrics,
            config,
        }
    }

    /// Returns what the server grants its sessions.
    pub(crate) fn session_config(&self) -> server_session::Config {
        let Config {
            drain_deadline,
            reconnect_after,
            heartbeat_interval,
            limits,
            ..
        } = &self.config;
        server_session::Config {
            server_version: build_info::text().into(),
            frame_bytes_max: limits.frame_bytes_max,
            objects_max: limits.objects_max,
            bytes_max: limits.session_memory_max,
            operations_in_flight_max: limits.operations_in_flight_max,
            backoff_max: self.config.backoff_max,
            heartbeat_interval: *heartbeat_interval,
            drain_deadline: *drain_deadline,
            reconnect_after: *reconnect_after,
        }
    }

    /// Draws the id of a session, from the seed if there is one.
    pub(crate) fn draw_session_id(&self) -> String {
        match self.config.session_seed {
            Some(seed) => {
                let number = self.ids_drawn.fetch_add(1, Ordering::Relaxed);
                format!("{seed:016x}{number:016x}")
            }
            None => random_session_id(),
        }
    }

    /// Returns why a new agent would not get a session, if it would not.
    pub(crate) fn check_ready(&self) -> Result<(), &'static str> {
        if self.draining.is_cancelled() {
            Err("draining")
        } else if !self.sessions.has_room() {
            Err("limit of sessions reached")
        } else if !self.connections.has_room(PlaceRank::Settled) {
            Err("limit of connections reached")
        } else {
            Ok(())
        }
    }

    /// Returns the refusal of what would begin during a drain.
    pub(crate) const fn drain_refusal(&self) -> Refusal {
        Refusal::Session(server_session::Refusal::Draining {
            reconnect_after: self.config.reconnect_after,
        })
    }

    /// Returns the refusal of a call where there are too many.
    pub(crate) fn calls_refusal(&self) -> Refusal {
        Limit::Calls.refusal(self.calls.max())
    }

    /// Returns the refusal of a message where too many bytes are held.
    pub(crate) fn received_refusal(&self) -> Refusal {
        Limit::ReceivedBytes.refusal(self.received.max())
    }

    /// Returns the refusal of a stream where too many have not sent their Hello.
    pub(crate) fn pending_refusal(&self) -> Refusal {
        Limit::PendingSessions.refusal(self.pending_sessions.max())
    }

    /// Refuses what would begin during a drain.
    pub(crate) fn check_draining(&self) -> Result<(), Refusal> {
        if self.draining.is_cancelled() {
            Err(self.drain_refusal())
        } else {
            Ok(())
        }
    }
}

/// Returns 128 random bits, so that ids of different servers and of their restarts never meet.
pub(crate) fn random_session_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

//! The state that all calls of one server share.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use service::admission::{FairQueue, Yields};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access, args::Config, background::Background, capacity::Pool, error::Refusal,
    metrics::Metrics, recorder::Recorder, registry::LiveSessions, watchers::Watchers,
};

/// The maximum number of bytes, over all connections, of incomplete messages, of unary calls without an answer, and of unread responses.
const RECEIVED_BYTES_MAX: usize = 64 << 20;
/// How long agents should wait after a drain before they reconnect.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of unary decisions computed at a time. Further ones wait within their deadline.
const DECIDES_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) access: Arc<Access>,
    pub(crate) registry: Arc<LiveSessions>,
    pub(crate) watchers: Arc<Watchers>,
    /// Cancelled when the server begins to drain.
    pub(crate) draining: CancellationToken,
    /// The tasks of the sessions. A drain waits for them.
    pub(crate) tasks: TaskTracker,
    /// Streams that have not sent their Hello.
    pub(crate) pending_sessions: Arc<Pool>,
    pub(crate) connections: Arc<Pool>,
    /// Calls other than sessions.
    pub(crate) calls: Arc<Pool>,
    /// Bytes of messages that have not arrived completely, of unary calls that are not answered, and of responses that are not read.
    pub(crate) received: Arc<Pool>,
    /// The queue of unary decisions, by owner.
    pub(crate) decides: FairQueue,
    pub(crate) background: Background,
    /// The bytes that all sessions hold.
    pub(crate) memory: Arc<Pool>,
    /// The queue of busy sessions and connections, by identity and address.
    pub(crate) busy: FairQueue,
    /// The queue of new calls, which begin one at a time.
    pub(crate) beginning: FairQueue,
    /// `None` if sessions are not recorded.
    pub(crate) recorder: Option<Recorder>,
    /// The number of session ids that were generated.
    pub(crate) ids_drawn: AtomicU64,
}

impl Shared {
    pub(crate) fn new(config: Config, metrics: Metrics, access: Access) -> io::Result<Self> {
        let limits = &config.limits;
        let pool = |max, of| Pool::new(max, Yields::Oldest, Refusal::exhausted(of, max));
        Ok(Self {
            access: Arc::new(access),
            registry: Arc::new(LiveSessions::new(limits.sessions_max)),
            watchers: Arc::new(Watchers::new(limits.watchers_max, limits.watch_buffer)),
            draining: CancellationToken::new(),
            tasks: TaskTracker::new(),
            pending_sessions: pool(limits.pending_sessions_max(), "pending sessions"),
            connections: pool(limits.connections_max(), "connections"),
            calls: pool(limits.calls_max, "calls"),
            received: pool(RECEIVED_BYTES_MAX, "received bytes"),
            decides: FairQueue::of(DECIDES_MAX),
            // One more, so that ended sessions are freed beside long decisions.
            background: Background::start(DECIDES_MAX + 1)?,
            memory: Pool::new(
                limits.memory_max,
                Yields::Newest,
                Refusal::exhausted("memory", limits.memory_max),
            ),
            busy: FairQueue::one_for_each_peer(),
            beginning: FairQueue::of(1),
            recorder: None,
            ids_drawn: AtomicU64::default(),
            metrics,
            config,
        })
    }

    pub(crate) fn session_config(&self) -> server_session::Config {
        let (config, limits) = (&self.config, &self.config.limits);
        server_session::Config {
            server_version: service::build_info::text().into(),
            frame_bytes_max: limits.frame_bytes_max,
            objects_max: limits.objects_max,
            bytes_max: limits.session_memory_max,
            operations_in_flight_max: limits.operations_in_flight_max,
            backoff_max: config.backoff_max,
            heartbeat_interval: config.heartbeat_interval,
            drain_deadline: config.drain_deadline,
            reconnect_after: RECONNECT_AFTER,
        }
    }

    /// Generates a session id, from the seed if there is one.
    pub(crate) fn draw_session_id(&self) -> String {
        let Some(seed) = self.config.session_seed else {
            return random_session_id();
        };
        let number = self.ids_drawn.fetch_add(1, Ordering::Relaxed);
        format!("{seed:016x}{number:016x}")
    }

    pub(crate) const fn drain_refusal() -> Refusal {
        Refusal::Session(server_session::Refusal::Draining {
            reconnect_after: RECONNECT_AFTER,
        })
    }

    /// Refuses new sessions and calls during a drain.
    pub(crate) fn check_draining(&self) -> Result<(), Refusal> {
        if self.draining.is_cancelled() {
            Err(Self::drain_refusal())
        } else {
            Ok(())
        }
    }
}

/// 128 random bits, so that ids of different servers and after restarts never collide.
pub(crate) fn random_session_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

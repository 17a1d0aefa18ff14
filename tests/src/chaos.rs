//! The faults and delays of a world.

use std::time::Duration;

use agent_fake::OpenWatches;
use jiff::SignedDuration;

use crate::rng::Rng;

/// The maximum drift of a machine's clock, in millionths: twenty times the maximum correction of NTP, and less than the margins
/// of the Lease and of creates allow.
pub const DRIFT_MAX: u16 = 10_000;

/// Delays, and the chances of faults. Chances are per thousand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// The maximum transit time of a frame.
    pub network_max: Duration,
    /// The maximum transit time of a call, and of its answer.
    pub call_max: Duration,
    /// The maximum transit time of a watch event.
    pub watch_max: Duration,
    /// The maximum number of frames of the agent in flight.
    pub window: usize,
    /// Chance of each call that the API server refuses it.
    pub refuse: u64,
    /// Chance of each call that it takes effect and its reply is lost.
    pub lose_reply: u64,
    /// Chance of each call that its caller gets no answer, and it takes effect later.
    pub be_late: u64,
    /// Chance of each success that it reaches the server without the object after the write, as from a third-party agent.
    pub bare: u64,
    /// Chance of each direction of a connection that breaks that its frames are lost.
    pub lose_frames: u64,
    /// Chance of each call of a dead agent that it never arrives.
    pub lose_calls: u64,
    /// Chance of each step that the server process dies.
    pub kill_server: u64,
    /// Chance of each step that the server process drains, ends, and another starts.
    pub drain_server: u64,
    /// Chance of each step that the agent process dies.
    pub kill_agent: u64,
    /// Chance of each step that the process of an agent is stopped for a while.
    pub pause_agent: u64,
    /// Chance of each step that the wall clock of a server jumps.
    pub jump_clock: u64,
    /// Chance of each step that the connection breaks.
    pub cut: u64,
    /// Chance of each step that the connection falls silent, in one direction or both, without notice.
    pub silence: u64,
    /// Chance of each step that the watches of a kind break. In half of the cases, the missed events are compacted away.
    pub drop_watches: u64,
    /// Chance of each step that the watches send bookmarks.
    pub bookmarks: u64,
    /// Whether the cluster has a pod that breaks the contract.
    pub bad_object: bool,
    /// The maximum number of deaths, drains, cuts, silences and drops in a world.
    pub incidents: u32,
    /// The number of servers; an agent connects to any of them.
    pub servers: usize,
    /// The number of processes that stand by for the leading agent; without one, there is no Lease.
    pub standbys: usize,
    /// The maximum difference between the clock of a process and the clock of the cluster.
    pub clock_skew: Duration,
    /// The number of API servers; any of them serves a watch.
    pub api_servers: usize,
    /// The maximum lag of the watch caches of an API server.
    pub cache_lag: Duration,
    /// Chance of each step that an API server restarts.
    pub restart_api_server: u64,
    /// The maximum drift of a machine's clock relative to the clock of the cluster, in millionths.
    pub clock_drift: u16,
    /// The maximum number of operations in flight: few enough in some worlds to be exhausted.
    pub operations_max: usize,
    /// Chance of each create that a webhook drops the labels of the pod.
    pub relabel: u64,
    /// Chance of each create and each adoption that a webhook drops the owner of the pod.
    pub orphan: u64,
    /// Chance of each create that a kubelet rejects the pod at once.
    pub reject: u64,
    /// Chance of each create that somebody removes the pod at once.
    pub remove: u64,
    /// The manner of the agents, if it is not that of the agent of this project.
    pub manner: Option<Manner>,
}

/// A manner in which a third-party agent may differ. The last three violate the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Its outcomes overtake its lists and events, and its frames have no numbers.
    OutcomesOvertake,
    /// Its lists have no version.
    UnversionedLists,
    /// It reports that none of its creates, adoptions and releases was answered.
    HearsNothing,
    /// Its later lists are older than the first list of their session.
    OlderLists,
    /// It reports no outcome.
    WithholdsAll,
    /// It reports no outcome of some batches.
    WithholdsSome,
}

impl Manner {
    /// Returns whether the agent reports no outcome of a batch.
    pub const fn withholds(self, batch: u64) -> bool {
        match self {
            Self::WithholdsAll => true,
            Self::WithholdsSome => batch.is_multiple_of(3),
            Self::OutcomesOvertake
            | Self::UnversionedLists
            | Self::HearsNothing
            | Self::OlderLists => false,
        }
    }
}

/// A fault at a planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The acting agents die.
    KillAgents,
    /// The processes of the acting agents stop for this duration.
    PauseAgents(Duration),
    /// The wall clocks of all processes that contend for the Lease jump.
    JumpClocks,
    /// The wall clocks of all servers, and of all processes that contend for the Lease, are set to the cluster's clock plus this
    /// offset.
    SetClocks(SignedDuration),
    /// All servers die, and others start after this duration.
    StopServers(Duration),
    /// All watches break, and the missed events are compacted away.
    DropWatches,
    /// The connections of the acting agents break.
    Cut,
    /// Somebody writes this often to unrelated objects, so versions grow.
    Write(u32),
    /// Somebody takes a backup of the store.
    TakeBackup,
    /// The store is restored from the last backup, if there is one.
    PutBack(OpenWatches),
    /// The store is restored while the API server keeps running for this duration: it lists the old state, and its watches are
    /// silent.
    PutBackBehind(Duration),
    /// The API server that kept running restarts.
    RestartBehind,
    /// A ReplicaSet appears whose selector does not match the labels of its template.
    AddIllSet,
    /// That ReplicaSet is deleted.
    RemoveIllSet,
}

impl Chaos {
    /// Returns a quiet world, in which everything arrives soon.
    pub fn calm() -> Self {
        Self {
            network_max: Duration::from_millis(2),
            call_max: Duration::from_millis(5),
            watch_max: Duration::from_millis(5),
            window: 4,
            lose_frames: 500,
            lose_calls: 500,
            servers: 1,
            api_servers: 1,
            operations_max: 10_000,
            ..Self::default()
        }
    }

    /// Returns a quiet world, except for a change.
    pub fn calm_but(change: impl FnOnce(&mut Self)) -> Self {
        let mut chaos = Self::calm();
        change(&mut chaos);
        chaos
    }

    /// Draws a world: one in five is quiet, and the others have a random mixture of faults.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        let calm = Self::calm();
        if rng.chance(200) {
            return calm;
        }
        let delays = [2, 20, 100, 500].map(Duration::from_millis);
        let chances = [0, 0, 10, 40];
        let calls = [0, 0, 50, 200];
        Self {
            network_max: *rng.pick(&delays),
            call_max: *rng.pick(&delays),
            watch_max: *rng.pick(&delays),
            window: *rng.pick(&[1, 2, 8]),
            refuse: *rng.pick(&calls),
            lose_reply: *rng.pick(&calls),
            be_late: *rng.pick(&calls),
            bare: *rng.pick(&[0, 0, 0, 200, 1_000]),
            kill_server: *rng.pick(&chances),
            drain_server: *rng.pick(&chances),
            kill_agent: *rng.pick(&chances),
            pause_agent: *rng.pick(&chances),
            jump_clock: *rng.pick(&chances),
            cut: *rng.pick(&chances),
            silence: *rng.pick(&chances),
            drop_watches: *rng.pick(&chances),
            bookmarks: *rng.pick(&chances),
            bad_object: rng.chance(250),
            incidents: *rng.pick(&[1, 2, 5]),
            servers: *rng.pick(&[1, 1, 2, 3]),
            standbys: *rng.pick(&[0, 0, 0, 1]),
            clock_skew: *rng.pick(&[0, 1, 3600].map(Duration::from_secs)),
            api_servers: *rng.pick(&[1, 1, 2, 3]),
            cache_lag: *rng.pick(&[0, 0, 200, 4_000].map(Duration::from_millis)),
            restart_api_server: *rng.pick(&chances),
            clock_drift: *rng.pick(&[0, DRIFT_MAX]),
            operations_max: *rng.pick(&[10_000, 4, 1]),
            ..calm
        }
    }

    /// Returns this world without faults; slow, narrow, bare or bad parts stay.
    pub fn healed(&self) -> Self {
        Self {
            network_max: self.network_max,
            call_max: self.call_max,
            watch_max: self.watch_max,
            window: self.window,
            bad_object: self.bad_object,
            servers: self.servers,
            standbys: self.standbys,
            clock_skew: self.clock_skew,
            api_servers: self.api_servers,
            cache_lag: self.cache_lag,
            clock_drift: self.clock_drift,
            operations_max: self.operations_max,
            bare: self.bare,
            manner: self.manner,
            lose_frames: self.lose_frames,
            lose_calls: self.lose_calls,
            ..Self::calm()
        }
    }
}

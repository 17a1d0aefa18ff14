//! How rough a world is.

use std::time::Duration;

use agent_fake::OpenWatches;
use jiff::SignedDuration;

use crate::{actors::foreign::Manner, rng::Rng};

/// The most by which the clock of a machine drifts, in millionths: twenty times what NTP corrects at most, and less than the margins of
/// the Lease and of creates have room for.
pub const DRIFT_MAX: u16 = 10_000;

/// Delays, and the chances of faults. Chances are per thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chaos {
    /// The longest that a frame travels.
    pub network_max: Duration,
    /// The longest that a call, and its answer, travel.
    pub call_max: Duration,
    /// The longest that a watch event travels.
    pub watch_max: Duration,
    /// How many frames of the agent may be on their way.
    pub window: usize,
    /// Chance of each call: it is refused.
    pub refuse: u64,
    /// Chance of each call: it takes effect and its reply is lost.
    pub lose_reply: u64,
    /// Chance of each call: its caller hears nothing, and it takes effect later.
    pub be_late: u64,
    /// Chance of each success: it reaches the server without the object after the write, as from an agent that is not ours.
    pub bare: u64,
    /// Chance of each way of a connection that breaks: the frames on it are lost.
    pub lose_frames: u64,
    /// Chance of each call of an agent that has died: it never arrives.
    pub lose_calls: u64,
    /// Chance of each step: the server process dies.
    pub kill_server: u64,
    /// Chance of each step: the server process drains, ends, and another starts.
    pub drain_server: u64,
    /// Chance of each step: the agent process dies.
    pub kill_agent: u64,
    /// Chance of each step: the process of an agent is stopped for a while, and goes on.
    pub pause_agent: u64,
    /// Chance of each step: the wall clock of a server jumps.
    pub jump_clock: u64,
    /// Chance of each step: the connection breaks.
    pub cut: u64,
    /// Chance of each step: the connection falls silent, one way or both, and nobody is told.
    pub silence: u64,
    /// Chance of each step: the watches of a kind break, and in half of the cases what they missed is compacted away.
    pub drop_watches: u64,
    /// Chance of each step: the watches give bookmarks.
    pub bookmarks: u64,
    /// Whether the cluster holds a pod that breaks the contract.
    pub bad_object: bool,
    /// How many deaths, drains, cuts, silences and drops a world bears.
    pub incidents: u32,
    /// How many servers there are; an agent connects to any of them.
    pub servers: usize,
    /// How many processes stand by for the agent that leads; without one there is no Lease.
    pub standbys: usize,
    /// How far the clock of a process may be from that of the cluster.
    pub clock_skew: Duration,
    /// How many API servers there are; a watch is served by any of them.
    pub api_servers: usize,
    /// By how much the watch caches of an API server may be behind.
    pub cache_lag: Duration,
    /// Chance of each step: an API server begins anew.
    pub restart_api_server: u64,
    /// By how many millionths the clock of a machine may be faster or slower than that of the cluster.
    pub clock_drift: u16,
    /// Chance of each process of an agent: it is one of another make.
    pub foreign: u64,
    /// How many operations may be in flight: so few that they run out, in some worlds.
    pub operations_max: usize,
    /// Chance of each create: a webhook drops the labels of the pod.
    pub relabel: u64,
    /// Chance of each create: a kubelet rejects the pod at once.
    pub reject: u64,
    /// Chance of each create: somebody removes the pod at once.
    pub remove: u64,
    /// What agents of another make do that the protocol forbids.
    pub manner: Option<Manner>,
}

/// What goes wrong at a time that is not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The agents that act die.
    KillAgents,
    /// The processes of the agents that act are stopped for so long.
    PauseAgents(Duration),
    /// The wall clocks of all processes that contend for the Lease jump.
    JumpClocks,
    /// The wall clocks of all servers, and of all processes that contend for the Lease, are set: they differ by so much from the cluster's.
    SetClocks(SignedDuration),
    /// All servers die, and others start after so long.
    StopServers(Duration),
    /// All watches break, and what they missed is compacted away.
    DropWatches,
    /// Somebody writes so often, to what concerns nobody: versions grow.
    Write(u32),
    /// A backup of the store is taken.
    TakeBackup,
    /// The store is put back to the backup that was taken last, if there is one.
    PutBack(OpenWatches),
    /// The store is put back while the API server runs on for so long: it lists what was there, and its watches are silent.
    PutBackBehind(Duration),
    /// The API server that ran on is started anew.
    RestartBehind,
    /// A ReplicaSet comes whose selector its template's labels do not match.
    AddIllSet,
    /// It goes.
    RemoveIllSet,
}

impl Chaos {
    /// Returns a quiet world: everything arrives, soon.
    #[must_use]
    pub const fn calm() -> Self {
        Self {
            network_max: Duration::from_millis(2),
            call_max: Duration::from_millis(5),
            watch_max: Duration::from_millis(5),
            window: 4,
            refuse: 0,
            lose_reply: 0,
            be_late: 0,
            bare: 0,
            lose_frames: 500,
            lose_calls: 500,
            kill_server: 0,
            drain_server: 0,
            kill_agent: 0,
            pause_agent: 0,
            jump_clock: 0,
            cut: 0,
            silence: 0,
            drop_watches: 0,
            bookmarks: 0,
            bad_object: false,
            incidents: 0,
            servers: 1,
            standbys: 0,
            clock_skew: Duration::ZERO,
            api_servers: 1,
            cache_lag: Duration::ZERO,
            restart_api_server: 0,
            clock_drift: 0,
            foreign: 0,
            operations_max: 10_000,
            relabel: 0,
            reject: 0,
            remove: 0,
            manner: None,
        }
    }

    /// Draws a world: one in five is quiet, the others each have their own mixture.
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
            lose_frames: calm.lose_frames,
            lose_calls: calm.lose_calls,
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
            foreign: *rng.pick(&[0, 0, 0, 500, 1_000]),
            operations_max: *rng.pick(&[10_000, 4, 1]),
            relabel: calm.relabel,
            reject: calm.reject,
            remove: calm.remove,
            manner: calm.manner,
        }
    }

    /// Returns this world without faults; what is slow, narrow, bare or bad stays so.
    #[must_use]
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
            foreign: self.foreign,
            operations_max: self.operations_max,
            bare: self.bare,
            manner: self.manner,
            lose_frames: self.lose_frames,
            lose_calls: self.lose_calls,
            ..Self::calm()
        }
    }
}

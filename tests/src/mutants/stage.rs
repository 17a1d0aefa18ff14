//! The world that is made for each mutant: it brings about what the mutant needs to do harm, whatever is drawn.
//!
//! A mutant that does harm wherever something happens gets a workload, and all else is drawn. One that needs a situation gets the times at which
//! people act, and the faults, by which the situation comes about in nearly every world.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use std::{iter, time::Duration};

use agent_fake::Propagation;

use super::Mutant;
use crate::{
    builders::replica_set,
    chaos::{Chaos, Fault},
    rng::Rng,
    workloads::{Act, Workload},
};

/// In this time a calm world comes to rest, and the Lease of a process that does not renew it is another's.
const REST: Duration = Duration::from_secs(15);
/// How long a frame or call takes where work is to be under way for a while.
const SLOW: Duration = Duration::from_millis(500);
/// By how much a watch cache is behind at most where lists are read from it.
const BEHIND: Duration = Duration::from_secs(8);
const FAR_BEHIND: Duration = Duration::from_secs(20);
/// How long after its last renewal the Lease of a process that is stopped is another's for sure.
const PAUSE: Duration = Duration::from_secs(12);

/// A world before it is run.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What is there, and what people do.
    pub workload: Workload,
    /// What they do when.
    pub plan: Vec<(Duration, Act)>,
    /// What goes wrong when, beside what is drawn.
    pub faults: Vec<(Duration, Fault)>,
    /// How rough it is.
    pub chaos: Chaos,
    /// How many clusters share its servers.
    pub neighbours: u64,
}

// === impl Mutant ===

impl Mutant {
    /// Draws the world that is made for the mutant.
    #[must_use]
    pub fn stage(self, rng: &mut Rng) -> Stage {
        let workload = self.workload();
        let chaos = Chaos::draw(rng);
        let mut stage = Stage {
            workload,
            plan: workload.plan(rng),
            faults: Vec::new(),
            chaos,
            neighbours: if self.needs_clusters() { 2 } else { 0 },
        };
        self.set(&mut stage, rng);
        let skew_max = workload.clock_skew_max();
        stage.chaos.clock_skew = stage.chaos.clock_skew.min(skew_max);
        stage
    }

    /// Returns the workload in which what the mutant breaks is at work.
    #[must_use]
    pub const fn workload(self) -> Workload {
        match self {
            Self::FreezeReplicas
            | Self::IgnorePodEvents
            | Self::IgnoreReplicaSetEvents
            | Self::LoseEvents => Workload::Up,
            Self::DeleteBystanders
            | Self::DeleteNeighbour
            | Self::DeleteOneTwice
            | Self::DeleteUnknownPod
            | Self::IgnoreDeletionTimestamps => Workload::Down,
            Self::TakeLeaseAtOnce => Workload::UpThenDown,
            Self::IgnoreReplicaSetDeletion | Self::IgnoreReplicaSetTombstones => Workload::Delete,
            Self::CreateUnderTakenName
            | Self::IdentifyByName
            | Self::IgnoreTombstones
            | Self::LetClocksRunApart
            | Self::ListFromCache
            | Self::LoseDeletions
            | Self::MeasureLeaseByWallClock
            | Self::ReuseNames
            | Self::ReuseSequence
            | Self::ShareEpochs
            | Self::SkipSequence
            | Self::WatchFromNow => Workload::PodKilled,
            Self::CountEndedPods => Workload::PodFailed,
            Self::DropReleases | Self::FreezeLabels | Self::SwapClaims => Workload::RelabelOut,
            Self::DropAdoptions
            | Self::ForgetOwnWrites
            | Self::TakeBareForGone
            | Self::TakeTimeoutForGone => Workload::AdoptOrphan,
            Self::DropUidPrecondition => Workload::PodReplaced,
            Self::IgnoreMinReadySeconds => Workload::MinReadySeconds,
            _ => Workload::Create,
        }
    }

    /// Sets what the mutant needs.
    fn set(self, stage: &mut Stage, rng: &mut Rng) {
        match self {
            Self::DeleteBystanders
            | Self::DeleteNeighbour
            | Self::DeleteOneTwice
            | Self::DeleteUnknownPod
            | Self::FreezeLabels
            | Self::FreezeReplicas
            | Self::IdentifyByName
            | Self::IgnoreDeletionTimestamps
            | Self::IgnoreMinReadySeconds
            | Self::IgnoreReplicaSetEvents
            | Self::IgnoreTombstones
            | Self::LoseDeletions
            | Self::LoseEvents
            | Self::ReuseNames => stage.act_at_rest(Chaos::calm()),
            Self::IgnoreReplicaSetDeletion => stage.delete(Propagation::Foreground),
            Self::IgnoreReplicaSetTombstones => stage.delete(Propagation::Background),
            // Nothing is there before the watch is open, and the ReplicaSet is not told of again.
            Self::DropFirstEventAfterList | Self::DropFirstWatchEvent => {
                stage.act_at_rest(Chaos::calm());
                stage.space(&[REST]);
            }
            Self::DropUidPrecondition => stage.replace_amid_deletion(),
            Self::WriteOldStatus => stage.begin_many_sets(),
            Self::WatchFromNow => stage.reopen_watches(rng),
            Self::TakeTimeoutForGone | Self::TakeBareForGone => stage.adopt_unheard(self),
            Self::IgnoreListsWithoutVersion => {
                stage.chaos = Chaos {
                    foreign: 1_000,
                    ..Chaos::calm()
                };
                // One agent of another make in four leaves the versions of its lists out.
                stage.neighbours = 4;
            }
            Self::ListFromCache => stage.restart_behind(),
            Self::TakeListsForNewest => stage.list_behind(rng),
            // A session that is not told what came of its creates asks for a list.
            Self::LoseResync | Self::MergeLists | Self::TruncateLists => {
                stage.chaos = Chaos {
                    bare: 1_000,
                    ..Chaos::calm()
                };
            }
            // The first lists hold the ReplicaSet, and none of its pods.
            Self::ListStaleAfterRestart | Self::ServeOldLists => {
                stage.act_at_rest(Chaos::calm());
                stage.faults.push((REST, Fault::KillAgents));
            }
            Self::SkipBarrier | Self::IgnoreTimeout => stage.die_amid_creates(rng),
            _ => self.set_for_many(stage, rng),
        }
    }

    /// Sets what a mutant needs that is seen where several agents act.
    fn set_for_many(self, stage: &mut Stage, rng: &mut Rng) {
        let contended = Chaos {
            servers: 8,
            standbys: 1,
            ..Chaos::calm()
        };
        match self {
            Self::TakeLeaseAtOnce => stage.act_at_rest(Chaos {
                standbys: 2,
                ..contended
            }),
            Self::IgnoreLeaseLoss => stage.pause_amid_work(rng),
            Self::MeasureLeaseByWallClock => {
                stage.kill_steadily(75);
                stage.chaos = Chaos {
                    clock_skew: Duration::from_secs(3600),
                    standbys: 3,
                    ..contended
                };
                stage.faults = every(PAUSE, 6).map(|at| (at, Fault::JumpClocks)).collect();
            }
            Self::LetClocksRunApart => {
                // One that is slow still leads when it goes on, and one that is fast has taken over.
                stage.kill_steadily(60);
                stage.chaos = contended;
                stage.faults = every(REST, 3)
                    .map(|at| (at, Fault::PauseAgents(PAUSE / 2)))
                    .collect();
            }
            // The one that takes over meets the session of the one that is stopped.
            Self::IgnoreSupersession => {
                stage.chaos = Chaos {
                    servers: 1,
                    ..contended
                };
                stage.faults.push((REST, Fault::PauseAgents(PAUSE)));
            }
            Self::ShareEpochs => {
                stage.kill_steadily(30);
                stage.chaos = Chaos {
                    kill_agent: 3,
                    cut: 10,
                    incidents: 30,
                    ..Chaos::calm()
                };
            }
            _ => {}
        }
    }
}

// === impl Stage ===

impl Stage {
    /// Lets people wait until all is at rest before they act again.
    fn act_at_rest(&mut self, chaos: Chaos) {
        self.chaos = chaos;
        self.space(&[Duration::ZERO, REST]);
    }

    /// Lets acts come so long after one another; the last pause holds for all that follow.
    fn space(&mut self, pauses: &[Duration]) {
        let mut now = Duration::ZERO;
        for (number, (at, _)) in self.plan.iter_mut().enumerate() {
            let pause = pauses.get(number).or_else(|| pauses.last());
            now += pause.copied().unwrap_or_default();
            *at = now;
        }
    }

    /// Lets the ReplicaSet be deleted when its pods are there.
    fn delete(&mut self, how: Propagation) {
        self.act_at_rest(Chaos::calm());
        for (_, act) in &mut self.plan {
            if let Act::Delete { propagation, .. } = act {
                *propagation = how;
            }
        }
    }

    /// Lets pods be replaced while their deletions are on the way.
    fn replace_amid_deletion(&mut self) {
        self.chaos = Chaos {
            call_max: SLOW,
            ..Chaos::calm()
        };
        self.space(&[Duration::ZERO, REST, Duration::from_millis(60)]);
    }

    /// Lets many ReplicaSets begin: of each it is a matter of chance which status is the last that is written.
    fn begin_many_sets(&mut self) {
        self.chaos = Chaos::calm();
        let sets = (1..=8).map(|number| {
            let name = format!("web-{number}");
            let set = replica_set(&name).selecting("app", &name);
            (Duration::ZERO, Act::Create(set.replicas(number).build()))
        });
        self.plan = sets.collect();
    }

    /// Lets the pods of a ReplicaSet that is at rest be killed one by one.
    fn kill_steadily(&mut self, times: u32) {
        self.plan.truncate(1);
        let kills = every(Duration::from_secs(1), times);
        self.plan.extend(kills.map(|at| (at, Act::KillPod)));
    }

    /// Lets pods be killed while watches are opened anew, each a while after the list that it goes on from.
    fn reopen_watches(&mut self, rng: &mut Rng) {
        self.kill_steadily(30);
        self.chaos = Chaos {
            call_max: SLOW,
            ..Chaos::calm()
        };
        let drops = every(Duration::from_secs(1), 30);
        self.faults = drops
            .map(|at| (at + rng.delay(SLOW), Fault::DropWatches))
            .collect();
    }

    /// Lets orphans be adopted where the agent's success does not reach the server as one, and the watch tells of it late.
    fn adopt_unheard(&mut self, mutant: Mutant) {
        let calm = Chaos {
            watch_max: SLOW,
            ..Chaos::calm()
        };
        self.act_at_rest(match mutant {
            Mutant::TakeBareForGone => Chaos {
                bare: 1_000,
                ..calm
            },
            _ => Chaos {
                foreign: 1_000,
                lose_reply: 500,
                ..calm
            },
        });
        let is_orphan = |act: &Act| matches!(act, Act::Create(object) if object["kind"] == "Pod");
        self.plan.sort_by_key(|(_, act)| is_orphan(act));
        self.space(&[Duration::ZERO, REST]);
    }

    /// Lets a ReplicaSet be scaled up to many pods and down to none by turns. Returns when it is scaled up.
    fn scale_in_waves(&mut self, waves: u32) -> Vec<Duration> {
        let begin = Act::Create(replica_set("web").replicas(0).build());
        let scale = |replicas| Act::Scale {
            set: "web".to_owned(),
            replicas,
        };
        let ups: Vec<_> = every(2 * REST, waves).map(|at| at - REST).collect();
        let both = ups
            .iter()
            .flat_map(|at| [(*at, scale(7)), (*at + REST, scale(0))]);
        self.plan = iter::once((Duration::ZERO, begin)).chain(both).collect();
        ups
    }

    /// Lets lists be read again from caches that do not hold yet what was created.
    fn list_behind(&mut self, rng: &mut Rng) {
        let ups = self.scale_in_waves(6);
        self.chaos = Chaos {
            api_servers: 3,
            cache_lag: BEHIND,
            foreign: 1_000,
            ..Chaos::calm()
        };
        // Another agent of another make lists in another way.
        self.faults = amid(&ups, 3 * SLOW, rng, Fault::DropWatches);
        self.faults
            .extend(ups.iter().map(|at| (*at - REST / 2, Fault::KillAgents)));
    }

    /// Lets agents start again and again after all pods were killed and replaced, of which the caches tell late.
    fn restart_behind(&mut self) {
        let begin = Act::Create(replica_set("web").replicas(7).build());
        let kills = iter::repeat_n((2 * REST, Act::KillPod), 7);
        self.plan = iter::once((Duration::ZERO, begin)).chain(kills).collect();
        self.chaos = Chaos {
            cache_lag: FAR_BEHIND,
            ..Chaos::calm()
        };
        let deaths = every(FAR_BEHIND / 5, 8).map(|after| 2 * REST + after);
        self.faults = deaths.map(|at| (at, Fault::KillAgents)).collect();
    }

    /// Lets agents die while creates are on their way, which then take effect as late as they may.
    fn die_amid_creates(&mut self, rng: &mut Rng) {
        let ups = self.scale_in_waves(3);
        self.chaos = Chaos {
            call_max: SLOW,
            lose_calls: 0,
            ..Chaos::calm()
        };
        self.faults = amid(&ups, SLOW, rng, Fault::KillAgents);
    }

    /// Lets agents be stopped until another has taken over, while batches are on their way to them.
    fn pause_amid_work(&mut self, rng: &mut Rng) {
        let ups = self.scale_in_waves(5);
        self.chaos = Chaos {
            network_max: SLOW,
            call_max: SLOW,
            servers: 8,
            standbys: 1,
            ..Chaos::calm()
        };
        self.faults = amid(&ups, 4 * SLOW, rng, Fault::PauseAgents(PAUSE));
    }
}

/// Returns so many times, so far apart.
fn every(span: Duration, times: u32) -> impl Iterator<Item = Duration> {
    (1..=times).map(move |number| number * span)
}

/// Plans a fault within a while after each of these times.
fn amid(
    times: &[Duration],
    within: Duration,
    rng: &mut Rng,
    fault: Fault,
) -> Vec<(Duration, Fault)> {
    let times = times.iter();
    times.map(|at| (*at + rng.delay(within), fault)).collect()
}

//! The world for each mutant: it brings about the situation in which the mutant does harm.
//!
//! A mutant that does harm everywhere gets a workload, and everything else is drawn. A mutant that needs a situation gets times
//! for the acts of people, and faults, so that the situation occurs in nearly every world.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use std::{iter, time::Duration};

use agent_fake::Propagation;

use super::Mutant;
use crate::{
    builders::replica_set,
    chaos::{Chaos, Fault, Manner},
    rng::Rng,
    workloads::{Act, Workload},
};

/// The time in which a calm world comes to rest, and after which another process takes a Lease that is not renewed.
const REST: Duration = Duration::from_secs(15);
/// The duration of a frame or call in worlds that need work in flight.
const SLOW: Duration = Duration::from_millis(500);
/// The maximum lag of a watch cache in worlds that list from caches.
const FAR_BEHIND: Duration = Duration::from_secs(20);
/// The time after its last renewal at which another process has taken the Lease of a stopped process.
const PAUSE: Duration = Duration::from_secs(12);

/// A world before its run.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The objects, and the acts of people.
    pub workload: Workload,
    /// The acts with their times.
    pub plan: Vec<(Duration, Act)>,
    /// The planned faults with their times, in addition to drawn faults.
    pub faults: Vec<(Duration, Fault)>,
    /// The drawn faults and delays.
    pub chaos: Chaos,
    /// The number of clusters that share its servers.
    pub neighbours: u64,
}

impl Mutant {
    /// Draws the world for the mutant.
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

    /// Returns the workload that uses what the mutant breaks.
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

    /// Sets up the situation for the mutant.
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
            // The world is empty before the watch opens, and does not mention the ReplicaSet again.
            Self::DropFirstEventAfterList | Self::DropFirstWatchEvent => {
                stage.act_at_rest(Chaos::calm());
                stage.space(&[REST]);
            }
            Self::DropUidPrecondition => stage.replace_amid_deletion(),
            Self::WriteOldStatus => stage.begin_many_sets(),
            Self::WatchFromNow => stage.reopen_watches(rng),
            Self::TakeTimeoutForGone | Self::TakeBareForGone => stage.adopt_unheard(self),
            Self::IgnoreListsWithoutVersion => {
                stage.chaos = Chaos::calm_but(|it| it.manner = Some(Manner::UnversionedLists));
            }
            Self::ListFromCache => stage.restart_behind(),
            Self::TakeListsForNewest => stage.list_behind(rng),
            // A session without the outcomes of its creates requests a list.
            Self::LoseResync | Self::MergeLists | Self::TruncateLists => {
                stage.chaos = Chaos::calm_but(|it| it.bare = 1_000);
            }
            // The first lists contain the ReplicaSet, and none of its pods.
            Self::ListStaleAfterRestart | Self::ServeOldLists => {
                stage.act_at_rest(Chaos::calm());
                stage.faults.push((REST, Fault::KillAgents));
            }
            Self::SkipBarrier | Self::IgnoreTimeout => stage.die_amid_creates(rng),
            _ => self.set_for_many(stage, rng),
        }
    }

    /// Sets up the situation for a mutant that needs several acting agents.
    fn set_for_many(self, stage: &mut Stage, rng: &mut Rng) {
        let contended = Chaos::calm_but(|it| (it.servers, it.standbys) = (8, 1));
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
                // A slow agent still leads when it resumes, and a fast one has taken over.
                stage.kill_steadily(60);
                stage.chaos = contended;
                stage.faults = every(REST, 3)
                    .map(|at| (at, Fault::PauseAgents(PAUSE / 2)))
                    .collect();
            }
            // The new agent meets the session of the stopped one.
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

impl Stage {
    /// Lets people wait for rest before each act.
    fn act_at_rest(&mut self, chaos: Chaos) {
        self.chaos = chaos;
        self.space(&[Duration::ZERO, REST]);
    }

    /// Sets the pauses between acts; the last pause applies to all further acts.
    fn space(&mut self, pauses: &[Duration]) {
        let mut now = Duration::ZERO;
        for (number, (at, _)) in self.plan.iter_mut().enumerate() {
            let pause = pauses.get(number).or_else(|| pauses.last());
            now += pause.copied().unwrap_or_default();
            *at = now;
        }
    }

    /// Deletes the ReplicaSet after its pods exist.
    fn delete(&mut self, how: Propagation) {
        self.act_at_rest(Chaos::calm());
        for (_, act) in &mut self.plan {
            if let Act::Delete { propagation, .. } = act {
                *propagation = how;
            }
        }
    }

    /// Replaces pods while their deletions are in flight.
    fn replace_amid_deletion(&mut self) {
        self.chaos = Chaos::calm_but(|it| it.call_max = SLOW);
        self.space(&[Duration::ZERO, REST, Duration::from_millis(60)]);
    }

    /// Creates many ReplicaSets: the last written status of each is a matter of chance.
    fn begin_many_sets(&mut self) {
        self.chaos = Chaos::calm();
        let sets = (1..=8).map(|number| {
            let name = format!("web-{number}");
            let set = replica_set(&name).selecting("app", &name);
            (Duration::ZERO, Act::Create(set.replicas(number).build()))
        });
        self.plan = sets.collect();
    }

    /// Kills the pods of a ReplicaSet at rest one by one.
    fn kill_steadily(&mut self, times: u32) {
        self.plan.truncate(1);
        let kills = every(Duration::from_secs(1), times);
        self.plan.extend(kills.map(|at| (at, Act::KillPod)));
    }

    /// Kills pods while watches open again, each a while after the list from which it continues.
    fn reopen_watches(&mut self, rng: &mut Rng) {
        self.kill_steadily(30);
        self.chaos = Chaos::calm_but(|it| it.call_max = SLOW);
        let drops = every(Duration::from_secs(1), 30);
        self.faults = drops
            .map(|at| (at + rng.delay(SLOW), Fault::DropWatches))
            .collect();
    }

    /// Lets an agent adopt orphans while its successes do not reach the server as such, and the watch reports them late.
    fn adopt_unheard(&mut self, mutant: Mutant) {
        let calm = Chaos::calm_but(|it| it.watch_max = SLOW);
        self.act_at_rest(match mutant {
            Mutant::TakeBareForGone => Chaos {
                bare: 1_000,
                ..calm
            },
            _ => Chaos {
                // Where the reply to a write is lost, so is that to the read after it, more often than not.
                lose_reply: 700,
                ..calm
            },
        });
        let is_orphan = |act: &Act| matches!(act, Act::Create(object) if object["kind"] == "Pod");
        self.plan.sort_by_key(|(_, act)| is_orphan(act));
        self.space(&[Duration::ZERO, REST]);
    }

    /// Scales a ReplicaSet up to many pods and down to none by turns. Returns the times of the scale-ups.
    fn scale_in_waves(&mut self, waves: u32) -> Vec<Duration> {
        let begin = Act::Create(replica_set("web").replicas(0).build());
        let scale = |replicas| Act::scale("web", replicas);
        let ups: Vec<_> = every(2 * REST, waves).map(|at| at - REST).collect();
        let both = ups
            .iter()
            .flat_map(|at| [(*at, scale(7)), (*at + REST, scale(0))]);
        self.plan = iter::once((Duration::ZERO, begin)).chain(both).collect();
        ups
    }

    /// Lists again while pods are created, whose outcomes overtake the list.
    fn list_behind(&mut self, rng: &mut Rng) {
        let ups = self.scale_in_waves(6);
        self.chaos = Chaos {
            call_max: SLOW,
            window: 1_000,
            manner: Some(Manner::OutcomesOvertake),
            ..Chaos::calm()
        };
        self.faults = amid(&ups, 3 * SLOW, rng, Fault::DropWatches);
    }

    /// Restarts agents again and again after all pods were killed and replaced, which the caches show late.
    fn restart_behind(&mut self) {
        let begin = Act::Create(replica_set("web").replicas(7).build());
        let kills = iter::repeat_n((2 * REST, Act::KillPod), 7);
        self.plan = iter::once((Duration::ZERO, begin)).chain(kills).collect();
        self.chaos = Chaos::calm_but(|it| it.cache_lag = FAR_BEHIND);
        let deaths = every(FAR_BEHIND / 5, 8).map(|after| 2 * REST + after);
        self.faults = deaths.map(|at| (at, Fault::KillAgents)).collect();
    }

    /// Kills agents while creates are in flight, which then take effect at the last possible moment.
    fn die_amid_creates(&mut self, rng: &mut Rng) {
        let ups = self.scale_in_waves(3);
        self.chaos = Chaos::calm_but(|it| (it.call_max, it.lose_calls) = (SLOW, 0));
        self.faults = amid(&ups, SLOW, rng, Fault::KillAgents);
    }

    /// Stops agents until another has taken over, while batches are in flight to them.
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

/// `times` times, with `span` between them.
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

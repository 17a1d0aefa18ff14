//! The troubles of a world, with their times.

use std::time::Duration;

use agent_core::budget;
use agent_fake::OpenWatches;

use crate::{
    chaos::{Chaos, Manner},
    rng::Rng,
};

/// The ReplicaSet of a world.
pub const SET: &str = "web";

/// The objecting checker, and the reason.
pub(super) type Objection = (&'static str, String);

/// The maximum desired replicas.
const REPLICAS_MAX: u64 = 30;
/// The minimum number of versions that the cluster loses in a restore: more than it writes until an agent checks.
const LOST_MIN: u64 = 2_000;

/// The possible fates of open watches; the second is silence.
pub(super) const WATCHES: [OpenWatches; 3] = [
    OpenWatches::Closed,
    OpenWatches::Silent,
    OpenWatches::Expired,
];

/// A world before its run.
#[derive(Clone, Debug)]
pub struct Story {
    /// The desired replicas.
    pub replicas: i32,
    /// The drawn faults and delays.
    pub chaos: Chaos,
    /// The budget of agents.
    pub budget: budget::BudgetConfig,
    /// The troubles.
    pub troubles: Vec<Stretch>,
}

/// A trouble for a while.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The start.
    pub begins: Duration,
    /// The duration.
    pub lasts: Duration,
    /// The trouble.
    pub trouble: Trouble,
}

/// A fault that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// New pods meet a fate.
    Pods {
        /// The fate.
        fate: Fate,
        /// The number of affected pods per thousand.
        per_mille: u64,
        /// Whether somebody removes the existing pods at the start.
        kills: bool,
    },
    /// The store is restored from a backup, and the watches end in this way.
    Restore(OpenWatches, Restore),
    /// The store is restored behind an API server that keeps running.
    RunsOn(Restore),
    /// Somebody removes a pod now and then.
    Kills,
    /// Another controller acts on the same ReplicaSet.
    OtherController,
    /// A ReplicaSet exists whose selector does not match the labels of its template.
    IllSet,
    /// The agent breaks the protocol.
    Manner(Manner),
    /// Somebody changes the ReplicaSet or the connection again and again.
    Meddles(Meddling),
}

/// A change that somebody makes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// One pod more is desired, or one less.
    Scales,
    /// The ReplicaSet is deleted and created.
    Recreates,
    /// The connection breaks.
    Cuts,
}

/// The backup of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The age of the backup.
    pub age: Duration,
    /// The minimum number of lost versions.
    pub lost: u32,
    /// The act between the backup and the restore.
    pub between: Between,
}

/// A fate of a new pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A webhook drops its labels.
    Relabelled,
    /// A kubelet rejects it.
    Rejected,
    /// Somebody removes it.
    Removed,
    /// A webhook drops its owner, at each write.
    Orphaned,
}

/// An act between a backup and the restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: the cluster is quiet.
    Nothing,
    /// Somebody removes all pods, and others are created.
    Kills,
    /// Somebody changes the desired replicas.
    Scales,
    /// Somebody removes a pod just after the restore of the store.
    KillsAfter,
}

impl Story {
    /// Draws a world with one to three troubles.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        let replicas = rng.between(1, REPLICAS_MAX) as i32;
        let chaos = Chaos {
            jump_clock: 0,
            standbys: 0,
            ..Chaos::draw(rng)
        };
        let count = rng.between(1, 3);
        let mut troubles: Vec<_> = (0..count).map(|_| Stretch::draw(rng)).collect();
        if rng.chance(150) {
            troubles = vec![Stretch::draw_manner(rng)];
        }
        let mut story = Self {
            replicas,
            chaos,
            budget: budget::BudgetConfig::default(),
            troubles,
        };
        story.settle();
        story
    }

    /// Adjusts the world so that its troubles can happen.
    pub fn settle(&mut self) {
        // A store has one backup at a time, and there is one other controller.
        let kinds = |it: &Stretch| it.trouble.kind();
        let mut met = Vec::new();
        self.troubles.retain(|it| {
            let is_new = !met.contains(&kinds(it));
            met.push(kinds(it));
            is_new
        });
        for stretch in &self.troubles {
            if let Trouble::Manner(manner) = stretch.trouble {
                self.chaos = Chaos::calm_but(|it| it.manner = Some(manner));
            }
        }
    }

    /// Returns whether nothing is slow or fails except for the troubles.
    pub fn is_calm(&self) -> bool {
        let calm = Chaos::calm_but(|it| it.manner = self.chaos.manner);
        self.chaos == calm
    }

    /// Returns the end of the last trouble.
    pub fn ends(&self) -> Duration {
        let ends = self.troubles.iter().map(|it| it.begins + it.lasts);
        ends.max().unwrap_or_default()
    }
}

impl Stretch {
    fn draw(rng: &mut Rng) -> Self {
        let seconds = |rng: &mut Rng, low, high| Duration::from_secs(rng.between(low, high));
        let between = *rng.pick(&[
            Between::Nothing,
            Between::Kills,
            Between::Scales,
            Between::KillsAfter,
        ]);
        let lost = rng.between(LOST_MIN, 2 * LOST_MIN) as u32;
        let age = seconds(rng, 1, 60);
        let restore = Restore { age, lost, between };
        let trouble = match rng.between(0, 9) {
            0..=3 => Trouble::Pods {
                fate: *rng.pick(&[
                    Fate::Relabelled,
                    Fate::Rejected,
                    Fate::Removed,
                    Fate::Orphaned,
                ]),
                per_mille: *rng.pick(&[1_000, 1_000, 500, 100]),
                kills: rng.chance(700),
            },
            8 | 9 => Trouble::Meddles(*rng.pick(&[
                Meddling::Scales,
                Meddling::Recreates,
                Meddling::Cuts,
            ])),
            4 | 5 => Trouble::Restore(*rng.pick(&WATCHES), restore),
            6 => Trouble::RunsOn(restore),
            _ => *rng.pick(&[Trouble::OtherController, Trouble::IllSet, Trouble::Kills]),
        };
        Self {
            begins: age + seconds(rng, 1, 120),
            lasts: seconds(rng, 30, 600),
            trouble,
        }
    }

    fn draw_manner(rng: &mut Rng) -> Self {
        let manner = *rng.pick(&[
            Manner::OlderLists,
            Manner::WithholdsAll,
            Manner::WithholdsSome,
        ]);
        Self {
            begins: Duration::ZERO,
            lasts: Duration::from_secs(rng.between(400, 800)),
            trouble: Trouble::Manner(manner),
        }
    }
}

impl Trouble {
    /// A number that mutually exclusive troubles share.
    const fn kind(self) -> (u8, u8) {
        match self {
            Self::Pods { fate, .. } => (0, fate as u8),
            Self::Restore(..) | Self::RunsOn(_) => (1, 0),
            Self::OtherController => (2, 0),
            Self::IllSet => (3, 0),
            Self::Manner(_) => (4, 0),
            Self::Kills => (5, 0),
            Self::Meddles(_) => (6, 0),
        }
    }

    /// Returns the restore of the trouble, if it has one.
    pub const fn restore(self) -> Option<Restore> {
        match self {
            Self::Restore(_, restore) | Self::RunsOn(restore) => Some(restore),
            Self::Pods { .. }
            | Self::Kills
            | Self::OtherController
            | Self::IllSet
            | Self::Manner(_)
            | Self::Meddles(_) => None,
        }
    }
}

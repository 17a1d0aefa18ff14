//! The world that is made for each mutant of a mechanism by which nothing runs away.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use std::time::Duration;

use agent_core::budget;
use agent_fake::OpenWatches;

use super::story::{Between, Fate, Restore, Story, Stretch, Trouble, WATCHES};
use crate::{actors::foreign::Manner, chaos::Chaos, mutants::Mutant, rng::Rng};

/// The mutants to which no checker can object; docs/reliability.md says why of each.
pub const HARMLESS: [Mutant; 2] = [Mutant::RaiseListedVersions, Mutant::RaiseCreatedVersions];

/// When the trouble begins: all is at rest by then, and pods that were made at first have lasted.
const REST: Duration = Duration::from_secs(90);

/// Draws the world that is made for a mutant: calm but for the one trouble that brings what it breaks to work.
#[must_use]
pub fn stage(mutant: Mutant, rng: &mut Rng) -> Story {
    let replicas = rng.between(2, 12) as i32;
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let (begins, lasts, trouble) = match mutant {
        Mutant::HideLostLabels => (Duration::ZERO, minutes(3), every(Fate::Relabelled)),
        Mutant::HideFailures => (Duration::ZERO, minutes(3), every(Fate::Rejected)),
        Mutant::LeaveCreatesOpen | Mutant::KeepEndsQuiet | Mutant::ForgetMakers => {
            let fates = [Fate::Relabelled, Fate::Rejected, Fate::Removed];
            (Duration::ZERO, minutes(3), every(*rng.pick(&fates)))
        }
        Mutant::RaiseAskedVersions => (
            REST,
            minutes(2),
            restore(rng, &[OpenWatches::Silent], Between::Nothing),
        ),
        Mutant::RaiseListedVersions => (
            REST,
            minutes(2),
            restore(
                rng,
                &[OpenWatches::Closed, OpenWatches::Expired],
                Between::Kills,
            ),
        ),
        Mutant::RaiseCreatedVersions => (
            REST,
            minutes(2),
            restore(rng, &[OpenWatches::Silent], Between::KillsAfter),
        ),
        Mutant::RaiseVersions => {
            let trouble = restore(rng, &WATCHES, Between::Kills);
            (REST, minutes(2), trouble)
        }
        Mutant::BelieveLostLists => {
            let trouble = Trouble::RunsOn(Restore {
                // Pods are being made just when the store is put back.
                age: Duration::from_millis(rng.between(5, 60)),
                lost: 2_000,
                between: Between::Kills,
            });
            (REST, minutes(2), trouble)
        }
        Mutant::ShowOthersAsOurs | Mutant::WarnOfOthers | Mutant::ForgetHolds => {
            (REST, minutes(3), Trouble::OtherController)
        }
        Mutant::HideIllTemplates => (REST, minutes(2), Trouble::IllSet),
        Mutant::AcceptOlderLists => (
            Duration::ZERO,
            minutes(6),
            Trouble::Foreign(Manner::OlderLists),
        ),
        Mutant::EndWithoutReason => {
            let manner = *rng.pick(&[Manner::WithholdsAll, Manner::WithholdsSome]);
            (Duration::ZERO, minutes(8), Trouble::Foreign(manner))
        }
        other => panic!("no troubled world is made for {other:?}"),
    };
    let mut story = Story {
        replicas,
        chaos: Chaos::calm(),
        budget: budget::Config::default(),
        troubles: vec![Stretch {
            begins,
            lasts,
            trouble,
        }],
    };
    if trouble == Trouble::OtherController {
        // Pods are lacking all the time, so that both controllers have something to do.
        story.troubles.push(Stretch {
            begins: begins + Duration::from_secs(1),
            lasts: lasts - Duration::from_secs(2),
            trouble: Trouble::Kills,
        });
    }
    if mutant == Mutant::AcceptOlderLists {
        story.troubles.push(Stretch {
            begins,
            lasts,
            trouble: Trouble::Kills,
        });
    }
    story.settle();
    if mutant == Mutant::AcceptOlderLists {
        // The first list of each session is new, and those after it may be older.
        story.chaos.kill_agent = 5;
        story.chaos.incidents = 20;
    }
    story
}

const fn every(fate: Fate) -> Trouble {
    Trouble::Pods {
        fate,
        per_mille: 1_000,
        kills: false,
    }
}

fn restore(rng: &mut Rng, open: &[OpenWatches], between: Between) -> Trouble {
    let open = *rng.pick(open);
    let restore = Restore {
        age: Duration::from_secs(rng.between(5, 30)),
        lost: 2_000,
        between,
    };
    Trouble::Restore(open, restore)
}

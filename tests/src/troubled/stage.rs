//! The world for each mutant of the limits on runaway creation.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place is that of few of many mutants"
)]

use std::time::Duration;

use agent_core::budget;

use super::story::{Between, Fate, Meddling, Restore, Story, Stretch, Trouble, WATCHES};
use crate::{
    chaos::{Chaos, Manner},
    mutants::Mutant,
    rng::Rng,
};

/// The start of the trouble: everything is at rest by then, and the first pods have lasted.
const REST: Duration = Duration::from_secs(90);

/// Draws the world for a mutant: calm except for the one trouble that uses what the mutant breaks.
#[must_use]
pub fn stage(mutant: Mutant, rng: &mut Rng) -> Story {
    let replicas = rng.between(2, 12) as i32;
    let stretch = stretch(mutant, rng);
    let mut story = Story {
        replicas,
        chaos: Chaos::calm(),
        budget: budget::BudgetConfig::default(),
        troubles: vec![stretch],
    };
    if stretch.trouble == Trouble::OtherController {
        // Pods are missing all the time, so that both controllers have work.
        story.troubles.push(Stretch {
            begins: stretch.begins + Duration::from_secs(1),
            lasts: stretch.lasts - Duration::from_secs(2),
            trouble: Trouble::Kills,
        });
    }
    let beside = match mutant {
        Mutant::ForgetAtNewSession => Some(Trouble::Meddles(Meddling::Cuts)),
        Mutant::ForgetAtNewUid => Some(Trouble::Meddles(Meddling::Recreates)),
        Mutant::ForgetAtNewSpec => Some(Trouble::Meddles(Meddling::Scales)),
        Mutant::ForgetUnanswered => Some(Trouble::Manner(Manner::HearsNothing)),
        _ => None,
    };
    story
        .troubles
        .extend(beside.map(|trouble| Stretch { trouble, ..stretch }));
    story.settle();
    story
}

fn stretch(mutant: Mutant, rng: &mut Rng) -> Stretch {
    let at_first = |minutes: u64, trouble| Stretch {
        begins: Duration::ZERO,
        lasts: Duration::from_secs(60 * minutes),
        trouble,
    };
    let at_rest = |trouble| Stretch {
        begins: REST,
        lasts: Duration::from_secs(150),
        trouble,
    };
    match mutant {
        Mutant::HideLostLabels => at_first(3, every(Fate::Relabelled)),
        Mutant::HideFailures => at_first(3, every(Fate::Rejected)),
        Mutant::LeaveCreatesOpen
        | Mutant::KeepEndsQuiet
        | Mutant::ForgetAtNewSession
        | Mutant::ForgetAtNewUid
        | Mutant::ForgetAtNewSpec => {
            let fates = [Fate::Relabelled, Fate::Rejected, Fate::Removed];
            at_first(3, every(*rng.pick(&fates)))
        }
        Mutant::ForgetUnanswered => at_first(3, every(Fate::Rejected)),
        Mutant::ShowOthersAsOurs | Mutant::ForgetHolds | Mutant::KeepHoldsQuiet => {
            at_rest(Trouble::OtherController)
        }
        Mutant::HideIllTemplates => at_rest(Trouble::IllSet),
        Mutant::AcceptOlderLists => at_first(6, Trouble::Manner(Manner::OlderLists)),
        Mutant::EndWithoutReason => {
            let manner = *rng.pick(&[Manner::WithholdsAll, Manner::WithholdsSome]);
            at_first(8, Trouble::Manner(manner))
        }
        _ => at_rest(restored(mutant, rng)),
    }
}

/// Draws the restore of the store.
fn restored(mutant: Mutant, rng: &mut Rng) -> Trouble {
    let (open, between) = match mutant {
        Mutant::RaiseAskedVersions => (&WATCHES[1..2], Between::Nothing),
        Mutant::RaiseVersions | Mutant::KeepRestoresQuiet => (&WATCHES[..], Between::Kills),
        Mutant::BelieveLostLists => {
            return Trouble::RunsOn(Restore {
                // Creates are in flight during the restore of the store.
                age: Duration::from_millis(rng.between(5, 60)),
                lost: 2_000,
                between: Between::Kills,
            });
        }
        other => panic!("no troubled world is made for {other:?}"),
    };
    let open = *rng.pick(open);
    let restore = Restore {
        age: Duration::from_secs(rng.between(5, 30)),
        lost: 2_000,
        between,
    };
    Trouble::Restore(open, restore)
}

const fn every(fate: Fate) -> Trouble {
    Trouble::Pods {
        fate,
        per_mille: 1_000,
        kills: false,
    }
}

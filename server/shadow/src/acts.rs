//! What the other controller did with the pods of a ReplicaSet between two rests, in no more room than its pods take.

use std::{collections::BTreeMap, sync::Arc};

use server_core::{Controller, KnownSet, Uid, Victim};

use crate::difference::{Departure, Subject};

/// How many pods a difference names.
const NAMES_MAX: usize = 5;
/// How many changes of owner are looked at again.
const DOUBTFUL_MAX: usize = 100;
/// How many pods may be kept as chosen that may be gone, beside twice as many as are active.
const CHOSEN_SPARE: usize = 64;
/// What a pod takes in memory that is kept as chosen or doubtful, beside its texts.
const POD_BYTES: usize = 200;

/// What differs, the texts for what was decided and what was done, and why it may.
pub(super) type Found = (Subject, (String, String), Option<Departure>);

/// What was done, and what would have been.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    wanted_most: i32,
    /// The most that were active just after one was made.
    active_most: i32,
    made: u32,
    claimed: u32,
    /// The pods that some view would have chosen and that have not gone, each with its name and the reason.
    chosen: BTreeMap<Uid, (Arc<str>, String)>,
    /// What the texts of these take.
    texts: usize,
    has_chosen: bool,
    has_gone: bool,
    strangers: Strangers,
    /// Pods that changed owner for no reason that could be seen then.
    doubtful: BTreeMap<Uid, Arc<str>>,
}

/// Pods that went without having been chosen.
#[derive(Clone, Debug, Default)]
struct Strangers {
    /// The names of the first.
    names: Vec<Arc<str>>,
    count: usize,
    /// How many of them went where upstream's order is open.
    open: usize,
}

// === impl Acts ===

impl Acts {
    /// Notes how many pods are wanted.
    pub(super) fn want(&mut self, wanted: i32) {
        self.wanted_most = self.wanted_most.max(wanted);
    }

    /// Notes that a pod was made, and how many are active with it.
    pub(super) fn make(&mut self, active: i32) {
        self.made = self.made.saturating_add(1);
        self.active_most = self.active_most.max(active);
    }

    /// Notes pods that would have been chosen.
    pub(super) fn choose(&mut self, victims: impl IntoIterator<Item = Victim>) {
        for victim in victims {
            self.has_chosen = true;
            let why = format!("{} ({})", victim.pod.name, victim.reason.detail);
            let texts = victim.pod.name.len() + why.len();
            let before = self
                .chosen
                .insert(victim.pod.uid.to_uid(), (victim.pod.name, why));
            self.texts += texts;
            self.texts -= before.map_or(0, |before| bytes(&before));
        }
    }

    /// Returns whether some view would have chosen a pod.
    pub(super) fn has_chosen(&self, uid: &Uid) -> bool {
        self.chosen.contains_key(uid)
    }

    /// Notes that a pod goes.
    pub(super) fn go(&mut self, set: &KnownSet<'_>, uid: &Uid) {
        self.has_gone = true;
        if let Some(gone) = self.chosen.remove(uid) {
            self.texts -= bytes(&gone);
        }
        self.forget_gone(set);
    }

    /// Notes a pod that goes and was not chosen, and whether upstream's order is open there.
    pub(super) fn go_unchosen(&mut self, name: &str, is_open: bool) {
        let Strangers { names, count, open } = &mut self.strangers;
        *count += 1;
        *open += usize::from(is_open);
        if names.len() < NAMES_MAX {
            names.push(name.into());
        }
    }

    /// Notes a change of owner; one that was not due is doubtful.
    pub(super) fn claim(&mut self, set: &KnownSet<'_>, doubtful: Option<(&Uid, &Arc<str>)>) {
        self.claimed = self.claimed.saturating_add(1);
        if let Some((uid, name)) = doubtful.filter(|_| self.doubtful.len() < DOUBTFUL_MAX) {
            self.doubtful.insert(uid.clone(), Arc::clone(name));
        }
        self.forget_gone(set);
    }

    /// Forgets chosen pods that went without a word, before they are many.
    fn forget_gone(&mut self, set: &KnownSet<'_>) {
        let active = usize::try_from(set.active()).unwrap_or(0);
        if self.chosen.len() > 2 * active + CHOSEN_SPARE {
            self.chosen
                .retain(|uid, (name, _)| set.has_replica(name, uid));
            self.texts = self.chosen.values().map(bytes).sum();
        }
    }

    /// Returns how many comparisons these acts are.
    pub(super) fn comparisons(&self) -> u64 {
        let acts = [
            self.made > 0,
            self.has_chosen && self.has_gone,
            self.claimed > 0,
        ];
        acts.into_iter().map(u64::from).sum()
    }

    /// Returns about how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        let pods = self.chosen.len() + self.doubtful.len() + self.strangers.names.len();
        pods * POD_BYTES + self.texts
    }

    /// Judges whether more pods were made than were ever wanted. Needs no rest.
    pub(super) fn judge_count(&self, set: &KnownSet<'_>) -> Option<Found> {
        let wanted = self.wanted_most.max(set.wanted());
        (self.made > 0 && self.active_most > wanted).then(|| {
            let decided = format!("at most {wanted} pods at a time");
            let done = format!("{} pods", self.active_most);
            (Subject::Count, (decided, done), None)
        })
    }

    /// Judges whether pods went that no view would have chosen, while such stay that were chosen.
    pub(super) fn judge_victims(&self, set: &KnownSet<'_>) -> Option<Found> {
        let Strangers { names, count, open } = &self.strangers;
        if *count == 0 {
            return None;
        }
        let chosen = self.chosen.iter();
        let survivors = chosen.filter(|(uid, (name, _))| set.has_replica(name, uid));
        let survivors: Vec<&str> = survivors.map(|(_, (_, why))| why.as_str()).collect();
        if survivors.is_empty() {
            return None;
        }
        let strangers: Vec<&str> = names.iter().map(|name| &**name).collect();
        let texts = (
            format!("delete {}", listed(&survivors, survivors.len())),
            format!("deleted {}", listed(&strangers, *count)),
        );
        let departure = (open == count).then_some(Departure::OrderOfDeletion);
        Some((Subject::Victims, texts, departure))
    }

    /// Looks again at changes of owner that nothing had called for: what is so still is a difference.
    pub(super) fn judge_claims(
        &self,
        controller: &Controller,
        set: &KnownSet<'_>,
    ) -> Option<Found> {
        let key = &set.object().key;
        let selector = set.object().selector.as_ref().ok()?;
        let wrong = self.doubtful.iter().filter_map(|(uid, name)| {
            let pod = controller.pod(&key.namespace, name);
            let pod = pod.filter(|pod| pod.uid == *uid)?;
            let owner = pod.controller.as_ref();
            let owned = owner.is_some_and(|owner| owner.uid == key.uid);
            let is_so = owned != selector.matches(&pod.labels);
            is_so.then_some(&**name)
        });
        let mut wrong: Vec<&str> = wrong.collect();
        wrong.sort_unstable();
        (!wrong.is_empty()).then(|| {
            let done = format!("changed the owner of {}", listed(&wrong, wrong.len()));
            let decided = "leave the owner as it is".to_owned();
            (Subject::Adoption, (decided, done), None)
        })
    }
}

fn bytes((name, why): &(Arc<str>, String)) -> usize {
    name.len() + why.len()
}

/// Lists the first of so many names.
fn listed(names: &[&str], count: usize) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match count.checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

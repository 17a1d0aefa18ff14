//! Searches for a view that explains why pods were deleted.

use std::sync::Arc;

use server_core::{CompactUid, KnownSet, Span, Timestamp};

use crate::{
    difference::{LAG, LATE, REACH, SETTLED},
    past::{Numbers, Past},
    view::{Taken, View},
};

/// How much earlier than the server the other controller may see a change, and how much its clock may differ.
const SKEW: Span = Span::seconds(2);

/// A deleted pod to explain.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub(super) number: u64,
    /// When the server saw the deletion.
    pub(super) at: Timestamp,
    pub(super) uid: CompactUid,
    pub(super) name: Arc<str>,
    /// Whether a search has failed.
    pub(super) tried: bool,
}

/// The result of a search for one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A view explains it.
    Explained,
    /// No view explains it. Holds the number of surplus pods just before its deletion, or a moment earlier if there were none.
    Unexplained(usize),
    /// A client other than the controller deleted it: there were no surplus pods.
    ByOthers,
    /// Not all views could be examined.
    Unknown,
}

/// The depth of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// At the view before the first deletion, from which all pods were chosen if one decision deleted them.
    First,
    /// At each view, at the moment of the deletion.
    Views,
    /// At each view, and at each moment at which the order may have been different.
    Moments,
}

/// A search for views that explain the deletion of pods.
#[derive(Debug)]
pub(super) struct Search<'a> {
    past: &'a Past,
    set: KnownSet<'a>,
    now: Timestamp,
    numbers: Numbers,
    suspects: Vec<Suspect<'a>>,
    /// How many pods may still be examined.
    looks: &'a mut usize,
}

#[derive(Debug)]
struct Suspect<'a> {
    gone: &'a Gone,
    /// The number of surplus pods just before its deletion.
    surplus: i64,
    /// Whether there were surplus pods then, or a moment earlier.
    is_amid_scale_down: bool,
    /// The number of replicas removed since.
    later: usize,
    is_explained: bool,
}

/// The position of a walk.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The number of the last undone change.
    number: u64,
    /// The time of the change before it: the view exists since then.
    begun: Timestamp,
    /// The number of replicas deleted since.
    taken: usize,
    /// When the server saw the first of these deletions.
    first_taken: Timestamp,
    /// The last change that the other controller must have seen: it sees the pods that it created before it decides again.
    seen: u64,
}

/// The search needs more looks than events have paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooMuch;

// === impl Gone ===

impl Gone {
    pub(super) fn due(&self) -> Timestamp {
        self.at.plus(if self.tried { LATE } else { SETTLED })
    }
}

// === impl Search ===

impl<'a> Search<'a> {
    pub(super) fn new(
        past: &'a Past,
        set: KnownSet<'a>,
        gone: &'a [Gone],
        now: Timestamp,
        looks: &'a mut usize,
    ) -> Self {
        let own = &set.object().key.uid;
        let suspects = gone.iter().map(|gone| Suspect {
            gone,
            surplus: 0,
            is_amid_scale_down: false,
            later: 0,
            is_explained: false,
        });
        Self {
            past,
            set,
            now,
            numbers: past.numbers(own, set.wanted()),
            suspects: suspects.collect(),
            looks,
        }
    }

    /// Returns the verdict on each pod, in their order.
    pub(super) fn run(mut self) -> Vec<Verdict> {
        let is_whole = self.look_everywhere().is_ok() && self.past.is_whole_since(self.begin());
        let verdicts = self.suspects.iter().map(|it| it.verdict(is_whole));
        verdicts.collect()
    }

    fn look_everywhere(&mut self) -> Result<(), TooMuch> {
        self.spend(self.past.len())?;
        for depth in [Depth::First, Depth::Views, Depth::Moments] {
            self.walk(depth)?;
        }
        Ok(())
    }

    /// Returns the beginning of the oldest view.
    fn begin(&self) -> Timestamp {
        let earliest = self.suspects.iter().map(|it| it.gone.at).min();
        earliest.unwrap_or(self.now).plus(Span(-REACH.0))
    }

    /// Undoes one change after the other, and examines the views between them.
    fn walk(&mut self, depth: Depth) -> Result<(), TooMuch> {
        let open = self.suspects.iter().filter(|it| !it.is_explained);
        let Some(first) = open.map(|it| it.gone.number).min() else {
            return Ok(());
        };
        let from = self.begin();
        let pods = usize::try_from(self.set.active()).unwrap_or(0);
        self.spend(pods + self.set.related_looks())?;
        let mut view = View::of(&self.set);
        let mut passed = self.suspects.len();
        let past = self.past;
        let mut cut = Cut {
            number: 0,
            begun: self.now,
            taken: 0,
            first_taken: self.now,
            seen: u64::MAX,
        };
        for (number, change) in past.back_to(from) {
            self.spend(1)?;
            let taken = view.take_back(change);
            // The pods were deleted in the order of their numbers.
            let last = passed.checked_sub(1).map(|last| &mut self.suspects[last]);
            if let Some(last) = last.filter(|last| last.gone.number == number) {
                last.later = cut.taken;
                passed -= 1;
            }
            match taken {
                Taken::Deleted => (cut.taken, cut.first_taken) = (cut.taken + 1, change.at),
                Taken::Made => cut.seen = number,
                Taken::Adopted(uid) => self.excuse(&uid, change.at),
                Taken::Changed => {}
            }
            (cut.number, cut.begun) = (number, past.before(number).unwrap_or(from));
            let is_recent = change.at.plus(LAG) >= cut.first_taken;
            if is_recent && (depth != Depth::First || number == first) {
                self.look(&view, &cut, depth)?;
            }
            if depth == Depth::First && number == first {
                break;
            }
        }
        Ok(())
    }

    /// Explains the deletion of a pod that was adopted just before: the controller that adopted it saw a state of the pod that was not
    /// watched.
    fn excuse(&mut self, uid: &CompactUid, adopted: Timestamp) {
        for suspect in &mut self.suspects {
            let is_soon = suspect.gone.at <= adopted.plus(LAG);
            suspect.is_explained |=
                is_soon && suspect.is_amid_scale_down && suspect.gone.uid == *uid;
        }
    }

    /// Checks whether a view explains unexplained deletions.
    fn look(&mut self, view: &View, cut: &Cut, depth: Depth) -> Result<(), TooMuch> {
        let numbers = &self.numbers;
        let seen = self.suspects.iter_mut();
        let mut open: Vec<_> = seen
            .filter(|it| !it.is_explained && cut.number <= it.gone.number)
            .collect();
        for suspect in &mut open {
            let at = suspect.gone.at;
            let (wanted, _) = numbers.between(at.plus(Span(-SETTLED.0)), at.plus(SKEW));
            let surplus = view.active() - i64::from(wanted);
            let is_just_before = cut.number == suspect.gone.number;
            if is_just_before {
                suspect.surplus = surplus;
            }
            let is_recent = cut.begun >= at.plus(Span(-SETTLED.0));
            suspect.is_amid_scale_down |= surplus > 0 && (is_just_before || is_recent);
        }
        open.retain(|it| it.gone.number < cut.seen);
        let times = || open.iter().map(|it| it.gone.at);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return Ok(());
        };
        let (wanted, _) = numbers.around(cut.first_taken);
        let count = usize::try_from(view.active() - i64::from(wanted)).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        let moments = match depth {
            Depth::First | Depth::Views => [first].into(),
            Depth::Moments => view.moments(cut.begun.plus(Span(-SKEW.0)), last.plus(SETTLED)),
        };
        for moment in moments {
            let cost = usize::try_from(view.active()).unwrap_or(0) + open.len();
            *self.looks = self.looks.checked_sub(cost).ok_or(TooMuch)?;
            let places = view.places(moment);
            for suspect in &mut open {
                let Some(place) = places.get(&suspect.gone.uid) else {
                    continue;
                };
                // One decision deleted all pods since then, except for one that another client may have deleted. If upstream's order is
                // open, any of these pods may be deleted, but not more than this number.
                let gone = cut.taken - suspect.later;
                let is_chosen = place.own <= count && gone <= count + 1;
                suspect.is_explained |= is_chosen || place.earliest <= count && gone <= count;
            }
        }
        Ok(())
    }

    fn spend(&mut self, looks: usize) -> Result<(), TooMuch> {
        *self.looks = self.looks.checked_sub(looks).ok_or(TooMuch)?;
        Ok(())
    }

    /// Returns the view before the change with this number.
    pub(super) fn view_before(past: &Past, set: &KnownSet<'_>, gone: &Gone) -> View {
        let mut view = View::of(set);
        let changes = past.back_to(gone.at);
        for (_, change) in changes.take_while(|(number, _)| *number >= gone.number) {
            view.take_back(change);
        }
        view
    }
}

// === impl Suspect ===

impl Suspect<'_> {
    fn verdict(&self, is_whole: bool) -> Verdict {
        if self.is_explained {
            Verdict::Explained
        } else if !is_whole {
            Verdict::Unknown
        } else if self.is_amid_scale_down {
            Verdict::Unexplained(usize::try_from(self.surplus).unwrap_or(0))
        } else {
            Verdict::ByOthers
        }
    }
}
